"""Runs that do not go straight: killed, ended, shared, stopped, refused; one whole answer each."""

import re
import time
from collections.abc import AsyncGenerator

import pytest
import pytest_asyncio

from tests.anthropic_script import HttpError
from tests.anthropic_server import Reply, Text, ToolUse
from tests.slack_server import BOT_USER, SlackServer
from tests.support import wait_until
from tests.support_slack import World, open_world

GRACE_S = "3"
QUESTION = "What should I put at the top of my resume?"
WORDS = " ".join(f"word{n:03d}" for n in range(300))


pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def world(tmp_path_factory: pytest.TempPathFactory) -> AsyncGenerator[World]:
    async with open_world(tmp_path_factory.mktemp("slack")) as world:
        yield world


async def test_kill_in_mid_stream_gives_one_complete_answer_and_one_trace(world: World):
    [first] = await world.run(1, GRACE_S=GRACE_S)
    channel = world.channel()
    # Two rounds, so that there is a checkpoint to resume from.
    world.rules["count"] = [
        Reply([ToolUse("search_docs", {"query": "resume"})]),
        Reply([Text(WORDS)], delta_s=0.05),
        Reply([Text(WORDS)]),
    ]
    ts = await world.slack.mention(channel, "U1", "count for me")
    await wait_until(lambda: "word020" in "".join(world.slack.answers(channel, ts)), 60)
    second = world.bot(GRACE_S=GRACE_S)
    second.start()
    first.kill()
    [answer] = await world.answered(channel, ts)
    await wait_until(lambda: len(world.slack.traces(channel, ts)) == 1, 20)
    await world.calm()
    assert re.findall(r"word\d{3}", answer) == WORDS.split()
    assert "Stopped: done" in answer
    assert len(world.slack.own(channel)) == 2
    assert len(world.asked("count for me")) == 3
    assert all("streaming_until" not in message for message in world.slack.own(channel))
    await world.slack.say(channel, "U1", "and a followup after it?", thread_ts=ts)
    await world.answered(channel, ts, 2)


async def test_terminated_process_hands_over_and_the_next_one_finishes(world: World):
    [bot] = await world.run(1, GRACE_S=GRACE_S)
    channel = world.channel()
    world.rules["wait"] = [Reply([Text("Done in the end.")], delay_s=60), Reply([Text("Done.")])]
    ts = await world.slack.mention(channel, "U1", "wait for it")
    await wait_until(lambda: bool(world.asked("wait for it")), 60)
    assert await bot.end() == 0
    assert "is restarting and will go on" in world.slack.statuses[channel, ts]
    await world.slack.say(channel, "U1", "still there?", thread_ts=ts)
    await world.run(1, GRACE_S=GRACE_S)
    answers = await world.answered(channel, ts, 2)
    assert answers[0].startswith("Done.")
    assert world.slack.statuses[channel, ts] == ""


async def test_answer_under_way_is_finished_within_the_grace_time(world: World):
    [bot] = await world.run(1, GRACE_S=GRACE_S)
    channel = world.channel()
    world.rules["soon"] = [Reply([Text("Here it is.")], delay_s=1.0)]
    ts = await world.slack.mention(channel, "U1", "soon, please")
    await wait_until(lambda: bool(world.asked("soon, please")), 60)
    assert await bot.end() == 0
    [answer] = world.slack.answers(channel, ts)
    assert answer.startswith("Here it is.")
    assert len(world.slack.own(channel)) == 1


async def test_two_processes_answer_each_event_once_and_workspaces_share_nothing(world: World):
    await world.run(0)
    await world.run(2, OFFLINE="true")
    channel = world.channel()
    events = [world.slack.put(channel, "U1", f"<@{BOT_USER}> {QUESTION} {n}") for n in range(5)]
    for event in events:
        for kind in ("app_mention", "message", "app_mention"):
            await world.slack.event({**event, "type": kind})
    for event in events:
        await world.answered(channel, event["ts"])
    await world.calm()
    assert [len(world.slack.answers(channel, event["ts"])) for event in events] == [1] * 5
    assert [len(world.slack.traces(channel, event["ts"])) for event in events] == [1] * 5
    async with SlackServer(team="T2") as elsewhere:
        bot = world.bot(SLACK_API_URL=elsewhere.url)
        bot.start()
        await wait_until(lambda: bool(elsewhere.sockets), 60)
        text = "what did we say before, other workspace?"
        ts = await elsewhere.mention(channel, "U1", text, thread_ts=events[0]["ts"])
        asked = "other workspace?"
        await wait_until(lambda: bool(world.asked(asked)), 20)
        assert QUESTION not in world.asked(asked)[0]
        await wait_until(lambda: "Stopped: " in str(elsewhere.own(channel)), 20)
        assert ts
        assert await bot.end() == 0
    await world.run(0)


