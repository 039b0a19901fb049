"""Splitting: any Markdown arrives complete, in order, within limits, each part whole in itself."""

import re
import time

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from bots.split import close_fence, split_markdown, take_part, utf8_bytes

SAMPLES = (
    "plain words and more",
    "été e\u0301 naïve",
    "مرحبا بالعالم שלום",
    "日本語の文章です。",
    "👩‍👩‍👧‍👦 🏳️‍🌈 👍🏽 🇩🇪🇫🇷",
    "zero\u200bwidth\u200d\u2060joined",
    "<!channel> <@U123ABC> <#C1|x> <https://a.b|label>",
    "**bold** _it_ ~~gone~~ `code with spaces`",
    "[a link](https://example.com/a_(b)_c?x=1&y=2)",
    "![picture](https://example.com/p.png)",
    "unclosed ` tick [ bracket ( < angle",
    "| not a table",
    "\\[escaped\\] &lt; &amp;",
)

words = st.sampled_from(SAMPLES)
sentence = st.lists(words, min_size=1, max_size=12).map(" ".join)
paragraph = st.lists(sentence, min_size=1, max_size=4).map("\n".join)
nested_list = st.lists(st.tuples(st.integers(0, 3), sentence), min_size=1, max_size=8).map(
    lambda items: "\n".join("  " * depth + "- " + text for depth, text in items)
)
fence = st.tuples(
    st.sampled_from(["```", "````", "~~~"]),
    st.sampled_from(["", "python", "c++ {1,2}"]),
    st.lists(
        st.sampled_from(["x = 1", "", "  if a < b:", "<!here> in code", "z" * 90]), max_size=40
    ),
    st.booleans(),
).map(
    lambda f: f[0] + f[1] + "\n" + "\n".join(f[2]) + ("\n" + f[0] if f[3] else "")  # maybe unclosed
)
table = st.lists(st.lists(words, min_size=3, max_size=3), min_size=1, max_size=30).map(
    lambda rows: "\n".join(
        ["| A | B | C |", "|---|:-:|---|"]
        + ["| " + " | ".join(cell.replace("|", "/") for cell in row) + " |" for row in rows]
    )
)
heading = st.tuples(st.integers(1, 6), words).map(lambda h: "#" * h[0] + " " + h[1])
long_word = st.integers(1, 900).map(lambda n: "w" * n)
markdown = st.lists(
    st.one_of(paragraph, nested_list, fence, table, heading, long_word), min_size=1, max_size=12
).map("\n\n".join)
anything = st.one_of(
    markdown, st.text(max_size=3000), st.text("`~|-# \n[]()<>a\u0301", max_size=2000)
)


def _bare(text: str) -> str:
    return "".join(text.split())


def _is_fence_open(text: str) -> bool:
    """By an independent parser: whether a line below `text` would still be code."""
    tokens = MarkdownIt("commonmark").parse(text + "\n\nSENTINEL")
    return any(
        token.type in ("fence", "code_block") and "SENTINEL" in token.content for token in tokens
    )


@settings(max_examples=120, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(anything, st.sampled_from([200, 500, 2000, 9000]), st.sampled_from([len, utf8_bytes]))
def test_any_markdown_arrives_complete_in_order_and_within_the_limit(text, limit, size):
    left, carried, taken = text, 0, []
    while left.strip():
        part = take_part(left, limit, size, carried)
        taken.append(part.text)
        assert size(part.text) <= limit
        own, before = _bare(part.text[carried:]), _bare(left[carried:])
        after = _bare(part.rest[part.carried :])
        assert before.endswith(after)
        closer = own.removeprefix(before.removesuffix(after) if after else before)
        assert own.startswith(before[: len(before) - len(after)]) or not after
        assert re.fullmatch(r">*(`{3,}|~{3,})?", closer), (own, before, after)
        left, carried = part.rest, part.carried
    assert split_markdown(text, limit, size) == [part for part in taken if part.strip()]


@settings(max_examples=120, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(markdown, st.sampled_from([200, 700, 2000]))
def test_every_part_has_its_fences_balanced(text, limit):
    for part in split_markdown(text, limit):
        assert not _is_fence_open(part), part


@settings(max_examples=80, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(st.one_of(paragraph, nested_list), min_size=1, max_size=12).map("\n\n".join))
def test_no_link_mention_or_code_span_is_cut(text):
    whole = [
        r"\[a link\]\(https://example\.com/a_\(b\)_c\?x=1&y=2\)",
        "<@U123ABC>",
        "`code with spaces`",
    ]
    parts = split_markdown(text, 300)
    for pattern in whole:
        # An unclosed tick before a span on its line changes what is code, for any parser.
        if "unclosed" not in text:
            assert len(re.findall(pattern, text)) == sum(len(re.findall(pattern, p)) for p in parts)


def test_fence_is_reopened_with_its_language():
    code = "\n".join(f"line_{n} = {n}" for n in range(200))
    parts = split_markdown(f"Before\n\n~~~~python title=x\n{code}\n~~~~\n\nAfter", 500)
    assert len(parts) > 4
    for part in parts[1:-1]:
        assert part.startswith("~~~~python\n")
        assert part.endswith("\n~~~~")
    lines = [line for part in parts for line in part.split("\n") if line.startswith("line_")]
    assert lines == code.split("\n")


def test_table_header_is_repeated_and_no_row_is_lost():
    rows = [f"| row {n} | {'v' * 20} |" for n in range(100)]
    parts = split_markdown("\n".join(["Intro", "| Name | Value |", "|---|---|", *rows]), 600)
    assert len(parts) > 5
    assert all("| Name | Value |\n|---|---|\n| row" in part for part in parts)
    assert [line for p in parts for line in p.split("\n") if line.startswith("| row")] == rows


def test_cut_prefers_a_paragraph_and_never_ends_with_a_heading():
    first, second = "a " * 80, "b " * 80
    parts = split_markdown(f"{first}\n\n## Heading\n{second}", 200)
    assert parts[0] == first.strip()
    assert parts[1].startswith("## Heading\nb b")


def test_joined_emoji_and_accents_are_never_torn():
    family = "👩‍👩‍👧‍👦"
    for unit in (family, "e\u0301", "👍🏽"):
        parts = split_markdown(unit * 400, 333, utf8_bytes)
        assert "".join(parts) == unit * 400
        assert all(part.startswith(unit) for part in parts)


@pytest.mark.parametrize(
    "text",
    [
        "[a](" * 15_000,
        "[" * 60_000,
        "`" * 60_000,
        "<" * 60_000,
        "|-" * 30_000,
        "| a |\n|---|\n" * 5_000,
        "```\n" * 15_000,
        "> " * 30_000,
        "e" + "\u0301" * 59_999,
        "\n" * 59_999 + "x",
        "&lt" * 20_000,
    ],
    ids=lambda text: repr(text[:6]),
)
def test_sixty_thousand_hostile_characters_are_split_quickly(text):
    started = time.perf_counter()
    parts = split_markdown(text, 2_000, utf8_bytes)
    assert time.perf_counter() - started < 3
    assert all(utf8_bytes(part) <= 2_000 for part in parts)


def test_open_fence_is_closed_with_its_own_mark():
    assert close_fence("text\n````js\ncode ```") == "text\n````js\ncode ```\n````"
    assert close_fence("```\ndone\n```") == "```\ndone\n```"
