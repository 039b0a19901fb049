"""The real process of the bot in a server: who is answered, where, in which order."""

import time
from collections.abc import AsyncGenerator

import pytest
import pytest_asyncio

from tests.anthropic_script import HttpError, Reply, Text, ToolUse
from tests.support_discord import wait_until
from tests.support_discord_process import Town, open_town

pytestmark = pytest.mark.asyncio(loop_scope="module")

QUESTION = "What should I put at the top of my resume?"


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def town(tmp_path_factory: pytest.TempPathFactory) -> AsyncGenerator[Town]:
    async with open_town(tmp_path_factory.mktemp("discord")) as town:
        await town.start()
        yield town


async def test_mention_is_answered_with_source_footer_and_a_thread_for_followups(town: Town):
    channel = town.channel()
    answer = await town.ask(channel, town.ann, QUESTION)
    assert "[1] " in answer["content"]
    assert "-# Stopped: done · 2 model calls · 1 search · " in answer["content"]
    thread = await town.thread(answer)
    assert thread["name"] == QUESTION
    town.server.say(thread, town.ben, "And on a second page, in my thread?")
    await town.answered(thread, 1)
    [request] = town.asked("And on a second page, in my thread?")[:1]
    assert QUESTION in request
    await town.calm()
    assert len(town.answers(channel)) == 1


async def test_repeated_deliveries_of_one_mention_give_one_answer(town: Town):
    channel = town.channel()
    raw = town.say(channel, town.ann, QUESTION)
    town.server.dispatch("MESSAGE_CREATE", raw)
    await town.answered(channel)
    town.server.replay.append(("MESSAGE_CREATE", raw))
    resumes = len(town.server.resumes)
    await town.server.drop()
    await wait_until(lambda: len(town.server.resumes) > resumes and town.server.is_connected, 20)
    await town.calm()
    assert len(town.answers(channel)) == 1


async def test_followup_during_a_run_is_answered_next_while_others_go_on(town: Town):
    channel = town.channel()
    town.rules["slow one"] = [Reply([Text("Slow answer. ")], delay_s=2.0)]
    raw = town.say(channel, town.ann, "slow one, please")
    await wait_until(lambda: town.asked("slow one"), 20)
    # nothing is posted yet, so the follow-up is a reply to the question itself
    town.server.reply(channel, town.ann, f"{town.me} and the follow-up of it?", raw)
    other = town.channel()
    await town.ask(other, town.ben, QUESTION)
    assert town.answers(channel) == [] or "Slow" not in str(town.answers(channel)[0])
    posts = await town.answered(channel, 2)
    assert len(posts) == 2


async def test_reply_to_an_answer_goes_on_with_its_conversation(town: Town):
    channel = town.channel()
    town.rules["code word"] = [Reply([Text("The code word is tangerine.")])]
    answer = await town.ask(channel, town.ann, "tell me the code word")
    await town.thread(answer)
    town.server.reply(channel, town.ann, "What was that once more?", answer)
    await town.answered(channel, 2)
    assert "tangerine" in town.asked("What was that once more?")[0]


async def test_forget_during_a_run_leaves_nothing_of_it(town: Town):
    channel = town.channel()
    town.rules["remember zebra"] = [
        Reply([ToolUse("remember", {"key": "animal", "value": "zebra"})], delay_s=1.5),
        Reply([Text("Noted.")]),
    ]
    raw = town.say(channel, town.ann, "remember zebra is my animal")
    await wait_until(lambda: town.asked("remember zebra"), 20)
    token = town.server.click(channel, town.ann, {}, "forget:channel")
    await wait_until(lambda: town.server.rest.responses.get(token), 20)
    [answer] = await town.answered(channel)
    assert answer["message_reference"]["message_id"] == raw["id"]
    thread = await town.thread(answer)
    town.server.say(thread, town.ann, "What do you know of me now?")
    await town.answered(thread)
    assert "zebra" not in town.asked("What do you know of me now?")[0]


