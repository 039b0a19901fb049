"""What people see in Discord: replies, threads, traces, buttons, limits."""

import asyncio

import pytest

from core.types import FactChange, StopReason
from tests.support_discord import SOURCE, STEP, Scene, make_run, scene, settle, wait_until
from tests.support_discord_world import CREATE_THREADS, INVITED, VOICE


@pytest.fixture
async def at():
    async with scene() as made:
        yield made


async def test_mention_gets_a_reply_with_footer_and_a_thread_with_the_trace(at: Scene):
    message = await at.ask()
    assert message.text == "how do I use the VPN?"
    assert message.conversation.thread == message.id
    assert message.session.channel == at.channel["id"]
    run = make_run("Use it [1].", sources=(SOURCE,), trace=(STEP,), turns=2)
    reply = await at.answer(message, run)

    [answer] = at.server.sent(at.channel)
    assert answer["message_reference"]["message_id"] == message.id
    lines = answer["content"].split("\n")
    assert lines[0] == "Use it [1]."
    assert lines[-2] == "-# [1] [VPN › Setup](<https://docs.example/vpn>)"
    assert lines[-1] == (
        "-# Stopped: done · 2 model calls · 1 search · 1,482 tokens · $0.0004 · 3.1 s"
    )
    thread = at.server.world.channels[answer["id"]]
    assert thread["name"] == "how do I use the VPN?"
    [trace] = at.server.sent(thread)
    assert trace["content"].startswith("**Trace · 1 tool call")
    assert "search\\_docs" in trace["content"] or "search_docs" in trace["content"]
    assert reply.ref["aliases"] == [answer["id"]]
    assert reply.ref["thread"] == answer["id"]
    assert at.calls("POST", "/typing")
    assert at.server.rest.pings == []


async def test_text_streams_by_edits_and_ends_whole(at: Scene):
    message = await at.ask()
    reply = await at.client.adapter.open_reply(message, None)
    await reply.append("First words")
    await wait_until(lambda: at.server.sent(at.channel))
    # the server has the post a moment before the bot hears of it
    await wait_until(lambda: reply.ref)
    await reply.status("Searching the docs: vpn…")
    for word in range(20):
        await reply.append(f" word{word}")
        await asyncio.sleep(0.1)
    [post] = at.server.sent(at.channel)
    await wait_until(lambda: "-# ⏳ Searching" in post["content"])
    assert "word" in post["content"]
    text = "First words" + "".join(f" word{n}" for n in range(20))
    await reply.close(make_run(text))
    [post] = at.server.sent(at.channel)
    assert post["content"].startswith(text)
    assert "⏳" not in post["content"]
    assert len(at.calls("PATCH", "/messages/")) <= 4


async def test_reset_drops_what_was_streamed(at: Scene):
    message = await at.ask()
    reply = await at.client.adapter.open_reply(message, None)
    await reply.append("wrong " * 500)
    await wait_until(lambda: len(at.server.sent(at.channel)) == 2)
    await reply.reset("")
    await reply.append("right")
    await reply.close(make_run("right"))
    [post] = at.server.sent(at.channel)
    assert post["content"].startswith("right")


async def test_long_answer_is_split_and_very_long_one_is_attached(at: Scene):
    message = await at.ask()
    code = "```python\n" + "print('hello')\n" * 250 + "```"
    await at.answer(message, make_run(code))
    posts = at.server.sent(at.channel)
    assert len(posts) == 2
    assert all(p["content"].count("```") % 2 == 0 and len(p["content"]) <= 2000 for p in posts)
    assert posts[1]["content"].startswith("```python")
    assert "Stopped: done" in posts[1]["content"]
    assert "message_reference" not in posts[1]

    channel = at.another_channel()
    message = await at.ask("and more?", channel=channel)
    await at.answer(message, make_run("a sentence of words. " * 1_000, id="run-2"))
    posts = at.server.sent(channel)
    assert len(posts) == 4
    [file] = posts[-1]["attachments"]
    assert file["filename"] == "answer.md"
    assert at.server.world.files[file["id"]].decode() == "a sentence of words. " * 1_000


async def test_every_stop_reason_is_said_and_never_an_empty_reply(at: Scene):
    for number, reason in enumerate(StopReason):
        channel = at.another_channel()
        message = await at.ask(f"q{number}", channel=channel)
        await at.answer(message, make_run("", stop_reason=reason))
        [post] = at.server.sent(channel)
        assert f"Stopped: {reason.value}" in post["content"]


async def test_missing_thread_permission_gives_a_button_and_one_hint():
    async with scene(permissions=INVITED & ~CREATE_THREADS) as at:
        for number in (1, 2):
            message = await at.ask()
            await at.answer(message, make_run(trace=(STEP,), id=f"run-{number}"))
        first, second = at.server.sent(at.channel)
        assert "“Create Public Threads”" in first["content"]
        assert "Create Public Threads" not in second["content"]
        for number, post in enumerate((first, second), 1):
            [row] = post["components"]
            assert row["components"][0]["custom_id"] == f"trace:run-{number}"
        assert not at.calls("POST", "/threads")


