"""Markdown for Discord, and the pace of edits."""

import asyncio
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bots.discord.ingress import WITHOUT_TEXT
from bots.discord.markup import display_width, to_discord
from bots.discord.pace import PER_WINDOW, STREAMED_PER_WINDOW, WINDOW_S, Pace
from bots.discord.recent import Recent
from bots.discord.render import finished, streamed, thread_name
from core.types import Author, Conversation, Message, Session, Source
from tests.support_discord import SOURCE, make_run

TABLE = """Before

| Name | Size |
|:-----|-----:|
| **café** | 1 |
| 日本 | 20 |

After"""


def test_table_becomes_an_aligned_code_block():
    assert to_discord(TABLE) == (
        "Before\n\n```\nName │ Size\n─────┼─────\ncafé │ 1\n日本 │ 20\n```\n\nAfter"
    )


def test_wide_table_becomes_a_list():
    wide = "| A | B |\n|---|---|\n| x | " + "word " * 30 + "|"
    assert to_discord(wide).startswith("- **x**\n  B: word word")


def test_table_in_a_fence_stays():
    text = "```\n| a | b |\n|---|---|\n```"
    assert to_discord(text) == text


@pytest.mark.parametrize(
    ("given_text", "shown"),
    [
        ("#### Deep **one** ##", "**Deep one**"),
        ("##### Deep", "**Deep**"),
        ("### Kept", "### Kept"),
        ("[site](https://a.example/b)", "[site](<https://a.example/b>)"),
        ("[https://a.example](https://a.example)", "<https://a.example>"),
        ("![chart](https://a.example/c.png)", "[chart](<https://a.example/c.png>)"),
        ("a<br>b", "a\nb"),
        ("<b>bold</b> 1 < 2", "bold 1 < 2"),
        ("`<b> [a](https://x.example)`", "`<b> [a](https://x.example)`"),
        ("~~~py\n#### x\n~~~", "```py\n#### x\n```"),
        ("[w](https://a.example/x_(y))", "[w](<https://a.example/x_(y)>)"),
    ],
)
def test_markdown_that_discord_does_not_know(given_text: str, shown: str):
    assert to_discord(given_text) == shown


LIVE = re.compile(r"@everyone|@here\b|<(?:@[!&]?|#|a?:\w+:)\d", re.IGNORECASE)


@given(st.text(alphabet=st.sampled_from("@everyonhr<>&!#:1234|`~-\n[]() abc"), max_size=300))
def test_nothing_live_survives(text: str):
    shown = to_discord(text)
    assert not LIVE.search(shown)


@pytest.mark.parametrize(
    "code",
    [
        "<ul>\n  <li>one</li>\n</ul>",
        "@group.command()\ndef hello(): ...",
        "<# a comment of PowerShell #>",
        "void f(List<@NonNull String> all)",
        "<a:t>text of a slide</a:t>",
    ],
)
def test_code_reaches_people_as_it_was_written(code: str):
    fenced = f"```\n{code}\n```"
    assert to_discord(fenced) == fenced


@pytest.mark.parametrize(
    "token",
    ["<@1>", "<@!1>", "<@&1>", "<#1>", "<:x:1>", "<a:x:1>", "</ask:1>", "<id:browse>", "<t:1:R>"],
)
def test_every_kind_of_token_is_dead(token: str):
    assert token not in to_discord(f"see {token}")


@given(st.lists(st.sampled_from([TABLE, "```py\nx = 1\n```", "word " * 300, "# H", "- a"])))
def test_parts_are_within_discords_limits(blocks: list[str]):
    run = make_run("\n\n".join(blocks), sources=tuple(_source(n) for n in range(1, 30)))
    parts = finished(run)
    assert 1 <= len(parts) <= 5
    assert all(0 < len(part.text) <= 2_000 for part in parts)
    assert "Stopped: done" in parts[-1].text
    for part in streamed(run.text, "Searching the docs: a question…"):
        assert 0 < len(part.text) <= 2_000


@pytest.mark.parametrize("count", range(1_880, 2_000, 20))
def test_footer_never_stands_alone_under_a_text(count: int):
    parts = finished(make_run("word " * (count // 5), sources=(SOURCE,)))
    assert all("word" in part.text for part in parts)
    assert "Stopped: done" in parts[-1].text


def test_source_with_an_endless_address_is_named_by_its_path():
    endless = _source(1)
    [part] = finished(make_run("Text. [1]", sources=(endless, SOURCE)))
    assert "(`p.md`)" in part.text
    assert f"](<{SOURCE.url}>)" in part.text
    assert part.text.count("](<") == part.text.count(">)")


def _source(n: int) -> Source:
    return Source(n, "T" * 200, "p.md", "T > H" * 30, f"https://a.example/{'x' * 500}", "q")


def test_width_counts_columns():
    assert display_width("abc") == 3
    assert display_width("日本") == 4
    assert display_width("e\u0301") == 1


def test_thread_name_is_one_short_line_without_secrets():
    def name(text: str) -> str:
        session = Session("discord", "1", "2", "3")
        where = Conversation("discord", "1", "2", "4")
        return thread_name(Message("4", where, session, Author("3", "ann"), text, 0.0))

    assert name("how\n*do* I") == "how do I"
    assert len(name("word " * 100)) <= 100
    assert name("  \n ") == "Footnote"
    assert name(WITHOUT_TEXT) == "Footnote"
    assert "5550123" not in name("call me at +49 171 5550123")


def test_recent_keeps_the_newest():
    recent = Recent[int, str](2)
    for number in (1, 2, 1, 3):
        recent.put(number, str(number))
    assert [recent.get(number) for number in (1, 2, 3)] == ["1", None, "3"]


async def test_edits_keep_to_five_in_five_seconds_and_final_ones_go_first():
    pace, loop = Pace(), asyncio.get_running_loop()
    done: list[tuple[str, float]] = []

    async def edit(name: str, *, is_final: bool) -> None:
        await pace.turn("edit 1", is_final=is_final)
        done.append((name, loop.time()))

    streams = [asyncio.create_task(edit(f"s{n}", is_final=False)) for n in range(6)]
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    finals = [asyncio.create_task(edit(f"f{n}", is_final=True)) for n in range(2)]
    other = asyncio.create_task(pace.turn("edit 2", is_final=False))
    await asyncio.wait([*finals, other], timeout=2)
    assert other.done()
    names = [name for name, _ in done]
    assert sum(name.startswith("s") for name in names) == STREAMED_PER_WINDOW
    assert sum(name.startswith("f") for name in names) == PER_WINDOW - STREAMED_PER_WINDOW
    streams[3].cancel()
    await asyncio.wait(streams, timeout=WINDOW_S + 2)
    assert [name for name, _ in done][5:] == ["s4", "s5"]
    assert done[5][1] - done[0][1] >= WINDOW_S - 0.01
