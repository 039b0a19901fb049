"""Answers mended after stream faults, takeovers, deletions: nothing twice, nothing lost."""

import asyncio
from collections.abc import AsyncGenerator

import pytest

from bots.slack import pace, posts
from core.types import Message, StopReason
from tests.support import wait_until
from tests.support_slack import CHANNEL, Desktop, make_run, open_desktop

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


async def test_refused_blocks_are_posted_as_plain_text(desk: Desktop):
    desk.slack.has_streams = False
    desk.slack.fail("chat.postMessage", "invalid_blocks")
    message = await _stream(desk, "Put your name on top.")
    [answer] = desk.answers(message)
    assert "Put your name on top." in answer
    assert FOOTER in answer
    assert len(desk.traces(message)) == 1


async def test_without_streaming_the_answer_is_posted_whole_and_not_tried_again(desk: Desktop):
    desk.slack.has_streams = False
    for _ in range(2):
        message = await _stream(desk, "Put your name on top.")
        [answer] = desk.answers(message)
        assert answer.startswith("Put your name on top.")
    assert desk.slack.count()["chat.startStream"] == 1


@pytest.mark.parametrize("method", ["chat.appendStream", "chat.stopStream", "chat.startStream"])
@pytest.mark.parametrize("error", ["message_not_in_streaming_state", "msg_too_long", "ratelimited"])
async def test_any_stream_fault_still_gives_one_whole_answer(
    desk: Desktop, method: str, error: str
):
    desk.slack.fail(method, error, times=3, retry_after_s=1)
    message = await _stream(desk, "One two three four. " * 20)
    [answer] = desk.answers(message)
    assert answer.count("One two three four.") == 20
    assert FOOTER in answer
    assert len(desk.traces(message)) == 1


async def test_stream_that_slack_ended_is_finished_in_place(desk: Desktop):
    message = desk.ask()
    reply = desk.reply(message)
    await reply.append("First part of it ")
    [posted] = desk.slack.own(CHANNEL)
    del posted["streaming_until"]  # as the Stop button does, or five minutes
    await reply.append("and the second part.")
    await reply.close(make_run("First part of it and the second part."))
    [answer] = desk.answers(message)
    assert answer.startswith("First part of it and the second part.")
    assert desk.slack.own(CHANNEL)[0]["ts"] == posted["ts"]


