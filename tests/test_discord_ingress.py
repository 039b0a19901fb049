"""Which messages in Discord reach core, and as what."""

import pytest

from bots.discord.gate import REFUSAL
from tests.support_discord import Door, Scene, scene, settle, wait_until
from tests.support_discord_world import DM, Json


@pytest.fixture
async def at():
    async with scene() as made:
        yield made


async def own_thread(at: Scene) -> Json:
    """A thread off the bot's answer to Ann's question."""
    message = await at.ask()
    await at.answer(message)
    [post] = at.server.sent(at.channel)
    return await wait_until(lambda: at.server.world.channels.get(post["id"]))


async def nothing_new(at: Scene, count: int = 0) -> None:
    await settle(at.server)
    assert len(at.door.accepted) == count


async def test_managed_role_is_the_bot_and_everyone_is_not(at: Scene):
    at.server.say(at.channel, at.ann, "@everyone lunch?")
    at.server.say(at.channel, at.ann, f"<@&{at.guild['role']}> hi")
    message = await at.asked()
    assert message.text == "hi"
    await nothing_new(at, 1)


async def test_bots_webhooks_edits_and_system_messages_start_nothing(at: Scene):
    other = at.server.world.user("other", is_bot=True)
    at.server.world.join(at.guild, other)
    at.server.say(at.channel, other, f"{at.me} hi")
    at.server.say(at.channel, at.ann, f"{at.me} hook", webhook_id="5")
    at.server.say(at.channel, at.ann, f"{at.me} pinned", type=6)
    at.server.say(at.channel, at.ann, "no mention")
    old = at.server.world.post(at.channel, at.ann, f"{at.me} edited in")
    at.server.dispatch("MESSAGE_UPDATE", old)
    await nothing_new(at)
    assert at.server.sent(at.channel) == []


async def test_other_mentions_become_names(at: Scene):
    message = await at.ask(f"what did <@{at.ben['id']}> say in <#{at.channel['id']}>?")
    assert message.text == "what did @ben say in #c?"


async def test_followup_in_own_thread_needs_no_mention(at: Scene):
    thread = await own_thread(at)
    at.server.say(thread, at.ben, "and on Linux?")
    message = await at.asked(2)
    assert message.needs_engaged
    # this process knows whose thread it is; another leaves the thread's id to core
    assert message.conversation == at.door.accepted[0].conversation
    assert message.session.channel == at.channel["id"]
    assert message.session.user == at.ben["id"]
    await at.answer(message)
    assert len(at.server.sent(thread)) == 2


async def test_own_thread_is_silent_when_somebody_else_is_mentioned(at: Scene):
    thread = await own_thread(at)
    at.server.say(thread, at.ann, f"<@{at.ben['id']}> can you check?")
    at.server.say(thread, at.ann, f"<@{at.ben['id']}> {at.me} both of you?")
    message = await at.asked(2)
    assert message.text == "@ben  both of you?"
    assert not message.needs_engaged


async def test_other_bot_in_own_thread_is_kept_as_a_note_alone(at: Scene):
    thread = await own_thread(at)
    other = at.server.world.user("deploybot", is_bot=True)
    at.server.world.join(at.guild, other)
    at.server.say(thread, other, "deployed 1.2")
    at.server.say(thread, other, f"{at.me} done")
    await wait_until(lambda: len(at.door.calls) == 2)
    name, conversation, label, text = at.door.calls[0]
    assert (name, conversation.thread, label) == ("note", thread["id"], "deploybot (a bot)")
    assert text == "deployed 1.2"
    await nothing_new(at, 1)


async def test_reply_to_the_bot_is_a_followup_with_and_without_ping(at: Scene):
    await at.answer(await at.ask())
    [post] = at.server.sent(at.channel)
    at.server.reply(at.channel, at.ann, "and then?", post, ping=at.bot)
    message = await at.asked(2)
    assert message.reply_to == post["id"]
    at.server.reply(at.channel, at.ann, "go on", post)
    message = await at.asked(3)
    assert message.reply_to == post["id"]
    assert not message.needs_engaged
    at.server.reply(at.channel, at.ann, "to whom?", post, referenced_message=None)
    message = await at.asked(4)
    assert message.needs_engaged


async def test_replies_among_people_are_not_for_the_bot(at: Scene):
    said = at.server.say(at.channel, at.ben, "hello")
    at.server.reply(at.channel, at.ann, "hi", said)
    await nothing_new(at)


async def test_direct_message_needs_no_mention_and_stays_one_conversation(at: Scene):
    dm = at.server.world.channel(None, DM, recipients=[at.ann])
    at.server.say(dm, at.ann, "hello")
    at.server.say(dm, at.ann, "again")
    first, second = await at.asked(1), await at.asked(2)
    assert first.conversation == second.conversation
    assert first.session.channel == dm["id"]
    await at.answer(first)
    assert len(at.server.sent(dm)) == 1


async def test_bare_mention_is_told_what_to_do(at: Scene):
    at.server.say(at.channel, at.ann, at.me)
    [post] = await wait_until(lambda: at.server.sent(at.channel))
    # the same line answers a sticker in a direct message, where nobody mentions anybody
    assert post["content"].startswith("Ask me something, and I will look it up")
    assert at.door.accepted == []


