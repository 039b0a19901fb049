"""The bot's manners in Discord, acted out by people in an independent simulation of it."""

from typing import Any, cast

import discord
import pytest
import simcord

from bots.discord.client import FootnoteClient
from bots.discord.settings import DiscordSettings
from core.chat import Chat
from core.forget import ForgetReport
from core.memory import Fact
from core.types import FactChange, Message, Run
from tests.support_discord import STEP, Door, make_run


class AnsweringDoor(Door):
    """Answers each question at once, as a worker of core would."""

    client: FootnoteClient
    run: Run = make_run("Use the **VPN** client.", trace=(STEP,))

    async def submit(self, message: Message) -> Any:
        accepted = await super().submit(message)
        if accepted.outcome == "queued":
            reply = await self.client.adapter.open_reply(message, None)
            await reply.append(self.run.text)
            await reply.close(self.run)
            self.runs[message.session.user, self.run.id] = self.run
        return accepted


def make_client(door: Door) -> FootnoteClient:
    settings = DiscordSettings(_env_file=None, discord_token="t", discord_catch_up_minutes=0)  # type: ignore[call-arg]
    client = FootnoteClient(cast("Chat", door), settings, shard_count=1)
    door.client = client  # type: ignore[attr-defined]
    return client


@pytest.fixture
def door() -> AnsweringDoor:
    return AnsweringDoor(kept={"team": Fact("ops", 1_700_000_000, "1")})


@pytest.fixture
def simcord_bot(door: AnsweringDoor) -> discord.Client:
    return make_client(door)


def people(env: simcord.Env) -> tuple[Any, Any, Any]:
    guild = env.create_guild()
    channel = guild.create_text_channel("general")
    return (
        channel,
        guild.add_member(env.create_user("ann")),
        guild.add_member(env.create_user("ben")),
    )


def bot_id(env: simcord.Env) -> int:
    assert env.bot.user is not None
    return env.bot.user.id


def answer_in(channel: Any) -> Any:
    """The bot's reply; opening a thread off it leaves a notice behind in this simulation."""
    plain = discord.MessageType.reply
    return [m for m in channel.history() if m.author.bot and m.type is plain][-1]


async def test_mention_reply_thread_and_followup(simcord_env: simcord.Env, door: AnsweringDoor):
    channel, ann, ben = people(simcord_env)
    me = f"<@{bot_id(simcord_env)}>"
    question = await ann.send(channel, f"{me} how do I use the VPN?")
    answer = answer_in(channel)
    assert answer.reference.message_id == question.id
    assert answer.content.startswith("Use the **VPN** client.")
    [thread] = channel.threads
    assert thread.name == "how do I use the VPN?"
    assert "Trace" in thread.last_message.content
    await ben.send(thread, "and on Linux?")
    assert [m.author.name for m in door.accepted] == ["ann", "ben"]
    assert door.accepted[1].session.user == str(ben.id)
    await ann.send(channel, "@everyone lunch?")
    assert len(door.accepted) == 2
    sent = [
        r for r in simcord_env.http_requests if r.method == "POST" and r.path.endswith("/messages")
    ]
    assert sent
    for request in sent:
        body = request.json or {}
        assert body["enforce_nonce"]
        assert body["allowed_mentions"]["parse"] == []


async def test_direct_message_is_answered_in_place_with_a_private_trace(
    simcord_env: simcord.Env, door: AnsweringDoor
):
    people(simcord_env)
    eve = simcord_env.create_user("eve")
    simcord_env.guild.add_member(eve)
    await eve.send_dm("hello")
    answer = eve.dm_channel.last_message
    assert answer is not None
    assert answer.content.startswith("Use the")
    result = await eve.click(answer, custom_id=f"trace:{door.run.id}")
    assert result.response.ephemeral
    assert "search" in result.response.content


async def test_trace_button_survives_a_restart_and_is_the_askers_alone(
    simcord_env: simcord.Env, door: AnsweringDoor
):
    channel, ann, ben = people(simcord_env)
    await ann.send(channel, f"<@{bot_id(simcord_env)}> vpn?")
    [thread] = channel.threads
    trace = thread.last_message
    await simcord_env.restart_bot(make_client(door))
    result = await ann.click(trace, custom_id=f"trace:{door.run.id}")
    assert result.response.ephemeral
    assert "search" in result.response.content
    result = await ben.click(trace, custom_id=f"trace:{door.run.id}")
    assert "Only whoever asked" in result.response.content


async def test_memory_and_forget_are_private(simcord_env: simcord.Env, door: AnsweringDoor):
    channel, ann, _ = people(simcord_env)
    result = await ann.slash(channel, "memory")
    assert result.response.ephemeral
    assert "ops" in result.response.content
    result = await ann.slash(channel, "forget")
    assert result.response.ephemeral
    assert "2 facts" in result.response.content
    done = await ann.click(result.response, custom_id="forget:channel")
    assert done.acknowledged
    assert ("forget", door.calls[-1][1], "channel") == door.calls[-1]
    assert door.calls[-1][1].user == str(ann.id)
    assert channel.history() == []
    door.report = ForgetReport()
    result = await ann.slash(channel, "forget", scope="everywhere")
    assert "nothing of yours" in result.response.content


async def test_ask_is_private_and_saved_facts_can_be_undone(
    simcord_env: simcord.Env, door: AnsweringDoor
):
    channel, ann, _ = people(simcord_env)
    result = await ann.slash(channel, "ask", question="vpn?")
    assert result.response.ephemeral
    assert channel.history() == []
    session = door.accepted[0].session
    change = FactChange(session, "team", "ops", None)
    door.run = make_run("Noted.", id="run-2", facts_saved=(change,))
    await ann.send(channel, f"<@{bot_id(simcord_env)}> remember I am in ops")
    shown = await ann.click(answer_in(channel), custom_id="facts:run-2")
    assert shown.response.ephemeral
    assert "ops" in shown.response.content
    await ann.click(shown.response, custom_id="undo:run-2:team")
    assert door.calls[-1] == ("undo", session, "run-2", "team")
