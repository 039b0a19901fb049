"""The real process: facts, forgetting, buttons, private views; each only for whom they are."""

import json
import signal
import time
from collections.abc import AsyncGenerator
from typing import Any

import pytest
import pytest_asyncio

from tests.anthropic_server import Reply, Text, ToolUse
from tests.slack_rules import texts_of
from tests.support import wait_until
from tests.support_slack import World, elements, open_world

pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def world(tmp_path_factory: pytest.TempPathFactory) -> AsyncGenerator[World]:
    async with open_world(tmp_path_factory.mktemp("slack")) as world:
        await world.start()
        yield world


async def _remember(
    world: World, channel: str, user: str, key: str, value: str, **fields: Any
) -> str:
    """`user` tells the bot something; the question's ts once it is answered."""
    text = f"please remember {value}"
    world.rules[text] = [
        Reply([ToolUse("remember", {"key": key, "value": value})]),
        Reply([Text("Noted, thank you.")]),
    ]
    thread = fields.get("thread_ts")
    before = len(world.slack.answers(channel, thread)) if thread else 0
    ts = await world.slack.mention(channel, user, text, **fields)
    await world.answered(channel, thread or ts, before + 1)
    await world.calm()
    return ts


async def _private(world: World, count: int) -> dict[str, Any]:
    """The newest private answer, once there are `count`."""
    await wait_until(lambda: len(world.slack.responses) >= count, 20)
    return world.slack.responses[-1]


async def _slash(world: World, command: str, user: str, channel: str) -> dict[str, Any]:
    before = len(world.slack.responses)
    await world.slack.slash(command, user, channel)
    answer = await _private(world, before + 1)
    assert answer["response_type"] == "ephemeral"
    return answer


async def _press(
    world: World, user: str, channel: str, element: dict[str, Any], **extra: Any
) -> dict[str, Any]:
    before = len(world.slack.responses)
    await world.slack.click(user, channel, element, **extra)
    return await _private(world, before + 1)


def _shown(answer: dict[str, Any]) -> str:
    return " ".join(texts_of(answer.get("blocks", []))) or answer["text"]


async def test_fact_is_announced_by_key_listed_privately_and_deleted_by_its_owner(world: World):
    channel = world.channel()
    await _remember(world, channel, "U1", "work place", "I prefer quiet offices")
    public = str(world.slack.own(channel))
    assert "Remembered: work place" in public
    assert "quiet offices" not in public
    listed = await _slash(world, "/memory", "U1", channel)
    assert "work place: I prefer quiet offices" in _shown(listed)
    assert "quiet" not in _shown(await _slash(world, "/memory", "U2", channel))
    [delete] = elements(listed["blocks"], "fact_delete")
    assert "quiet" not in delete["value"]
    assert "work place" not in delete["value"]
    await _press(world, "U2", channel, delete)
    assert "quiet offices" in _shown(await _slash(world, "/memory", "U1", channel))
    await _press(world, "U1", channel, delete)
    assert "quiet" not in _shown(await _slash(world, "/memory", "U1", channel))


async def test_owner_alone_sees_the_value_and_undoes_it(world: World):
    channel = world.channel()
    await _remember(world, channel, "U1", "team", "I work in sales")
    await wait_until(lambda: bool(world.slack.ephemeral), 10)
    shown = world.slack.ephemeral[-1]
    assert (shown["user"], shown["channel"]) == ("U1", channel)
    assert "I work in sales" in str(shown["blocks"])
    [undo] = elements(shown["blocks"], "undo")
    assert "changed since" in _shown(await _press(world, "U2", channel, undo))
    assert "Undone" in _shown(await _press(world, "U1", channel, undo))
    assert "or is gone" in _shown(await _press(world, "U1", channel, undo))
    assert "sales" not in _shown(await _slash(world, "/memory", "U1", channel))


async def test_fact_said_in_somebody_elses_thread_belongs_to_who_said_it(world: World):
    channel = world.channel()
    ts, _ = await world.ask(channel, "U1", "What is a resume, in one line?")
    await _remember(world, channel, "U2", "shift", "I cover Fridays", thread_ts=ts)
    assert "Fridays" in _shown(await _slash(world, "/memory", "U2", channel))
    assert "Fridays" not in _shown(await _slash(world, "/memory", "U1", channel))
    await world.ask(channel, "U1", "Which facts do you know, U1 asks?")
    [request] = world.asked("U1 asks?")[:1]
    assert "Fridays" not in request


