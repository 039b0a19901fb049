"""The real process of the bot in a workspace: who is answered, where, in which order."""

import socket
from collections.abc import AsyncGenerator

import aiohttp
import pytest
import pytest_asyncio

from tests.anthropic_server import Reply, Text, ToolUse
from tests.slack_server import BOT_USER
from tests.support import wait_until
from tests.support_slack import World, open_world

pytestmark = pytest.mark.asyncio(loop_scope="module")

with socket.socket() as _probe:
    _probe.bind(("127.0.0.1", 0))
    HEALTH_PORT = _probe.getsockname()[1]
QUESTION = "What should I put at the top of my resume?"


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def world(tmp_path_factory: pytest.TempPathFactory) -> AsyncGenerator[World]:
    async with open_world(tmp_path_factory.mktemp("slack")) as world:
        await world.start(HEALTH_PORT=str(HEALTH_PORT))
        yield world


async def test_mention_is_answered_in_its_thread_with_source_footer_and_trace(world: World):
    channel = world.channel()
    ts, answer = await world.ask(channel, "U1", QUESTION)
    assert "name" in answer
    assert "[1] " in answer
    assert "Stopped: done · 2 model calls · 1 search · " in answer
    await wait_until(lambda: len(world.slack.traces(channel, ts)) == 1)
    assert len(world.slack.own(channel)) == 2
    assert "is thinking…" in str(world.slack.calls)
    await world.calm()
    assert world.slack.statuses[channel, ts] == ""
    assert world.slack.sessions[channel, ts] == "active"
    assert not world.slack.errors


async def test_repeated_deliveries_of_one_mention_give_one_reply_and_one_trace(world: World):
    channel = world.channel()
    event = world.slack.put(channel, "U1", f"<@{BOT_USER}> {QUESTION}")
    for kind in ("app_mention", "message", "app_mention"):
        await world.slack.event({**event, "type": kind})
    await world.answered(channel, event["ts"])
    await world.slack.event({**event, "type": "app_mention"})
    await world.calm()
    assert len(world.slack.answers(channel, event["ts"])) == 1
    assert len(world.slack.traces(channel, event["ts"])) == 1


async def test_edits_and_previews_start_nothing(world: World):
    channel = world.channel()
    ts, _ = await world.ask(channel, "U1", QUESTION)
    await world.calm()
    requests, posts = len(world.model.requests), len(world.slack.own(channel))
    asked = world.slack.find(channel, ts)
    reply = world.slack.own(channel)[0]
    for message in (asked, {**reply, "attachments": [{"text": "preview"}]}):
        await world.slack.event(
            {
                "type": "message",
                "subtype": "message_changed",
                "channel": channel,
                "message": message,
            }
        )
    await world.slack.event({**reply, "type": "message", "channel": channel})
    await world.calm()
    assert (len(world.model.requests), len(world.slack.own(channel))) == (requests, posts)


async def test_followup_during_a_run_is_answered_next_while_other_threads_go_on(world: World):
    channel = world.channel()
    world.rules["slow one"] = [Reply([Text("Slow answer.")], delay_s=2.0)]
    ts = await world.slack.mention(channel, "U1", "slow one, please")
    await wait_until(lambda: bool(world.asked("slow one")), 20)
    await world.slack.say(channel, "U1", "and the followup of it?", thread_ts=ts)
    other, _ = await world.ask(channel, "U2", QUESTION)
    assert not any("Slow" in answer for answer in world.slack.answers(channel, ts))
    first, second = await world.answered(channel, ts, 2)
    assert first.startswith("Slow answer.")
    assert "Slow" not in second
    [request] = world.asked("and the followup of it?")[:1]
    assert "slow one, please" in request
    assert "Slow answer." in request
    assert len(world.slack.answers(channel, other)) == 1


async def test_followups_as_broadcast_or_with_a_file_are_answered_in_the_thread(world: World):
    channel = world.channel()
    ts, _ = await world.ask(channel, "U1", QUESTION)
    for count, subtype in enumerate(("thread_broadcast", "file_share"), 2):
        await world.slack.say(channel, "U1", f"more by {subtype}", thread_ts=ts, subtype=subtype)
        assert len(await world.answered(channel, ts, count)) == count
    assert all(m.get("thread_ts") == ts for m in world.slack.own(channel))