async def test_old_stream_is_rotated_before_slack_ends_it(
    desk: Desktop, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(posts, "ROTATE_AFTER_S", -1.0)
    message = desk.ask()
    reply = desk.reply(message)
    await reply.append("```python\nfirst = 1\nsecond = 2\n")
    await reply.append("third = 3\n```\nand then")
    await reply.close(make_run("```python\nfirst = 1\nsecond = 2\nthird = 3\n```\nand then done."))
    first, *rest = desk.answers(message)
    assert first == "```python\nfirst = 1\nsecond = 2\n```"
    assert rest[0].startswith("```python\nthird = 3\n```")
    assert "".join(rest).count("and then") == 1
    assert not desk.slack.errors


async def test_reset_text_is_replaced_in_what_people_saw(desk: Desktop):
    message = desk.ask()
    reply = desk.reply(message)
    await reply.append("Half an answer that the model took ")
    await reply.reset("")
    await reply.append("The real answer.")
    await reply.close(make_run("The real answer."))
    [answer] = desk.answers(message)
    assert answer.startswith("The real answer.")
    assert "Half" not in answer


async def test_takeover_finishes_in_place_what_the_ref_names(desk: Desktop):
    message = desk.ask()
    dead = desk.reply(message)
    await dead.append("Put your name in so many ")
    reply = desk.reply(message)
    await reply.recover(dead.ref, desk.identity)
    await reply.append("Put your name on top, in other words.")
    await reply.close(make_run("Put your name on top, in other words."))
    [answer] = desk.answers(message)
    assert answer.startswith("Put your name on top, in other words.")
    assert len(desk.traces(message)) == 1
    assert "streaming_until" not in desk.slack.own(CHANNEL)[0]


@pytest.mark.parametrize("has_ref", [True, False])
async def test_close_again_after_a_kill_posts_nothing_twice(desk: Desktop, has_ref: bool):
    message = desk.ask()
    run = make_run("Long answer. " * 1_500)
    first = desk.reply(message)
    await first.append(run.text)
    await first.close(run)
    before = desk.answers(message)
    assert len(before) > 1
    again = desk.reply(message)
    await again.recover(first.ref if has_ref else None, desk.identity)
    await again.close(run)
    assert "".join("".join(desk.answers(message)).split()) == "".join("".join(before).split())
    assert len(desk.traces(message)) == 1


async def test_takeover_clears_the_status_that_the_dead_process_left(desk: Desktop):
    message = desk.ask()
    run = make_run("Short answer.")
    first = desk.reply(message)
    await first.close(run)
    await desk.reply(message).status("I am restarting and will go on with this in a moment.")
    place = (CHANNEL, message.extra["thread"])
    assert "restarting" in desk.slack.statuses[place]
    again = desk.reply(message)
    await again.recover(first.ref, desk.identity)
    await again.close(run)
    assert desk.slack.statuses[place] == ""
    assert desk.slack.sessions[place] == "active"
    assert len(desk.slack.own(CHANNEL)) == 2


async def test_lost_stream_without_a_ref_is_found_in_the_thread(desk: Desktop):
    message = desk.ask()
    dead = desk.reply(message)
    await dead.append("Something half ")
    reply = desk.reply(message)
    await reply.recover(None, desk.identity)
    await reply.close(make_run("The whole."))
    [answer] = desk.answers(message)
    assert answer.startswith("The whole.")


async def test_question_that_only_waited_is_streamed_like_any_other(desk: Desktop):
    message = desk.ask()
    reply = desk.reply(message)
    await reply.recover(None, desk.identity)
    await reply.append("First sentence. Second one ")
    assert desk.answers(message) == ["First sentence. Second one "]
    await reply.close(make_run("First sentence. Second one."))
    assert len(desk.answers(message)) == 1


async def test_question_that_only_waited_can_be_stopped_like_any_other(desk: Desktop):
    message = desk.ask()
    reply = desk.reply(message)
    await reply.recover(None, desk.identity)
    await reply.status("Thinking…")
    assert desk.slack.sessions[CHANNEL, message.extra["thread"]] == "processing"
    await reply.close(make_run("Put your name on top."))
    assert desk.slack.sessions[CHANNEL, message.extra["thread"]] == "active"


async def test_answer_to_an_earlier_question_of_the_thread_is_left_alone(desk: Desktop):
    first = desk.ask("First?")
    second = desk.ask("Second?", thread_ts=first.extra["ts"])
    reply = desk.reply(first)
    await reply.close(make_run("Answer one."))
    reply = desk.reply(second)
    await reply.recover(None, desk.identity)
    await reply.close(make_run("Answer two."))
    one, two = desk.answers(second)
    assert one.startswith("Answer one.")
    assert two.startswith("Answer two.")
    assert len(desk.traces(second)) == 2


async def test_deleted_thread_leaves_nothing_at_top_level(desk: Desktop):
    message = desk.ask()
    desk.slack.channels[CHANNEL].clear()
    desk.slack.has_streams = False
    reply = desk.reply(message)
    await reply.close(make_run("Too late."))
    assert desk.slack.own(CHANNEL) == []


async def test_thread_deleted_before_its_trace_leaves_no_trace_at_top_level(desk: Desktop):
    message = desk.ask()
    reply = desk.reply(message)
    await reply.append("Put your name on top ")
    posting = desk.slack.hold("chat.postMessage")
    closing = asyncio.create_task(reply.close(make_run("Put your name on top.")))
    await wait_until(lambda: desk.slack.count()["chat.postMessage"] == 1)
    desk.slack.channels[CHANNEL].clear()
    posting.set()
    await closing
    assert desk.slack.own(CHANNEL) == []


async def test_withdrawn_question_gets_no_answer_and_no_trace(desk: Desktop):
    message = desk.ask()
    reply = desk.reply(message)
    await reply.append("Begun with some words ")
    desk.withdrawn.add(message.id)
    await reply.close(make_run("Begun with some words", reason=StopReason.CANCELLED))
    assert desk.slack.own(CHANNEL) == []


@pytest.mark.parametrize("how", ["root", "root with a tombstone", "follow-up"])
async def test_question_whose_deletion_another_process_was_told_of_leaves_nothing(
    desk: Desktop, how: str
):
    root = desk.ask()
    message = desk.ask("And then?", thread_ts=root.extra["ts"]) if how == "follow-up" else root
    reply = desk.reply(message)
    await reply.append("Begun with some words ")
    asked = desk.slack.find(CHANNEL, str(message.extra["ts"]))
    assert asked is not None
    if how == "root with a tombstone":
        asked |= {"subtype": "tombstone", "user": "USLACKBOT"}
    else:
        desk.slack.channels[CHANNEL].remove(asked)
    await reply.close(make_run("Begun with some words", reason=StopReason.CANCELLED))
    assert desk.slack.own(CHANNEL) == []


async def test_cancelled_answer_stays_where_slack_does_not_tell_of_its_question(desk: Desktop):
    message = desk.ask()
    reply = desk.reply(message)
    desk.slack.fail("conversations.replies", "ratelimited", retry_after_s=60)
    await reply.close(make_run("Begun with some words", reason=StopReason.CANCELLED))
    assert len(desk.answers(message)) == 1