async def test_other_bots_start_nothing_and_are_context_for_people(town: Town):
    channel = town.channel()
    thread = await town.thread(await town.ask(channel, town.ann, QUESTION))
    await town.calm()
    requests, posts = len(town.model.requests), len(town.server.sent(channel))
    other = town.server.world.user("deployer", is_bot=True)
    town.server.world.join(town.guild, other)
    town.server.say(thread, other, "done with release 77")
    town.say(channel, other, "and mentioned")
    town.say(thread, other, "and mentioned here")
    await town.calm()
    assert (len(town.model.requests), len(town.server.sent(channel))) == (requests, posts)
    town.server.say(thread, town.ann, "What did the deployer say?")
    await town.answered(thread)
    request = town.asked("What did the deployer say?")[0]
    assert "done with release 77" in request
    assert "deployer" in request


async def test_alert_under_which_somebody_asks_reaches_the_model_marked(town: Town):
    channel = town.channel()
    monitor = town.server.world.user("monitor", is_bot=True)
    embed = {"type": "rich", "description": "Disk of host db-7 is 93 % full"}
    alert = town.server.world.post(channel, monitor, "", embeds=[embed])
    town.server.reply(channel, town.ann, f"{town.me} What does this mean here?", alert)
    await town.answered(channel)
    request = town.asked("What does this mean here?")[0]
    assert "Disk of host db-7" in request
    assert "embed in the message replied to" in request


async def test_own_role_is_answered_and_everyone_is_not(town: Town):
    channel = town.channel()
    town.server.say(channel, town.ann, "@everyone lunch?")
    town.server.say(channel, town.ann, f"<@&{town.guild['role']}> role call question")
    await town.answered(channel)
    await town.calm()
    assert len(town.answers(channel)) == 1
    assert "<@&" not in town.asked("role call question")[0]


async def test_paste_and_forward_reach_the_model(town: Town):
    channel = town.channel()
    file = town.server.world.attachment(town.server.rest.base, "message.txt", b"paste " * 500)
    await town.ask(channel, town.ann, "what is in my paste?", attachments=[file])
    assert "paste paste paste" in town.asked("what is in my paste?")[0]


async def test_nothing_that_a_model_quotes_pings_anybody_or_leaks(town: Town):
    channel = town.channel()
    tokens = f"@everyone <@&{town.guild['role']}> <@{town.ben['id']}> @here"
    connection = "redis://admin:hunter2hunter2@db.internal:6379/0"
    town.rules["quote it"] = [
        Reply(
            [
                ToolUse("search_docs", {"query": f"{tokens} resume"}),
                ToolUse("remember", {"key": "phone", "value": "+49 171 5550123"}),
                ToolUse("read_doc", {"path": connection}),
            ]
        ),
        Reply([Text(f"The page says {tokens} and `{tokens}`.\n```\n{tokens}\n```\n")]),
    ]
    text = "quote it, and remember that my phone is +49 171 5550123"
    answer = await town.ask(channel, town.ann, text)
    thread = await town.thread(answer)
    await town.calm()
    assert town.server.rest.pings == []
    trace = town.server.sent(thread)[0]["content"]
    assert "remember · phone · " in trace
    public = str(town.server.sent(channel)) + str(town.server.sent(thread)) + thread["name"]
    public = public.replace(text, "")
    assert "5550123" not in public
    assert "hunter2hunter2" not in public
    assert "phone" in answer["content"]


async def test_fact_belongs_to_whoever_said_it(town: Town):
    channel = town.channel()
    thread = await town.thread(await town.ask(channel, town.ann, QUESTION))
    town.rules["I cover Fridays"] = [
        Reply([ToolUse("remember", {"key": "shift", "value": "covers Fridays"})]),
        Reply([Text("Noted.")]),
    ]
    town.server.say(thread, town.ben, "remember: I cover Fridays")
    await town.answered(thread)
    other = town.channel()
    del other
    for user, knows in ((town.ann, False), (town.ben, True)):
        token = town.server.command(channel, user, "memory")
        shown = await wait_until(lambda token=token: town.server.rest.responses.get(token), 20)
        assert ("Fridays" in shown[0]["content"]) is knows