async def test_silent_where_it_is_not_meant(world: World):
    channel = world.channel()
    ts, _ = await world.ask(channel, "U1", QUESTION)
    await world.calm()
    requests = len(world.model.requests)
    await world.slack.say(channel, "U1", "<@U2> what do you think?", thread_ts=ts)
    await world.slack.say(channel, "U1", "just talking at top level")
    foreign = await world.slack.say(channel, "U2", "a thread of people")
    await world.slack.say(channel, "U3", "a reply among people", thread_ts=foreign)
    await world.slack.say(channel, "U1", "   ", thread_ts=ts)
    await world.calm()
    assert len(world.model.requests) == requests


async def test_mute_and_unmute(world: World):
    channel = world.channel()
    ts, _ = await world.ask(channel, "U1", QUESTION)
    await world.slack.mention(channel, "U2", "mute", thread_ts=ts)
    await wait_until(lambda: any("quiet" in a for a in world.slack.answers(channel, ts)))
    await world.calm()
    requests = len(world.model.requests)
    await world.slack.say(channel, "U1", "anybody there?", thread_ts=ts)
    await world.calm()
    assert len(world.model.requests) == requests
    await world.slack.mention(channel, "U2", "unmute", thread_ts=ts)
    await wait_until(lambda: any("listening" in a for a in world.slack.answers(channel, ts)))
    await world.slack.say(channel, "U1", "and now somebody there?", thread_ts=ts)
    await world.answered(channel, ts, 2)


async def test_direct_messages_need_no_mention_and_start_a_thread_each(world: World):
    channel = world.channel("D")
    first = await world.slack.say(channel, "U1", QUESTION)
    second = await world.slack.say(channel, "U1", "How long should it be?")
    await world.answered(channel, first)
    await world.answered(channel, second)
    await world.slack.say(channel, "U1", "Why is that?", thread_ts=first)
    await world.answered(channel, first, 2)


async def test_other_bots_start_no_run_but_are_context_for_people(world: World):
    channel = world.channel()
    ts, _ = await world.ask(channel, "U1", QUESTION)
    await world.calm()
    requests, posts = len(world.model.requests), len(world.slack.own(channel))
    bot = {"bot_id": "B2", "username": "Deployer", "subtype": "bot_message", "thread_ts": ts}
    await world.slack.say(channel, "U9", "done with release 77", **bot)
    await world.slack.say(channel, "U9", f"<@{BOT_USER}> and mentioned", **bot)
    await world.slack.say(channel, "U9", f"<@{BOT_USER}> at top level", bot_id="B2")
    outsider = {"bot_id": "B3", "user_team": "T9"}
    await world.slack.say(channel, "U8", f"<@{BOT_USER}> from outside", **outsider)
    await world.calm()
    assert (len(world.model.requests), len(world.slack.own(channel))) == (requests, posts)
    await world.slack.say(channel, "U1", "What did the deployer say?", thread_ts=ts)
    await world.answered(channel, ts, 2)
    [request] = world.asked("What did the deployer say?")[:1]
    assert "done with release 77" in request
    assert "Deployer" in request


@pytest.mark.parametrize("where", ["block", "attachment", "embed"])
async def test_alert_above_the_mention_is_read_and_marked(world: World, where: str):
    channel = world.channel()
    alert = f"Disk of host db-7 is 93 % full ({where})"
    section = {"type": "section", "text": {"type": "mrkdwn", "text": alert}}
    fields = {
        "block": {"blocks": [section]},
        "attachment": {"attachments": [{"fallback": "alert", "text": alert}]},
        "embed": {"attachments": [{"blocks": [section]}]},
    }[where]
    root = world.slack.put(channel, "", "", bot_id="B7", username="Monitor", **fields)
    question = f"What does this {where} mean?"
    await world.slack.mention(channel, "U1", question, thread_ts=root["ts"])
    await world.answered(channel, root["ts"])
    [request] = world.asked(question)[:1]
    assert alert in request
    assert "first message of this thread, by the app Monitor" in request


async def test_of_a_long_thread_the_newest_messages_are_read(world: World):
    channel = world.channel()
    root = world.slack.put(channel, "U2", "The deploy is red")
    for n in range(120):
        world.slack.put(channel, "U3", f"remark {n:03d}", thread_ts=root["ts"])
    await world.slack.mention(channel, "U1", "What is it about?", thread_ts=root["ts"])
    await world.answered(channel, root["ts"])
    [request] = world.asked("What is it about?")[:1]
    assert "The deploy is red" in request
    assert "remark 119" in request
    assert "remark 069" not in request