async def test_forget_in_a_channel_covers_its_threads_and_nobody_else(world: World):
    channel, other = world.channel(), world.channel()
    ts = await _remember(world, channel, "U1", "city", "I live in Malmö")
    await world.slack.say(channel, "U1", "does Malmö matter for a resume?", thread_ts=ts)
    await world.answered(channel, ts, 2)
    await _remember(world, channel, "U12", "city", "I live in Turku")
    await _remember(world, other, "U1", "city", "I live in Oulu")
    preview = await _slash(world, "/forget", "U1", channel)
    assert "1 fact" in _shown(preview)
    assert "2 questions with their answers" in _shown(preview)
    button = elements(preview["blocks"], "forget_channel")[0]
    assert button["style"] == "danger"
    assert button["confirm"]
    result = await _press(world, "U1", channel, button)
    assert result["replace_original"] is True
    assert "Forgotten in this channel and its threads: 1 fact, 2 questions" in result["text"]
    await world.slack.say(channel, "U1", "what do you still know, echo?", thread_ts=ts)
    await world.answered(channel, ts, 3)
    [request] = world.asked("still know, echo?")[:1]
    assert "Malmö" not in request
    assert "Turku" in _shown(await _slash(world, "/memory", "U12", channel))
    assert "Oulu" in _shown(await _slash(world, "/memory", "U1", other))
    everywhere = elements((await _slash(world, "/forget", "U1", channel))["blocks"], "forget_every")
    await _press(world, "U1", channel, everywhere[0])
    assert "Oulu" not in _shown(await _slash(world, "/memory", "U1", other))
    assert "Turku" in _shown(await _slash(world, "/memory", "U12", channel))


async def test_forgetting_during_a_run_keeps_nothing_of_it(world: World):
    channel = world.channel()
    world.rules["walrus"] = [Reply([Text("About the walrus.")], delay_s=1.5)]
    ts = await world.slack.mention(channel, "U1", "tell me of the walrus")
    await wait_until(lambda: bool(world.asked("walrus")), 20)
    preview = await _slash(world, "/forget", "U1", channel)
    await _press(world, "U1", channel, elements(preview["blocks"], "forget_channel")[0])
    await world.answered(channel, ts)
    await world.slack.say(channel, "U1", "what was it about, echo two?", thread_ts=ts)
    await world.answered(channel, ts, 2)
    [request] = world.asked("echo two?")[:1]
    assert "walrus" not in request


async def test_forget_and_memory_work_as_words_in_a_thread_and_from_the_message_menu(world: World):
    channel = world.channel()
    ts = await _remember(world, channel, "U1", "color", "I like green")
    before = len(world.slack.ephemeral)
    await world.slack.mention(channel, "U1", "memory", thread_ts=ts)
    await wait_until(lambda: len(world.slack.ephemeral) == before + 1, 20)
    listed = world.slack.ephemeral[-1]
    assert (listed["user"], listed["thread_ts"]) == ("U1", ts)
    assert "I like green" in str(listed["blocks"])
    await world.slack.mention(channel, "U1", "forget", thread_ts=ts)
    await wait_until(lambda: len(world.slack.ephemeral) == before + 2, 20)
    assert elements(world.slack.ephemeral[-1]["blocks"], "forget_channel")
    count = len(world.slack.responses)
    await world.slack.shortcut("forget_thread", "U1", channel, ts)
    menu = await _private(world, count + 1)
    cancelled = await _press(world, "U1", channel, elements(menu["blocks"], "cancel")[0])
    assert cancelled["text"] == "Nothing was forgotten."
    assert "green" in _shown(await _slash(world, "/memory", "U1", channel))


async def test_home_tab_lists_all_sessions_and_forgets_from_there(world: World):
    first, second = world.channel(), world.channel()
    await _remember(world, first, "U5", "food", "I like soup")
    await _remember(world, second, "U5", "drink", "I like milk")
    await world.slack.event({"type": "app_home_opened", "user": "U5", "tab": "messages"})
    await world.slack.event({"type": "app_home_opened", "user": "U5", "tab": "home"})
    await wait_until(lambda: bool(world.slack.views), 20)
    shown = world.slack.views[-1]
    assert shown["user_id"] == "U5"
    assert "soup" in str(shown["view"])
    assert "milk" in str(shown["view"])
    delete = elements(shown["view"], "fact_delete")[0]
    count = len(world.slack.views)
    view = {"type": "home"}
    await world.slack.click("U5", "", delete, view=view)
    await wait_until(lambda: len(world.slack.views) > count, 20)
    assert len(elements(world.slack.views[-1]["view"], "fact_delete")) == 1
    every = elements(shown["view"], "forget_everywhere")[0]
    await world.slack.click("U5", "", every, view=view)
    await wait_until(lambda: not elements(world.slack.views[-1]["view"], "fact_delete"), 20)
    assert "Nothing so far." in str(world.slack.views[-1]["view"])
    result = "Forgotten in this whole workspace: 1 fact, 2 questions with their answers"
    assert result in str(world.slack.views[-1]["view"])


