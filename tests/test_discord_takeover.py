"""Processes of the bot in Discord that die, freeze, restart or run twice: nothing lost or twice."""

import asyncio
import os
import signal
import time
from collections.abc import AsyncGenerator

import aiohttp
import pytest
import pytest_asyncio

from tests.anthropic_script import Reply, Text
from tests.support_discord import settle, wait_until
from tests.support_discord_process import Town, open_town

pytestmark = pytest.mark.asyncio(loop_scope="module")

QUESTION = "What should I put at the top of my resume?"


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def shared(tmp_path_factory: pytest.TempPathFactory) -> AsyncGenerator[Town]:
    async with open_town(tmp_path_factory.mktemp("discord")) as town:
        yield town


@pytest_asyncio.fixture(loop_scope="module")
async def town(shared: Town) -> AsyncGenerator[Town]:
    """The town with at most one bot, the one that the last test ended with."""
    shared.usual = {"GRACE_S": "0.5"}
    yield shared
    shared.keep_one()


async def test_kill_between_post_and_save_posts_nothing_twice(town: Town):
    bot = await town.ready()
    channel = town.channel()
    released = town.server.rest.hold("POST", rf"/channels/{channel['id']}/messages$")
    town.say(channel, town.ann, QUESTION)
    # Discord has it; the process never hears so
    await wait_until(lambda: town.server.sent(channel), 20)
    bot.kill()
    released.set()
    await town.start()
    [answer] = await town.answered(channel)
    thread = await town.thread(answer)
    await town.calm()
    assert len(town.server.sent(channel)) == 1
    assert len(town.server.sent(thread)) == 1
    assert len(town.asked(QUESTION)) <= 3


async def test_kill_in_mid_stream_finishes_the_same_post(town: Town):
    bot = await town.ready()
    channel = town.channel()
    town.rules["long story"] = [Reply([Text("Once upon a time. " * 20)], delta_s=0.1)]
    town.say(channel, town.ann, "tell a long story")
    [post] = await wait_until(lambda: town.server.sent(channel), 20)
    await wait_until(lambda: len(post["content"]) > 60, 20)
    bot.kill()
    await town.start()
    [answer] = await town.answered(channel)
    assert answer["id"] == post["id"]
    assert answer["content"].startswith("Once upon a time. " * 19)
    await town.thread(answer)
    await town.calm()
    assert len(town.server.sent(channel)) == 1


@pytest.mark.parametrize("where", ["threads$", "thread message"])
async def test_kill_while_the_trace_is_posted_gives_one_thread_and_one_trace(
    town: Town, where: str
):
    bot = await town.ready()
    channel = town.channel()
    pattern = r"/threads$"
    if where == "thread message":
        # the trace goes to the thread, whose id is the answer's
        known = town.server.world.channels
        pattern = rf"/channels/(?!{'|'.join(known)})\d+/messages$"
    released = town.server.rest.hold("POST", pattern)
    town.say(channel, town.ann, QUESTION)
    [answer] = await town.answered(channel)
    await wait_until(lambda: answer["id"] in town.server.world.channels, 20)
    thread = town.server.world.channels[answer["id"]]
    if where == "thread message":
        await wait_until(lambda: town.server.sent(thread), 20)
    bot.kill()
    released.set()
    await town.start()
    await wait_until(lambda: town.server.sent(thread), 20)
    await town.calm()
    assert len(town.server.sent(thread)) == 1
    assert len(town.server.sent(channel)) == 1


async def test_terminated_process_hands_its_run_over_and_the_followup_is_answered(town: Town):
    bot = await town.ready()
    channel = town.channel()
    town.rules["slow story"] = [Reply([Text("The story. ")], delay_s=5.0), Reply([Text("Told.")])]
    raw = town.say(channel, town.ann, "a slow story")
    await wait_until(lambda: town.asked("slow story"), 20)
    assert await bot.end() == 0
    await town.start()
    [answer] = await town.answered(channel)
    assert answer["content"].startswith("Told.")
    town.server.reply(channel, town.ann, f"{town.me} and what then?", raw)
    await town.answered(channel, 2)
    assert "slow story" in town.asked("and what then?")[0]


async def test_interrupted_answer_says_so_until_it_is_finished_in_place(town: Town):
    bot = await town.ready()
    channel = town.channel()
    town.rules["half a story"] = [
        Reply([Text("Half a story. " * 60)], delta_s=0.3),
        Reply([Text("All of it.")]),
    ]
    town.say(channel, town.ann, "half a story")
    [post] = await wait_until(lambda: town.server.sent(channel), 20)
    assert await bot.end() == 0
    assert post["content"].startswith("Half a story.")
    assert "I am restarting" in post["content"]
    await town.start()
    [answer] = await town.answered(channel)
    assert answer["id"] == post["id"]
    assert answer["content"].startswith("All of it.")
    assert "restarting" not in answer["content"]