async def test_forget_takes_ones_own_alone(town: Town):
    channel = town.channel()
    for user, fact in ((town.ann, "violet"), (town.ben, "crimson")):
        town.rules[f"{fact} is my color"] = [
            Reply([ToolUse("remember", {"key": "color", "value": fact})]),
            Reply([Text("Noted.")]),
        ]
        await town.ask(channel, user, f"remember {fact} is my color")
    token = town.server.click(channel, town.ann, {}, "forget:channel")
    [shown] = await wait_until(lambda: town.server.rest.responses.get(token), 20)
    assert "1 fact" in shown["content"]
    await town.ask(channel, town.ann, "Which color do I have?")
    assert "violet" not in town.asked("Which color do I have?")[0]
    await town.ask(channel, town.ben, "And my own color is?")
    assert "crimson" in town.asked("And my own color is?")[0]


async def test_rate_limited_for_hours_is_said_at_once(town: Town):
    channel = town.channel()
    town.rules["limited"] = [HttpError.rate_limited(62_291)]
    started = time.monotonic()
    answer = await town.ask(channel, town.ann, "limited question")
    assert time.monotonic() - started < 15
    assert "The model is limiting our requests" in answer["content"]
    assert "Stopped: rate_limited" in answer["content"]


@pytest.mark.parametrize("where", ["question", "answer"])
async def test_asker_stops_a_run_and_nobody_else_can(town: Town, where: str):
    channel = town.channel()
    text = f"talk for long, {where}"
    town.rules[text] = [Reply([Text("Many words to say here. " * 200)], delta_s=0.1)]
    raw = town.say(channel, town.ann, text)
    [post] = await wait_until(lambda: town.server.sent(channel), 20)
    target = post["id"] if where == "answer" else raw["id"]
    town.server.react(channel, target, town.ben, "🛑")
    started = time.monotonic()
    town.server.react(channel, target, town.ann, "🛑")
    [answer] = await town.answered(channel)
    assert time.monotonic() - started < 5
    assert answer["content"].startswith("Many words to say here.")
    assert "I stopped because you asked me to. Stopped: cancelled" in answer["content"]


async def test_deleted_question_leaves_nothing_behind(town: Town):
    channel = town.channel()
    town.rules["never mind"] = [Reply([Text("Too late. " * 50)], delay_s=1.0, delta_s=0.05)]
    raw = town.say(channel, town.ann, "never mind this")
    await wait_until(lambda: town.asked("never mind"), 20)
    town.server.delete(channel, raw["id"])
    await wait_until(lambda: town.model.disconnects > 0, 20)
    await town.calm()
    assert town.server.sent(channel) == []


async def test_mute_silences_followups_until_unmuted(town: Town):
    channel = town.channel()
    thread = await town.thread(await town.ask(channel, town.ann, QUESTION))
    town.say(thread, town.ben, "mute")
    await wait_until(lambda: [c for c in town.server.rest.calls if "/reactions/" in c.path], 20)
    requests = len(town.model.requests)
    town.server.say(thread, town.ann, "anybody there?")
    await town.calm()
    assert len(town.model.requests) == requests
    town.say(thread, town.ben, "unmute")
    await town.calm()
    town.server.say(thread, town.ann, "and now somebody there?")
    await town.answered(thread)


async def test_private_question_is_answered_by_the_real_thing(town: Town):
    channel = town.channel()
    token = town.server.command(channel, town.ann, "ask", question=QUESTION)
    responses = town.server.rest.responses
    await wait_until(lambda: "Stopped: done" in str(responses.get(token)), 20)
    assert town.server.sent(channel) == []
    [row] = responses[token][-1]["components"]
    trace = town.server.click(channel, town.ann, {}, row["components"][0]["custom_id"])
    shown = await wait_until(lambda: responses.get(trace), 20)
    assert "search" in shown[0]["content"]
