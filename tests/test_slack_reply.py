"""One answer in Slack's thread: streamed, cut, mended, footed and traced, on the local server."""

import re
from collections.abc import AsyncGenerator

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from bots.slack import pace
from bots.slack.markup import prepare, settled_length
from core.types import FactChange, Message, Step, StopReason
from tests.slack_rules import LIVE
from tests.support import wait_until
from tests.support_slack import CHANNEL, SESSION, Desktop, make_run, open_desktop
from tests.test_text_split import anything, markdown

FOOTER = "Stopped: done · 2 model calls · 1 search · 1,482 tokens · $0.0004 · 3.1 s"


@pytest.fixture
async def desk() -> AsyncGenerator[Desktop]:
    async with open_desktop() as desktop:
        yield desktop


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """No pause between two calls: the pace has its own test."""
    monkeypatch.setattr(pace, "FLUSH_EVERY_S", 0.0)
    monkeypatch.setattr(pace, "FLUSH_EVERY_PER_STREAM_S", 0.0)


async def _stream(desk: Desktop, text: str, *, step: int = 7) -> Message:
    message = desk.ask()
    reply = desk.reply(message)
    await reply.status("Thinking…")
    for at in range(0, len(text), step):
        await reply.append(text[at : at + step])
    await reply.close(make_run(text))
    return message


async def test_answer_streams_into_the_thread_with_sources_footer_and_trace(desk: Desktop):
    message = await _stream(desk, "Put your name on top. [1]")
    [answer] = desk.answers(message)
    assert answer.startswith(
        "Put your name on top. [1]\n\n**Sources**\n[1] [Resumes › The top](https"
    )
    assert FOOTER in answer
    [trace] = desk.traces(message)
    assert "Trace · 1 tool call · 3.1 s · done" in trace
    assert "1 · search_docs · resume top · ok · 12 ms" in trace
    [container] = [b for b in desk.slack.own(CHANNEL)[1]["blocks"] if b["type"] == "container"]
    assert container["is_collapsible"]
    assert container["default_collapsed"]
    thread = message.extra["thread"]
    assert desk.slack.sessions[CHANNEL, thread] == "active"
    assert not desk.slack.statuses[CHANNEL, thread]
    assert not desk.slack.errors


async def test_one_tool_answer_of_a_thousand_characters_takes_at_most_six_calls(
    desk: Desktop, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(pace, "FLUSH_EVERY_S", 1.0)
    desk.slack.calls.clear()
    await _stream(desk, "word " * 200)
    assert sum(desk.slack.count().values()) <= 6, desk.slack.count()


async def test_text_is_visible_before_the_end(desk: Desktop):
    message = desk.ask()
    reply = desk.reply(message)
    await reply.append("First sentence. Second one ")
    assert desk.answers(message) == ["First sentence. Second one "]
    await reply.append("goes on.")
    await reply.close(make_run("First sentence. Second one goes on."))
    [answer] = desk.answers(message)
    assert answer.startswith("First sentence. Second one goes on.")


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.one_of(markdown, anything), st.integers(5, 4_000))
async def test_any_markdown_arrives_complete_in_order_and_without_pings(text: str, step: int):
    async with open_desktop() as desk:
        message = await _stream(desk, text, step=step)
        answers = desk.answers(message)
        shown = "".join("".join(answers).split())
        for word in re.findall(r"[^\W_]{3,}", text.replace("<", " ").replace("&", " ")):
            assert word in shown
        assert not desk.slack.pings()
        assert not [e for e in desk.slack.errors if "not_in_streaming" not in e], desk.slack.errors
        assert FOOTER in answers[-1]
        assert all(FOOTER not in answer for answer in answers[:-1])


async def test_sixty_thousand_characters_come_in_order_over_several_messages(desk: Desktop):
    text = "\n\n".join(f"Paragraph {n:04d} " + "ünïcode word " * 12 for n in range(330))
    assert len(text) > 55_000
    message = await _stream(desk, text, step=997)
    answers = desk.answers(message)
    assert 6 < len(answers) < 15
    assert re.findall(r"Paragraph (\d{4})", "".join(answers)) == [f"{n:04d}" for n in range(330)]
    assert not desk.slack.errors