async def test_blank_followup_starts_no_run_and_warns_once(caplog: pytest.LogCaptureFixture):
    async with scene(has_content=False) as at:
        thread = await own_thread(at)
        at.server.say(thread, at.ann, "unreadable")
        at.server.say(thread, at.ann, "unreadable too")
        posts = await wait_until(lambda: at.server.sent(thread)[1:])
        await nothing_new(at, 1)
        assert len(posts) == 1
        assert "mention me" in posts[0]["content"]
        warnings = [r for r in caplog.records if "message-content intent" in r.message]
        assert len(warnings) == 1
        assert at.server.identifies[0]["intents"] & (1 << 15) == 0
        at.server.say(thread, at.ann, f"{at.me} still works")
        assert (await at.asked(2)).text == "still works"


async def test_unlisted_server_and_strangers_are_refused_once_and_bots_never():
    def prepare(server, guild, channel, ann):
        other = server.world.guild(ann, server.world.user("eve"))
        server.world.channel(other, name="elsewhere")

    async with scene(prepare=prepare, is_listed=True) as at:
        w = at.server.world
        away = next(c for c in w.channels.values() if c.get("name") == "elsewhere")
        eve = next(u for u in w.users.values() if u["username"] == "eve")
        robot = w.user("robot", is_bot=True)
        at.server.say(away, robot, f"{at.me} hi")
        await nothing_new(at)
        assert at.server.sent(away) == []
        for _ in range(3):
            at.server.say(away, eve, f"{at.me} hi")
        await nothing_new(at)
        assert [p["content"] for p in at.server.sent(away)] == [REFUSAL]
        assert f"<@{eve['id']}>" not in REFUSAL

        dm = w.channel(None, DM, recipients=[eve])
        at.server.say(dm, eve, "hi")
        at.server.say(dm, eve, "hi again")
        await nothing_new(at)
        assert [p["content"] for p in at.server.sent(dm)] == [REFUSAL]

        friend = w.channel(None, DM, recipients=[at.ben])
        at.server.say(friend, at.ben, "hi")
        await at.asked(1)
        at.server.say(friend, at.ben, "hi again")
        await at.asked(2)
        assert len(at.calls("GET", f"/members/{at.ben['id']}")) == 1


async def test_stop_sign_cancels_on_question_and_on_answer(at: Scene):
    message = await at.ask()
    at.server.react(at.channel, message.id, at.ann, "👍")
    at.server.react(at.channel, message.id, at.ann, "🛑")
    await wait_until(lambda: at.door.calls)
    assert at.door.calls == [("cancel", message.conversation, at.ann["id"])]
    await at.answer(message)
    [post] = at.server.sent(at.channel)
    at.server.react(at.channel, post["id"], at.ben, "🛑")
    await wait_until(lambda: len(at.door.calls) == 2)
    # that it was not Ben who asked is core's to see
    assert at.door.calls[1] == ("cancel", message.conversation, at.ben["id"])
    at.server.react(at.channel, "12345", at.ann, "🛑")
    await wait_until(lambda: len(at.door.calls) == 3)
    # a post of an earlier process: core knows it as an alias
    assert at.door.calls[2][1].thread == "12345"


async def test_deleted_question_is_withdrawn_and_gets_no_answer(at: Scene):
    message = await at.ask()
    at.server.delete(at.channel, "12345")
    at.server.delete(at.channel, message.id)
    await wait_until(lambda: at.door.calls)
    assert at.door.calls == [("withdraw", message.conversation, message.id)]
    await at.answer(message)
    assert at.server.sent(at.channel) == []


async def test_mute_in_a_thread_and_forget_by_text(at: Scene):
    thread = await own_thread(at)
    at.server.say(thread, at.ann, f"{at.me} mute")
    await wait_until(lambda: at.calls("PUT", "/reactions/"))
    name, conversation, is_muted = at.door.calls[0]
    assert (name, conversation.thread, is_muted) == ("mute", thread["id"], True)
    at.server.say(thread, at.ann, f"{at.me} forget me")
    await wait_until(lambda: "`/forget`" in at.server.sent(thread)[-1]["content"])
    at.server.say(at.channel, at.ann, f"{at.me} mute")
    await wait_until(lambda: "thread" in at.server.sent(at.channel)[-1]["content"])
    assert len(at.door.accepted) == 1


async def test_mute_in_a_direct_message_is_not_pretended(at: Scene):
    dm = at.server.world.channel(None, 1)
    at.server.say(dm, at.ann, "mute")
    [post] = await wait_until(lambda: at.server.sent(dm))
    assert "cannot be muted" in post["content"]
    assert at.door.calls == []
    assert not at.calls("PUT", "/reactions/")


async def test_question_waits_for_a_store_that_comes_back():
    async with scene(door=Door(failures=2)) as at:
        message = await at.ask()
        assert message.text == "how do I use the VPN?"


async def test_no_run_where_the_bot_may_not_write(caplog: pytest.LogCaptureFixture):
    async with scene(permissions=1 << 10) as at:
        at.server.say(at.channel, at.ann, f"{at.me} hi")
        at.server.say(at.channel, at.ann, f"{at.me} hi")
        await nothing_new(at)
        assert not at.calls("POST", "/messages")
        assert sum("Send Messages" in r.message for r in caplog.records) == 1
