"""The gateway's tricks: resumed sessions, repeated events, refused intents, time away."""

import time

import discord
import pytest

from bots.discord.doctor import check_start, doctor
from bots.discord.intents import make_intents
from bots.discord.invite import invite_url
from bots.discord.link import DiscordLink, use_api
from core.errors import ConfigError
from core.types import Message
from core.work import Accepted
from tests.discord_server import DiscordServer
from tests.support_discord import Door, make_settings, scene, settle, wait_until
from tests.support_discord_world import SEND, VOICE


async def test_repeated_message_after_resume_is_accepted_once():
    async with scene() as at:
        message = await at.ask()
        raw = at.server.world.messages[at.channel["id"]][message.id]
        missed = at.server.world.post(at.channel, at.ann, f"{at.me} while you were gone")
        at.server.replay += [("MESSAGE_CREATE", raw), ("MESSAGE_CREATE", missed)]
        await at.server.drop()
        second = await at.asked(2)
        assert at.server.resumes
        assert second.text == "while you were gone"
        await settle(at.server)
        # both deliveries have one identity, which is what core claims
        assert [m.id for m in at.door.accepted] == [message.id, missed["id"]]


async def test_messages_of_a_channel_keep_their_order_though_the_store_does_not():
    class UnevenDoor(Door):
        async def submit(self, message: Message) -> Accepted:
            self.delay_s = 0.2 if message.text == "q0" else 0.0
            return await super().submit(message)

    async with scene(door=UnevenDoor()) as at:
        for number in range(3):
            at.server.say(at.channel, at.ann, f"{at.me} q{number}")
        await at.asked(3)
        assert [m.text for m in at.door.accepted] == ["q0", "q1", "q2"]


async def test_identifies_with_the_intents_that_it_needs_and_no_more():
    async with scene() as at:
        assert at.server.identifies[0]["intents"] == 46593
    assert make_intents(has_content=False).value == 46593 - (1 << 15)


async def test_catch_up_takes_what_came_while_away_and_is_bounded():
    def prepare(server, guild, channel, ann):
        me = f"<@{server.world.bot['id']}>"
        now = time.time()
        server.world.post(channel, ann, f"{me} too old", at=now - 2 * 3600)
        for number in range(5):
            server.world.post(channel, ann, f"{me} q{number}", at=now - 600 + number)
        server.world.post(channel, ann, "not for the bot", at=now - 300)
        quiet = server.world.channel(guild, name="quiet")
        server.world.post(quiet, ann, f"{me} long ago", at=now - 2 * 3600)
        own = server.world.thread(channel, server.world.bot)
        server.world.post(own, ann, "follow-up", at=now - 200)
        voice = server.world.channel(guild, VOICE)
        server.world.post(voice, ann, f"{me} in voice chat", at=now - 200)

    async with scene(prepare=prepare, discord_catch_up_messages=4) as at:
        await at.asked(5)
        await settle(at.server)
        texts = [m.text for m in at.door.accepted]
        assert texts == ["q2", "q3", "q4", "in voice chat", "follow-up"]
        last = at.door.accepted[-1]
        assert last.needs_engaged
        assert at.server.world.channels[last.conversation.thread]["owner_id"] == at.bot["id"]
        assert len(at.calls("GET", "/messages")) == 3


async def test_catch_up_says_and_does_nothing_a_second_time():
    def prepare(server, guild, channel, ann):
        me = f"<@{server.world.bot['id']}>"
        own = server.world.thread(channel, server.world.bot)
        other = server.world.user("other", is_bot=True)
        server.world.post(channel, ann, me, at=time.time() - 60)
        server.world.post(channel, ann, f"{me} forget", at=time.time() - 59)
        server.world.post(own, other, "a bot's words", at=time.time() - 58)
        mine = {"emoji": {"id": None, "name": "🔇"}, "count": 1, "me": True}
        mine |= {"me_burst": False, "count_details": {"burst": 0, "normal": 1}, "burst_colors": []}
        server.world.post(own, ann, f"{me} mute", at=time.time() - 57, reactions=[mine])
        server.world.post(own, ann, f"{me} unmute", at=time.time() - 56)

    async with scene(prepare=prepare) as at:
        await wait_until(lambda: at.door.calls)
        await settle(at.server)
        [(name, _, is_muted)] = at.door.calls
        assert (name, is_muted) == ("mute", False)
        assert at.door.accepted == []
        assert not at.calls("POST", "/messages")


async def test_catch_up_can_be_switched_off():
    def prepare(server, guild, channel, ann):
        server.world.post(channel, ann, f"<@{server.world.bot['id']}> q", at=time.time() - 60)

    async with scene(prepare=prepare, discord_catch_up_minutes=0) as at:
        await settle(at.server)
        assert at.door.accepted == []


@pytest.fixture
async def server():
    made = DiscordServer()
    await made.start()
    use_api(made.api_url)
    yield made
    await made.stop()


async def test_refused_intent_names_the_remedy(server: DiscordServer):
    server.is_privileged_refused = True

    class App:
        chat = Door()

    link = DiscordLink(App(), make_settings(server), has_content=True)  # type: ignore[arg-type]
    try:
        with pytest.raises(ConfigError, match="Message Content Intent"):
            await link.open()
    finally:
        await link.close()


async def test_start_checks_name_every_problem_and_the_degraded_mode(
    server: DiscordServer, caplog: pytest.LogCaptureFixture
):
    server.world.application["flags"] = 0
    server.world.application["bot_public"] = True
    checks, has_content = await check_start(make_settings(server))
    assert not has_content
    assert all(check.is_ok for check in checks)
    warned = " ".join(record.message for record in caplog.records)
    assert "Message Content Intent" in warned
    assert "Public Bot" in warned
    checks, _ = await check_start(make_settings(server, discord_guilds="1, 2"))
    assert [c.name for c in checks if not c.is_ok] == ["server 1", "server 2"]
    server.rest.fail("GET", "/users/@me", 401, 0)
    checks, _ = await check_start(make_settings(server))
    assert [(c.name, c.is_ok) for c in checks] == [("token", False)]
    assert "DISCORD_TOKEN" in checks[0].remedy


async def test_doctor_tells_permissions_commands_and_the_invite(server: DiscordServer):
    guild = server.world.guild(permissions=SEND)
    channel = server.world.channel(guild)
    found = {c.name: c for c in await doctor(make_settings(server), int(channel["id"]))}
    check = found[f"channel {channel['id']}"]
    assert not check.is_ok
    assert "view channel" in check.detail or "create public threads" in check.detail
    assert "not synced" in found["commands"].detail
    assert found["invite"].detail == invite_url(server.world.bot["id"])
    assert "permissions=309237763136" in found["invite"].detail
    good = server.world.channel(server.world.guild())
    found = {c.name: c for c in await doctor(make_settings(server), int(good["id"]))}
    assert found[f"channel {good['id']}"].is_ok
    assert discord.Permissions(309237763136).create_public_threads
