"""The text of an answer: where citation marks stand and which are let through."""

from hypothesis import given
from hypothesis import strategies as st

from core.answer import AnswerText, SourceBook, passage_ref
from core.protocols import Citation, Hit
from tests.support import passage

TOP = passage("top.md", "Name first.")
ATS = passage("ats.md", "Software reads it.")


def book() -> SourceBook:
    made = SourceBook()
    made.add([Hit(TOP, 0.9, is_good=True), Hit(ATS, 0.8, is_good=True)])
    return made


def cite(*passages: object) -> tuple[Citation, ...]:
    return tuple(Citation(passage_ref(item), "t", "q") for item in passages)  # type: ignore[arg-type]


def test_numbers_come_in_the_order_of_citing_and_stand_before_white_space() -> None:
    answer = AnswerText(book(), has_citations=True)
    shown = answer.feed("Software reads it.\n")
    shown += answer.end_block(cite(ATS))
    shown += answer.feed("Name first.") + answer.end_block(cite(TOP, ATS, TOP))
    shown += answer.end_turn()
    assert shown == answer.text == "Software reads it. [1]\nName first. [2][1]"


def test_a_block_that_follows_a_mark_at_once_is_set_apart() -> None:
    answer = AnswerText(book(), has_citations=True)
    shown = answer.feed("Name first") + answer.end_block(cite(TOP))
    shown += answer.feed(", and so on.") + answer.end_block(cite(TOP))
    shown += answer.feed("Then the summary.")
    assert shown == "Name first [1], and so on. [1] Then the summary."


def test_a_mark_never_breaks_the_end_of_a_fence() -> None:
    answer = AnswerText(book(), has_citations=True)
    answer.feed("```\nmake\n```")
    answer.end_block(cite(TOP))
    assert answer.text == "```\nmake\n```\n[1]"


def test_code_that_was_cut_off_does_not_swallow_what_is_added() -> None:
    answer = AnswerText(book(), has_citations=True)
    shown = answer.feed("So:\n```py\nx = ") + answer.add("I found nothing more.")
    assert shown == answer.text == "So:\n```py\nx =\n```\n\nI found nothing more."


def test_unknown_citations_get_no_mark() -> None:
    answer = AnswerText(book(), has_citations=True)
    answer.feed("Hello.")
    assert answer.end_block((Citation("footnote:note", "Note", "q"),)) == ""


def test_turns_are_paragraphs_and_a_reset_drops_the_newest_alone() -> None:
    answer = AnswerText(book(), has_citations=True)
    answer.feed("One.")
    answer.end_turn()
    assert answer.feed("Tw") == "\n\nTw"
    assert answer.reset_turn() == "One."
    answer.feed("Two.")
    answer.end_turn()
    assert answer.text == "One.\n\nTwo."


def _streamed(text: str, size: int) -> str:
    answer = AnswerText(book(), has_citations=False)
    shown = "".join(answer.feed(text[at : at + size]) for at in range(0, len(text), size))
    shown += answer.end_turn()
    assert shown == answer.text
    return shown


def test_marks_written_by_the_model_are_checked_and_renumbered() -> None:
    for size in (1, 3, 100):
        assert _streamed("Read by software [2]. Name [1][2], not [7].", size) == (
            "Read by software [1]. Name [2][1], not."
        )


def test_indexes_in_code_are_no_marks() -> None:
    for size in (1, 4, 100):
        text = "Use `row[0]` or rows[1]:\n```\nx = [2]\n```\nthen."
        assert _streamed(text, size) == text


@given(st.text(alphabet="a [1]2\n`", max_size=60), st.integers(1, 9))
def test_streaming_in_any_pieces_gives_the_same_text(text: str, size: int) -> None:
    assert _streamed(text, size) == _streamed(text, 1_000)