async def test_home_tab_does_not_keep_quiet_when_redis_hangs(world: World):
    channel = world.channel()
    await _remember(world, channel, "U6", "tea", "I like mint tea")
    await world.slack.event({"type": "app_home_opened", "user": "U6", "tab": "home"})
    await wait_until(lambda: "mint tea" in str(world.slack.views[-1:]), 20)
    shown = world.slack.views[-1]["view"]
    world.redis.process.send_signal(signal.SIGSTOP)
    try:
        every = elements(shown, "forget_everywhere")[0]
        await world.slack.click("U6", "", every, view={"type": "home"})
        await wait_until(lambda: "could not forget everything" in str(world.slack.views[-1]), 40)
    finally:
        world.redis.process.send_signal(signal.SIGCONT)
    delete = elements(shown, "fact_delete")[0]
    await world.slack.click("U6", "", delete, view={"type": "home"})
    await wait_until(lambda: "Nothing so far." in str(world.slack.views[-1]), 20)


async def test_full_trace_opens_for_the_asker_alone(world: World):
    channel = world.channel()
    ts, _ = await world.ask(channel, "U1", "What belongs at the top of a resume?")
    await wait_until(lambda: len(world.slack.traces(channel, ts)) == 1)
    trace = [m for m in world.slack.thread(channel, ts) if elements(m.get("blocks"), "trace")]
    [button] = elements(trace[0]["blocks"], "trace")
    for user, is_shown in (("U2", False), ("U1", True)):
        count = len(world.slack.views)
        await world.slack.click(user, channel, button)
        await wait_until(lambda count=count: len(world.slack.views) > count, 20)
        text = json.dumps(world.slack.views[-1], ensure_ascii=False)
        assert ("search_docs" in text) is is_shown
        assert ("Only whoever asked" in text) is not is_shown


async def test_thumbs_are_stored_with_the_run(world: World):
    channel = world.channel()
    ts, _ = await world.ask(channel, "U1", "What belongs at the end of a resume?")
    [feedback] = elements(world.slack.thread(channel, ts)[0]["blocks"], "feedback")
    value = feedback["negative_button"]["value"]
    pressed = {"type": "feedback_buttons", "action_id": "feedback", "value": value}
    assert "noted" in _shown(await _press(world, "U1", channel, pressed))
    refused = "Only whoever asked can rate this answer, and only for some days."
    assert _shown(await _press(world, "U2", channel, pressed)) == refused


async def test_slash_command_is_acknowledged_in_time_while_redis_hangs(world: World):
    channel = world.channel()
    await _remember(world, channel, "U1", "pet", "I have a dog")
    button = elements((await _slash(world, "/forget", "U1", channel))["blocks"], "forget_ch")[0]
    count = len(world.slack.responses)
    world.redis.process.send_signal(signal.SIGSTOP)
    try:
        started = time.monotonic()
        for envelope in (
            await world.slack.slash("/memory", "U1", channel),
            await world.slack.click("U1", channel, button),
        ):
            await wait_until(lambda envelope=envelope: envelope.acks > 0, 3)
        assert time.monotonic() - started < 3
        assert len(world.slack.responses) == count
    finally:
        world.redis.process.send_signal(signal.SIGCONT)
    await _private(world, count + 2)
    await world.calm()
    assert len(world.slack.responses) == count + 2
    assert "dog" not in _shown(await _slash(world, "/memory", "U1", channel))
    world.slack.errors.clear()


async def test_mute_that_is_not_saved_is_told(world: World):
    channel = world.channel()
    ts, _ = await world.ask(channel, "U1", "What belongs below a resume?")
    world.redis.process.send_signal(signal.SIGSTOP)
    try:
        await world.slack.mention(channel, "U1", "mute", thread_ts=ts)
        await wait_until(lambda: "did not work" in str(world.slack.answers(channel, ts)), 40)
    finally:
        world.redis.process.send_signal(signal.SIGCONT)
    assert "quiet" not in str(world.slack.answers(channel, ts))


async def test_mute_promises_nothing_in_a_direct_message(world: World):
    channel = world.channel("D")
    ts = await world.slack.say(channel, "U1", "mute")
    await wait_until(lambda: "whatever you write" in str(world.slack.answers(channel, ts)))
    assert "quiet in this thread" not in str(world.slack.answers(channel, ts))
