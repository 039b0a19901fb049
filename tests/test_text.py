"""The words all platforms share: footer, trace lines, sources, commands, defused text."""

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bots.text import (
    defuse_discord,
    defuse_slack,
    footer,
    parse_command,
    source_lines,
    trace_line,
    trace_title,
)
from core.types import Run, Source, Step, StopReason, Usage


def _step(
    tool: str = "search_docs", *, is_error: bool = False, summary: str = "resume top"
) -> Step:
    return Step(1, tool, {"secret": "hunter2"}, "found 5550123", is_error, 120, summary)


def _run(reason: StopReason = StopReason.DONE, *, cost: float | None = 0.0004, **fields) -> Run:
    given = {
        "id": "r1",
        "text": "Answer.",
        "sources": (),
        "trace": (_step(),),
        "turns": 2,
        "stop_reason": reason,
        "usage": Usage(input=1_000, output=82, cache_read=400),
        "cost_usd": cost,
        "started_at": 0.0,
        "duration_ms": 3_100,
    }
    return Run(**(given | fields))


def test_footer_of_a_complete_answer():
    assert footer(_run()) == (
        "Stopped: done · 2 model calls · 1 search · 1,482 tokens · $0.0004 · 3.1 s"
    )


def test_footer_counts_other_tools_and_leaves_out_an_unknown_cost():
    trace = (_step(), _step(), _step("read_doc", summary="a.md"))
    line = footer(_run(cost=None, trace=trace, turns=1))
    assert line == "Stopped: done · 1 model call · 2 searches · 1 tool · 1,482 tokens · 3.1 s"


@pytest.mark.parametrize("reason", [r for r in StopReason if r is not StopReason.DONE])
def test_footer_says_any_other_reason_in_a_plain_sentence_and_names_the_run(reason):
    line = footer(_run(reason))
    assert line.startswith(f"{reason.sentence} Stopped: {reason.value} · ")
    assert line.endswith(" · run r1")


def test_footer_does_not_repeat_the_sentence_that_is_the_whole_text():
    reason = StopReason.CANCELLED
    line = footer(_run(reason, text=reason.sentence))
    assert line.startswith("Stopped: cancelled · ")
    assert line.endswith(" · run r1")


@pytest.mark.parametrize(
    ("cost", "shown"),
    [(0.0, "$0.0000"), (0.00001, "<$0.0001"), (0.12345, "$0.1235"), (2.5, "$2.50")],
)
def test_footer_shows_small_and_large_costs(cost, shown):
    assert f" · {shown} · " in footer(_run(cost=cost))


def test_trace_line_names_turn_tool_argument_outcome_and_time():
    assert trace_line(_step()) == "1 · search_docs · resume top · ok · 120 ms"
    assert trace_line(_step(is_error=True)).endswith(" · error · 120 ms")
    assert trace_title(_run()) == "Trace · 1 tool call · 3.1 s · done"


def test_trace_line_shows_nothing_but_the_summary_of_what_went_in_and_came_back():
    line = trace_line(_step("remember", summary="phone"))
    assert line == "1 · remember · phone · ok · 120 ms"
    assert trace_line(_step("lookup", summary="")) == "1 · lookup · ok · 120 ms"


def test_trace_line_is_one_plain_line_without_live_mentions():
    line = trace_line(_step(summary="<!channel>\n@here **x** `y` <@U1> " + "long " * 90))
    assert not re.search(r"[<>\n`*]|@here", line)
    assert len(line) < 140


def test_sources_are_numbered_links_or_paths():
    url = "https://docs.example.com/a_(b)"
    lines = source_lines(
        [
            Source(1, "Resume [basics]", "a.md", "Resume > The top", url, "q"),
            Source(3, "Plain", "dir/b.md", "Plain", None, "q"),
            Source(4, "Odd", "c.md", "", "javascript:alert(1)", "q"),
        ]
    )
    assert lines == [
        "[1] [Resume  basics  › The top](https://docs.example.com/a_%28b%29)",
        "[3] Plain (`dir/b.md`)",
        "[4] Odd (`c.md`)",
    ]


@pytest.mark.parametrize(
    ("text", "command"),
    [
        ("forget", "forget"),
        (" Forget me! ", "forget"),
        ("/memory", "memory"),
        ("MUTE", "mute"),
        ("unmute", "unmute"),
        ("forget everything.", "forget"),
        ("forget about ATS, what else matters?", None),
        ("what does memory mean?", None),
        ("mute swans", None),
        ("", None),
    ],
)
def test_only_the_bare_word_is_a_command(text, command):
    assert parse_command(text) == command


def test_slack_text_keeps_code_readable_and_links_open():
    assert defuse_slack("if a < b: `x < y`") == "if a &lt; b: `x < y`"
    assert defuse_slack("see <https://a.example/x>") == "see https://a.example/x"
    assert defuse_slack("```\na < b\n```\nc < d") == "```\na < b\n```\nc &lt; d"
    assert defuse_slack("&lt;!channel&gt;") == "&amp;lt;!channel&amp;gt;"
    assert defuse_slack("[x](https://a.example/?a=1&b=2)") == "[x](https://a.example/?a=1&b=2)"


def test_addresses_can_be_copied_and_calls_to_all_are_broken():
    known = "write to jobs@group.example or `a.b@channel.io`"
    assert defuse_slack(known) == known
    assert defuse_discord(known) == known
    for call in ("@group.", "me@channel", "(@channel.io)", "@here", "x@here.com", "x@everyone.a"):
        assert "@\u200b" in defuse_slack(call)


SLACK_LIVE = re.compile(r"<[!@#]|<[a-z]+:[^<>\s]*\||@(here|channel|everyone)\b", re.IGNORECASE)
DISCORD_LIVE = re.compile(r"@(everyone|here)\b|<(@[!&]?|#|a?:\w+:)\d+>", re.IGNORECASE)
PIECES = [
    *("<!channel>", "<!here|x>", "<@U1>", "<#C1>", "<!subteam^S1>", "<https://evil.example|ok>"),
    *("@everyone", "@here", "<@&12>", "<@12>", "<@!12>", "<#12>", "<:x:12>", "<", "@", "!"),
    *("`", "``", "```", "~~~", "\n", "> ", "- ", " ", "a", "\\", "&lt;", "\u200b", "|"),
]


@settings(max_examples=400, deadline=None)
@given(st.lists(st.sampled_from(PIECES), max_size=30).map("".join))
def test_no_text_holds_a_live_mention_after_defusing(text):
    assert not SLACK_LIVE.search(defuse_slack(text))
    assert not DISCORD_LIVE.search(defuse_discord(text))