async def test_run_that_ends_within_the_grace_is_answered_before_the_process_ends(town: Town):
    (await town.ready()).kill()
    bot = await town.start(GRACE_S="10")
    channel = town.channel()
    town.rules["short wait"] = [Reply([Text("Here you are.")], delay_s=1.0)]
    town.say(channel, town.ann, "a short wait")
    await wait_until(lambda: town.asked("short wait"), 20)
    assert await bot.end() == 0
    [answer] = town.answers(channel)
    assert answer["content"].startswith("Here you are.")


async def test_frozen_process_does_not_write_over_the_one_that_took_over(town: Town):
    first = await town.ready()
    channel = town.channel()
    town.rules["frozen"] = [
        Reply([Text("Old words. " * 40)], delta_s=0.1),
        Reply([Text("New words.")]),
    ]
    town.say(channel, town.ann, "a frozen question")
    [post] = await wait_until(lambda: town.server.sent(channel), 20)
    assert first.process is not None
    os.kill(first.process.pid, signal.SIGSTOP)
    try:
        await town.start()
        [answer] = await town.answered(channel)
        final = answer["content"]
        assert final.startswith("New words.")
        assert answer["id"] == post["id"]
    finally:
        os.kill(first.process.pid, signal.SIGCONT)
    await settle(town.server, 2.0)
    assert [p["content"] for p in town.server.sent(channel)] == [final]


async def test_what_was_asked_while_away_is_answered_once(town: Town):
    channel = town.channel()
    bot = await town.ready()
    before = await town.ask(channel, town.ann, "asked before you went away")
    thread = await town.thread(before)
    await town.calm()
    bot.kill()
    await wait_until(lambda: not town.server.is_connected)
    town.server.world.post(channel, town.ann, f"{town.me} asked while you were away")
    town.server.world.post(thread, town.ben, "a follow-up while you were away")
    town.server.world.post(channel, town.ann, "not for you")
    await town.start()
    await town.answered(channel, 2)
    await town.answered(thread, 1)
    await town.calm()
    assert len(town.answers(channel)) == 2
    followup = town.asked("a follow-up while you were away")
    assert "asked before you went away" in followup[0]
    assert len(town.asked("asked before you went away")) == 2


async def test_two_processes_of_one_token_answer_once_and_do_a_command_once(town: Town):
    await town.ready()
    await town.start()
    await wait_until(lambda: len(town.server._sockets) == 2, 20)
    channel = town.channel()
    await town.ask(channel, town.ann, QUESTION)
    token = town.server.command(channel, town.ann, "memory")
    await wait_until(lambda: town.server.rest.responses.get(token), 20)
    await town.calm()
    assert len(town.answers(channel)) == 1
    assert len(town.server.rest.responses[token]) == 1


async def test_forget_with_a_slow_store_is_acknowledged_in_time_and_finishes(town: Town):
    await town.ready()
    channel = town.channel()
    await town.ask(channel, town.ann, QUESTION)
    await town.calm()
    assert town.redis.ask("CLIENT PAUSE 4000 ALL") == "+OK"
    token = town.server.click(channel, town.ann, {}, "forget:channel")
    state = town.server.rest.interactions[token]
    await wait_until(lambda: "callback" in state)
    assert asyncio.get_running_loop().time() - state["sent_at"] < 3
    [shown] = await wait_until(lambda: town.server.rest.responses.get(token), 20)
    assert shown["content"].startswith("Forgotten")
    assert "1 question with its answer" in shown["content"]


async def test_health_page_and_exit_codes(town: Town, unused_tcp_port: int):
    (await town.ready()).kill()
    bot = await town.start(HEALTH_PORT=str(unused_tcp_port))
    async with aiohttp.ClientSession() as session:
        url = f"http://127.0.0.1:{unused_tcp_port}/healthz"
        deadline = time.monotonic() + 20
        while True:
            async with session.get(url) as response:
                body = await response.json()
                if response.status == 200:
                    break
            assert time.monotonic() < deadline, body
            await asyncio.sleep(0.05)
    assert body["ok"]
    assert body["discord"]
    assert await bot.end() == 0

    wrong = town.bot(DISCORD_GUILDS="1 2")
    wrong.start()
    assert await wrong.ended() == 2
    assert "server 1" in wrong.log
    assert "server 2" in wrong.log

    wrong = town.bot(DISCORD_TOKEN="", DISCORD_CATCH_UP_MINUTES="99")
    wrong.start()
    assert await wrong.ended() == 2
    assert "DISCORD_TOKEN" in wrong.log
    assert "DISCORD_CATCH_UP_MINUTES" in wrong.log


async def test_refused_intent_ends_with_the_remedy(town: Town):
    town.server.is_privileged_refused = True
    try:
        bot = town.bot()
        bot.start()
        assert await bot.ended() == 2
        assert "Message Content Intent" in bot.log
    finally:
        town.server.is_privileged_refused = False