@settings(max_examples=150, deadline=None)
@given(anything.map(lambda text: "\n".join(line[:900] for line in text.split("\n"))))
def test_what_is_settled_never_changes_when_more_arrives(text: str):
    # A longer line is sent although it may change; then the answer is mended at the end.
    before = ""
    for end in range(0, len(text) + 1, max(len(text) // 40, 1)):
        settled = prepare(text[: settled_length(text[:end])])
        assert settled.startswith(before)
        before = settled
    assert not LIVE.search(prepare(text))


async def test_fifty_five_tables_arrive_within_slacks_limits(desk: Desktop):
    table = "| A | B |\n|---|---|\n| one | two |"
    text = "\n\n".join(f"Table {n:02d}\n\n{table}" for n in range(55))
    message = await _stream(desk, text, step=211)
    shown = "".join(desk.answers(message))
    assert re.findall(r"Table (\d\d)", shown) == [f"{n:02d}" for n in range(55)]
    assert shown.count("| one | two |") == 55
    assert not desk.slack.errors


@pytest.mark.parametrize("reason", [r for r in StopReason if r is not StopReason.DONE])
async def test_any_other_end_is_a_plain_sentence_with_a_run_id(desk: Desktop, reason: StopReason):
    message = desk.ask()
    reply = desk.reply(message)
    await reply.status("Thinking…")
    await reply.close(make_run("", reason=reason, trace=()))
    [answer] = desk.answers(message)
    assert answer.count(reason.sentence) == 1
    assert f"Stopped: {reason.value} · " in answer
    assert "run run1" in answer
    assert desk.slack.statuses[CHANNEL, message.extra["thread"]] == ""
    assert desk.slack.sessions[CHANNEL, message.extra["thread"]] == "active"


@pytest.mark.parametrize(
    ("said", "shown"),
    [
        ("Searching the docs: what to wear…", "is searching the docs: what to wear…"),
        ("I am restarting and will go on.", "is restarting and will go on."),
    ],
)
async def test_status_goes_on_where_the_bots_name_ends(desk: Desktop, said: str, shown: str):
    message = desk.ask()
    await desk.reply(message).status(said)
    assert desk.slack.statuses[CHANNEL, message.extra["thread"]] == shown


async def test_status_is_refreshed_while_nothing_is_posted(
    desk: Desktop, monkeypatch: pytest.MonkeyPatch
):
    from bots.slack import status

    monkeypatch.setattr(status, "REFRESH_AFTER_S", 0.02)
    reply = desk.reply(desk.ask())
    await reply.status("Thinking…")
    await wait_until(lambda: desk.slack.count()["assistant.threads.setStatus"] == 4)
    await reply.close(make_run())


async def test_status_line_fault_does_not_touch_the_answer(desk: Desktop):
    desk.slack.fail("assistant.threads.setStatus", "missing_scope", times=5)
    desk.slack.fail("agents.sessions.setStatus", "unknown_method", times=5)
    for _ in range(2):
        message = await _stream(desk, "Put your name on top.")
        assert len(desk.answers(message)) == 1
    assert desk.slack.count()["assistant.threads.setStatus"] == 1
    assert desk.slack.count()["agents.sessions.setStatus"] == 1


@pytest.mark.parametrize(("faults", "form"), [(1, "attachments"), (2, "text"), (3, None)])
async def test_refused_trace_falls_back_and_never_blocks_the_answer(
    desk: Desktop, faults: int, form: str | None
):
    desk.slack.fail("chat.postMessage", "invalid_blocks", times=faults)
    message = await _stream(desk, "Put your name on top.")
    assert len(desk.answers(message)) == 1
    traces = [m for m in desk.slack.own(CHANNEL) if m.get("metadata", {}) != {}][1:]
    assert len(traces) == (1 if form else 0)
    if form:
        assert "search_docs" in str(traces[0][form])


async def test_long_trace_is_cut_with_a_mark(desk: Desktop):
    step = Step(1, "search_docs", {}, "o" * 60_000, False, 12, "<!channel> " + "q" * 500)
    message = desk.ask()
    reply = desk.reply(message)
    await reply.close(make_run(trace=(step,) * 75))
    [trace] = desk.traces(message)
    assert "… and 15 more steps" in trace
    assert not desk.slack.pings()
    assert not desk.slack.errors


async def test_saved_fact_is_announced_by_key_and_shown_to_its_owner_alone(desk: Desktop):
    message = desk.ask()
    reply = desk.reply(message)
    change = FactChange(SESSION, "phone", "+49 171 5550123 <!channel>", None)
    step = Step(1, "remember", {"value": change.value}, "ok", False, 3, "phone")
    await reply.close(make_run(trace=(step,), facts=(change,)))
    public = str(desk.slack.own(CHANNEL))
    assert "Remembered: phone" in public
    assert "5550123" not in public
    [private] = desk.slack.ephemeral
    assert private["user"] == "U1"
    assert private["thread_ts"] == message.extra["thread"]
    assert "5550123" in str(private["blocks"])
    assert private["blocks"][0]["accessory"]["text"]["text"] == "Undo"
    assert not desk.slack.pings()


def test_pace_slows_down_with_the_number_of_streams(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(pace, "FLUSH_EVERY_S", 1.0)
    monkeypatch.setattr(pace, "FLUSH_EVERY_PER_STREAM_S", 0.6)
    rate = pace.Pace()
    assert rate.interval_s("a") == 1.0
    for n in range(9):
        rate.interval_s(str(n))
    assert rate.interval_s("a") == pytest.approx(6.0)
    rate.end("a")
    assert rate.interval_s("0") == pytest.approx(5.4)