@pytest.mark.parametrize("how", ["reaction", "stop button", "answer reaction"])
async def test_asker_stops_a_run_and_nobody_else_can(world: World, how: str):
    await world.run(1, GRACE_S=GRACE_S)
    channel = world.channel()
    text = f"talk for long, {how}"
    long_answer = Text("Many words to say here. " * 200)
    world.rules[text] = [Reply([long_answer], delta_s=0.1)]
    ts = await world.slack.mention(channel, "U1", text)
    await wait_until(lambda: len(world.slack.thread(channel, ts)) == 1, 20)
    target = world.slack.thread(channel, ts)[0]["ts"] if how == "answer reaction" else ts

    async def stop(user: str) -> None:
        if how == "stop button":
            event = {"type": "agent_session_stopped", "channel": channel, "thread_ts": ts}
            await world.slack.event({**event, "user": user, "streaming_message_ts": []})
        else:
            item = {"type": "message", "channel": channel, "ts": target}
            event = {"type": "reaction_added", "reaction": "octagonal_sign", "item": item}
            await world.slack.event({**event, "user": user})

    await stop("U2")
    await world.slack.event(
        {"type": "reaction_added", "reaction": "eyes", "user": "U1", "item": {}}
    )
    started = time.monotonic()
    await stop("U1")
    [answer] = await world.answered(channel, ts)
    assert time.monotonic() - started < 5
    assert answer.startswith("Many words to say here.")
    assert "I stopped because you asked me to. Stopped: cancelled · " in answer
    assert world.slack.sessions[channel, ts] == "active"


async def test_stopping_a_question_that_waits_leaves_the_one_before_it_alone(world: World):
    await world.run(1, GRACE_S=GRACE_S)
    channel = world.channel()
    world.rules["goes first"] = [Reply([Text("The whole first answer.")], delay_s=2.0)]
    ts = await world.slack.mention(channel, "U1", "this goes first")
    await wait_until(lambda: bool(world.asked("goes first")), 20)
    waiting = await world.slack.say(channel, "U1", "and this waits", thread_ts=ts)
    stop = {"type": "reaction_added", "user": "U1", "reaction": "octagonal_sign"}
    await world.slack.event(
        {**stop, "item": {"type": "message", "channel": channel, "ts": waiting}}
    )
    [answer] = await world.answered(channel, ts)
    await world.calm()
    assert "The whole first answer." in answer
    assert "Stopped: done" in answer
    assert len(world.slack.answers(channel, ts)) == 1
    assert not world.asked("and this waits")


async def test_deleted_question_leaves_nothing_behind(world: World):
    await world.run(1, GRACE_S=GRACE_S)
    channel = world.channel()
    world.rules["never mind"] = [Reply([Text("Too late. " * 50)], delay_s=1.0, delta_s=0.05)]
    ts = await world.slack.mention(channel, "U1", "never mind this")
    await wait_until(lambda: bool(world.asked("never mind")), 20)
    asked, left = world.slack.find(channel, ts), world.model.disconnects
    assert asked is not None
    world.slack.channels[channel].remove(asked)
    event = {"type": "message", "subtype": "message_deleted", "channel": channel}
    await world.slack.event({**event, "deleted_ts": ts, "previous_message": asked})
    await world.calm()
    await wait_until(lambda: world.model.disconnects > left)
    await world.calm()
    assert world.slack.own(channel) == []


async def test_failed_delivery_is_tried_again_and_posts_nothing_twice(world: World):
    await world.run(1, GRACE_S=GRACE_S)
    channel = world.channel()
    for method in ("chat.stopStream", "chat.update"):
        world.slack.fail(method, "internal_error", times=2)
    text = "Once and only once. " * 30
    world.rules["once only"] = [
        Reply([ToolUse("search_docs", {"query": "top"})]),
        Reply([Text(text)]),
    ]
    ts, answer = await world.ask(channel, "U1", "once only, please")
    await wait_until(lambda: len(world.slack.traces(channel, ts)) == 1, 20)
    await world.calm()
    assert answer.count("Once and only once.") == 30
    assert len(world.slack.answers(channel, ts)) == 1
    assert len(world.asked("once only")) == 2
    world.slack.errors.clear()


async def test_rate_limited_for_hours_is_said_at_once(world: World):
    await world.run(1, GRACE_S=GRACE_S)
    channel = world.channel()
    world.rules["limited"] = [HttpError.rate_limited(62_291)]
    started = time.monotonic()
    _, answer = await world.ask(channel, "U1", "limited question")
    assert time.monotonic() - started < 15
    assert "The model is limiting our requests" in answer
    assert "Stopped: rate_limited" in answer
    assert " · run " in answer