@pytest.mark.parametrize("code", [50001, 50013, 50024, 160006])
async def test_refused_thread_falls_back_to_a_button(at: Scene, code: int):
    at.server.rest.fail("POST", r"/threads$", 403, code)
    await at.answer(await at.ask(), make_run(trace=(STEP,)))
    [post] = at.server.sent(at.channel)
    assert post["components"][0]["components"][0]["custom_id"] == "trace:run-1"
    assert ("permission" in post["content"]) is (code in (50001, 50013))


async def test_existing_thread_is_used_after_160004(at: Scene):
    message = await at.ask()
    # the thread was made, but the answer to that was lost
    at.server.rest.fail("POST", r"/threads$", 400, 160004, after=True)
    await at.answer(message, make_run(trace=(STEP,)))
    [post] = at.server.sent(at.channel)
    assert len(at.server.sent(at.server.world.channels[post["id"]])) == 1


async def test_foreign_thread_is_answered_in_place_with_a_button(at: Scene):
    thread = at.server.world.thread(at.channel, at.ben)
    at.server.dispatch("THREAD_CREATE", thread)
    message = await at.ask(channel=thread)
    assert message.conversation.channel == at.channel["id"]
    assert message.conversation.thread == thread["id"]
    await at.answer(message, make_run(trace=(STEP,)))
    [post] = at.server.sent(thread)
    assert post["components"][0]["components"][0]["custom_id"] == "trace:run-1"
    assert not at.calls("POST", "/threads")


async def test_voice_chat_is_answered_in_place():
    def prepare(server, guild, channel, ann):
        server.world.channel(guild, VOICE)

    async with scene(prepare=prepare) as at:
        voice = next(c for c in at.server.world.channels.values() if c["type"] == VOICE)
        await at.answer(await at.ask(channel=voice), make_run(trace=(STEP,)))
        [post] = at.server.sent(voice)
        assert post["components"]
        assert not at.calls("POST", "/threads")


async def test_locked_thread_moves_the_answer_to_the_channel(at: Scene):
    thread = at.server.world.thread(at.channel, at.ben)
    at.server.dispatch("THREAD_CREATE", thread)
    message = await at.ask(channel=thread)
    thread["thread_metadata"]["locked"] = True
    await at.answer(message)
    assert len(at.server.sent(at.channel)) == 1


async def test_archived_thread_gets_the_answer_as_a_new_message(at: Scene):
    thread = at.server.world.thread(at.channel, at.ben)
    at.server.dispatch("THREAD_CREATE", thread)
    message = await at.ask(channel=thread)
    reply = await at.client.adapter.open_reply(message, None)
    await reply.append("Half")
    await wait_until(lambda: at.server.sent(thread))
    thread["thread_metadata"]["archived"] = True
    await reply.close(make_run("Half and half"))
    [post] = at.server.sent(thread)
    assert post["content"].startswith("Half and half")


async def test_deleted_question_does_not_lose_the_answer(at: Scene):
    message = await at.ask()
    del at.server.world.messages[at.channel["id"]][message.id]
    await at.answer(message)
    [post] = at.server.sent(at.channel)
    assert "message_reference" not in post


async def test_rate_limit_with_via_is_waited_out(at: Scene):
    message = await at.ask()
    at.server.rest.fail("POST", r"/messages$", 429, 0, headers={"Via": "1.1 x"}, retry_after=0.2)
    await at.answer(message)
    assert len(at.server.sent(at.channel)) == 1


async def test_saved_fact_is_announced_by_its_key_alone(at: Scene):
    message = await at.ask()
    change = FactChange(message.session, "shift", "I cover Fridays", None)
    await at.answer(message, make_run(facts_saved=(change,)))
    [post] = at.server.sent(at.channel)
    assert "shift" in post["content"]
    assert "Fridays" not in post["content"]
    assert post["components"][0]["components"][0]["custom_id"] == "facts:run-1"


async def test_pings_in_answer_trace_and_facts_are_dead(at: Scene):
    role = at.guild["role"]
    bad = f"@everyone <@&{role}> <@{at.ben['id']}> @here <#1>"
    message = await at.ask()
    step = STEP.__class__(1, "search_docs", {"query": bad}, bad, False, 1)
    change = FactChange(message.session, "@everyone", bad, None)
    run = make_run(bad, trace=(step,), facts_saved=(change,), note=bad)
    reply = await at.client.adapter.open_reply(message, None)
    await reply.append(bad)
    await wait_until(lambda: at.server.sent(at.channel))
    await reply.close(run)
    await settle(at.server)
    writes = [c for c in at.server.rest.calls if "content" in c.body]
    assert len(writes) >= 3
    for call in writes:
        assert call.body["allowed_mentions"]["parse"] == []
        assert not call.body["allowed_mentions"].get("replied_user")
        assert "@everyone" not in call.body["content"]
        assert "<@" not in call.body["content"]
    assert at.server.rest.pings == []
