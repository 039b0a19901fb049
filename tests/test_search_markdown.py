"""How documents are cut: heading paths, whole code, resolved links, lines, sizes."""

from hypothesis import given
from hypothesis import strategies as st

from core.search.markdown import cut_markdown, plain
from core.search.pieces import MAX_CODE_CHARS, MAX_WORDS, count_words, cut_text

ARTICLE = """---
title: "Badges"
description: How badges work.
tags: [a, b]
---

Intro line.

# Getting a badge<a name="get"></a>

Ask the front desk\\. See [the form][form] and [the map].

## At night ##

Ring the bell:

```sh
# this is no heading
ring --loud
```

Lost it?
--------

Call us.

[form]: https://example.com/form "The form"
[the map]: <https://example.com/map>
"""


def test_heading_paths_titles_and_lines() -> None:
    outline = cut_markdown(ARTICLE)
    assert outline.title == "Badges"
    assert [(piece.heading, piece.line) for piece in outline.pieces] == [
        ("", 1),
        ("", 7),
        ("Getting a badge", 11),
        ("Getting a badge > At night", 15),
        ("Getting a badge > Lost it?", 25),
    ]


def test_a_preamble_may_write_its_values_below_their_names() -> None:
    outline = cut_markdown("---\ntitle: >-\n  Badges for\n  guests\ntags: x\n---\n\nAsk for one.\n")
    assert outline.title == "Badges for guests"
    outline = cut_markdown("---\ndescription: |\n  How badges work.\n---\n# Badges\n")
    assert (outline.title, outline.pieces[0].text) == ("Badges", "How badges work.")


def test_links_are_resolved_and_invisible_marks_removed() -> None:
    text = cut_markdown(ARTICLE).pieces[2].text
    assert text == (
        "Ask the front desk. See [the form](https://example.com/form) "
        "and [the map](https://example.com/map)."
    )
    assert plain(text) == "Ask the front desk. See the form and the map."


def test_fenced_code_stays_whole_with_its_lead() -> None:
    text = cut_markdown(ARTICLE).pieces[3].text
    assert text == "Ring the bell:\n\n```sh\n# this is no heading\nring --loud\n```"
    code = "```\n" + "\n".join(f"call_{n}(a_word)" for n in range(180)) + "\n```"
    assert [piece.text for piece in cut_markdown(f"# T\n\n{code}\n").pieces] == [code]


def test_code_too_long_for_one_piece_is_fenced_in_each() -> None:
    code = "```py\n" + "\n".join(f"line_{n} = {n}" for n in range(900)) + "\n```"
    pieces = cut_markdown(code).pieces
    assert len(pieces) > 1
    for piece in pieces:
        assert piece.text.startswith("```py\n")
        assert piece.text.endswith("\n```")
        assert len(piece.text) < MAX_CODE_CHARS + 100
    assert all(sum(f"line_{n} = {n}\n" in piece.text for piece in pieces) == 1 for n in range(900))


def test_an_unclosed_fence_runs_to_the_end() -> None:
    assert cut_markdown("# T\n\n```\n# a\n# b\n").pieces[0].text == "```\n# a\n# b"


def test_a_long_table_repeats_its_header() -> None:
    rows = "\n".join(f"| code {n} | what it means number {n} |" for n in range(60))
    pieces = cut_markdown(f"# Codes\n\n| Code | Meaning |\n|---|---|\n{rows}\n").pieces
    assert len(pieces) > 2
    assert all(piece.text.startswith("| Code | Meaning |\n|---|---|\n") for piece in pieces)


def test_a_document_of_headings_alone_is_still_found() -> None:
    outline = cut_markdown("# Roadmap\n## Dark mode\n## Exports\n")
    assert outline.title == "Roadmap"
    assert [piece.text for piece in outline.pieces] == ["Roadmap", "Dark mode", "Exports"]


def test_a_wall_of_text_is_cut_at_sentences() -> None:
    wall = " ".join(f"Sentence number {n} says a little more." for n in range(200))
    pieces = cut_text(wall).pieces
    assert all(count_words(piece.text) <= MAX_WORDS for piece in pieces)
    assert all(piece.text.endswith("more.") for piece in pieces)


def test_text_without_spaces_is_cut_too() -> None:
    pieces = cut_text("これは説明です。" * 400).pieces
    assert len(pieces) > 5
    assert all(count_words(piece.text) <= MAX_WORDS for piece in pieces)


def test_plain_text_knows_the_line_of_each_piece() -> None:
    text = "\n\n".join(f"Paragraph {n}. " + "word " * 80 for n in range(3))
    assert [piece.line for piece in cut_text(text).pieces] == [1, 3, 5]


@given(st.text(alphabet="ab #`|-=\n[]()<>!\\*_:~.\t", max_size=400))
def test_no_text_breaks_the_cut_or_loses_words(text: str) -> None:
    pieces = cut_markdown(text).pieces
    assert all(piece.text.strip() for piece in pieces)
    lines = max(len(text.splitlines()), 1)
    assert all(1 <= piece.line <= lines for piece in pieces)