async def test_failed_thread_fetch_does_not_change_the_answer_or_its_place(world: World):
    channel = world.channel()
    root = world.slack.put(channel, "U2", "people talking")
    world.slack.fail("conversations.replies", "ratelimited", retry_after_s=60)
    await world.slack.mention(channel, "U1", QUESTION, thread_ts=root["ts"])
    await world.answered(channel, root["ts"])
    await world.slack.say(channel, "U1", "And after that?", thread_ts=root["ts"])
    await world.answered(channel, root["ts"], 2)


async def test_text_attachment_is_read_up_to_its_limit_and_others_are_named(world: World):
    channel = world.channel()
    world.slack.files = {"F1": b"the secret word is zebra " + b"x" * 100_000, "F2": b"\x89PNG"}
    url = f"http://127.0.0.1:{world.slack.port}/files/"
    files = [
        {"name": "notes.txt", "mimetype": "text/plain", "size": 100_025, "url_private": url + "F1"},
        {"name": "cat.png", "mimetype": "image/png", "size": 4, "url_private": url + "F2"},
        {"name": "evil.txt", "mimetype": "text/plain", "size": 4, "url_private": "http://x.test/"},
    ]
    await world.ask(channel, "U1", "What is in my file?", subtype="file_share", files=files)
    [request] = world.asked("What is in my file?")[:1]
    assert "the secret word is zebra" in request
    assert "attachment notes.txt (truncated)" in request
    assert "attachment cat.png (not read)" in request
    assert "attachment evil.txt (not read)" in request
    assert len(request) < 110_000


async def test_many_attachments_share_the_limit_and_all_are_named(world: World):
    channel = world.channel()
    text = b"zebra " * 7_000
    world.slack.files = {f"F{n}": text for n in range(7)}
    url = f"http://127.0.0.1:{world.slack.port}/files/F"
    files = [
        {"name": f"{n}.txt", "mimetype": "text/plain", "size": len(text), "url_private": url + n}
        for n in "0123456"
    ]
    answer = (await world.ask(channel, "U1", "What of these?", subtype="file_share", files=files))[
        1
    ]
    assert "Stopped: done" in answer
    [request] = world.asked("What of these?")[:1]
    for label in ("0.txt", "1.txt (truncated)", "2.txt (not read)", "6.txt (not read)"):
        assert f'attachment {label}\\"' in request
    assert request.count("zebra") == 64 * 1024 // 6


async def test_nothing_that_a_model_quotes_pings_anybody_or_leaks(world: World):
    channel = world.channel()
    tokens = "<!channel> <!subteam^S1> <@U2> @here"
    connection = "redis://admin:hunter2hunter2@db.internal:6379/0"
    world.rules["quote it"] = [
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
    ts, answer = await world.ask(channel, "U1", text)
    await wait_until(lambda: len(world.slack.traces(channel, ts)) == 1)
    assert "The page says" in answer
    assert world.slack.pings() == []
    [trace] = world.slack.traces(channel, ts)
    assert "remember · phone · " in trace
    assert "read_doc" in trace
    public = str(world.slack.own(channel))
    assert "5550123" not in public
    assert "hunter2hunter2" not in public


async def test_outsider_gets_a_polite_refusal_without_documents(world: World):
    channel = world.channel()
    requests = len(world.model.requests)
    ts = await world.slack.mention(channel, "U7", QUESTION, user_team="T9")
    await wait_until(lambda: bool(world.slack.answers(channel, ts)))
    await world.slack.say(channel, "U7", "hello?", thread_ts=ts, user_team="T9")
    await world.calm()
    assert world.slack.answers(channel, ts) == ["Sorry, I only answer members of this workspace."]
    assert len(world.model.requests) == requests
    assert "<@" not in str(world.slack.own(channel))


async def test_health_page_tells_of_redis_the_socket_and_the_inbox(world: World):
    url = f"http://127.0.0.1:{HEALTH_PORT}/healthz"
    async with aiohttp.ClientSession() as client, client.get(url) as response:
        assert response.status == 200
        report = await response.json()
    assert (report["ok"], report["redis"], report["slack"]) == (True, True, True)
    assert (report["waiting"], report["oldest_age_s"], report["dead_letters"]) == (0, 0.0, 0)


async def test_connection_that_slack_refreshes_loses_nothing(world: World):
    channel = world.channel()
    await world.slack.disconnect()
    await world.ask(channel, "U1", QUESTION)
    for server_side in list(world.slack.sockets):
        await server_side.close()
    await world.ask(channel, "U1", QUESTION)
