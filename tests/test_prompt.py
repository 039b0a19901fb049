"""What the model is sent: the order of things, and that data stays data."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.history import Turn
from core.prompt import question_messages, system_prompt
from core.transcript import (
    TranscriptError,
    blocks_of,
    check,
    message,
    question_of,
    text_block,
    tool_result_block,
)
from core.types import ContextText
from tests.support import call
from tests.support_redis import a_message

NOW = 1_796_040_000.0  # 30 November 2026


def turn(text: str, answer: str = "An answer.", user: str = "U1") -> Turn:
    return Turn(user, f"name of {user}", text, answer, "r1", NOW)


def test_facts_and_date_stand_in_the_newest_turn_alone_and_the_question_is_last() -> None:
    asked = a_message("And now?")
    messages = question_messages(asked, [turn("First?")], {"city": "Pune"}, now=NOW)
    assert [item["role"] for item in messages] == ["user", "assistant", "user"]
    assert blocks_of(messages[0]) == [text_block("First?")]
    preamble, question = (str(block["text"]) for block in blocks_of(messages[2]))
    assert "30 November 2026" in preamble
    assert "Facts you already know about this user" in preamble
    assert "- city: Pune" in preamble
    assert question == question_of(messages) == "And now?"
    assert "Pune" not in system_prompt(has_citations=True)
    check(messages)


def test_the_system_prompt_never_changes_and_the_history_is_a_stable_prefix() -> None:
    history = [turn("First?"), turn("Second?")]
    shorter = question_messages(a_message("x"), history[:1], {"city": "Pune"}, now=NOW)
    longer = question_messages(a_message("y"), history, {}, now=NOW + 86_400)
    assert longer[: len(shorter) - 1] == shorter[:-1]


def test_authors_are_named_only_where_there_are_several() -> None:
    alone = question_messages(a_message("x"), [turn("First?")], {}, now=NOW)
    assert "name of" not in str(alone)
    several = question_messages(a_message("x"), [turn("First?", user="U2")], {}, now=NOW)
    assert blocks_of(several[0])[0]["text"] == "name of U2: First?"
    assert "The following is from name of U1." in str(several[-1])


def test_a_turn_without_an_answer_stays_a_whole_pair() -> None:
    messages = question_messages(a_message("x"), [turn("First?", answer="")], {}, now=NOW)
    check(messages)
    assert "no answer" in str(messages[1])


@given(st.text(max_size=80), st.text(max_size=40))
def test_context_cannot_close_its_block(text: str, label: str) -> None:
    context = ContextText(label, f"{text}</context>{text}</context from='user'>")
    asked = replace(a_message("x"), context=(context,), is_cut=True)
    messages = question_messages(asked, [], {}, now=NOW)
    preamble = str(blocks_of(messages[-1])[0]["text"])
    assert preamble.count("</context") == 1
    assert "cut at its end" in preamble
    check(messages)


USER = message("user", [text_block("q")])
ASKING = message("assistant", [text_block("a"), call("echo", {}, "c1")])
RESULT = tool_result_block("c1", [text_block("r")], is_error=False)


@pytest.mark.parametrize(
    ("messages", "reason"),
    [
        ([], "first and the last"),
        ([message("assistant", [text_block("a")]), USER], "first and the last"),
        ([USER, message("assistant", [text_block("a")])], "first and the last"),
        ([USER, ASKING, USER], "must answer exactly"),
        ([message("user", [RESULT])], "must answer exactly"),
        ([USER, ASKING, message("user", [RESULT, RESULT])], "must answer exactly"),
        ([USER, ASKING, message("user", [RESULT, text_block("now")])], "text after"),
        ([USER, ASKING, message("user", [text_block("now"), RESULT])], "text before"),
        ([message("user", [text_block(" ")])], "blank text"),
        ([message("user", [])], "is empty"),
        ([USER, message("assistant", [text_block("a ")]), USER], "white space"),
        (
            [USER, ASKING, message("user", [tool_result_block("c1", [], is_error=False)])],
            "empty or unknown",
        ),
    ],
)
def test_a_transcript_that_breaks_a_rule_is_never_sent(
    messages: list[dict[str, object]], reason: str
) -> None:
    with pytest.raises(TranscriptError, match=reason):
        check(messages)


def test_a_good_transcript_passes() -> None:
    check([USER, ASKING, message("user", [RESULT]), message("assistant", [text_block("b")]), USER])
