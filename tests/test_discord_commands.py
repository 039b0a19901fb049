"""Commands and clicks in Discord: private, acknowledged in time, done once, each owner's own."""

import asyncio
from typing import Any

import pytest

from core.forget import ForgetReport
from core.memory import Fact, value_digest
from core.types import FactChange
from tests.support_discord import STEP, Door, Scene, make_run, scene, settle, wait_until

EPHEMERAL = 64


@pytest.fixture
async def at():
    async with scene() as made:
        yield made


async def shown(at: Scene, token: str, count: int = 1) -> dict[str, Any]:
    """The `count`-th thing that the interaction showed, all of it private."""
    responses = at.server.rest.responses
    await wait_until(lambda: len(responses.get(token, ())) >= count)
    await settle(at.server, 0.1)
    callback = at.server.rest.interactions[token]["callback"]
    if callback["type"] == 5:
        assert callback["data"]["flags"] & EPHEMERAL
    return responses[token][count - 1]


def custom_ids(message: dict[str, Any]) -> list[str]:
    return [c["custom_id"] for row in message["components"] for c in row["components"]]


async def test_ask_is_answered_privately(at: Scene):
    token = at.server.command(at.channel, at.ann, "ask", question="how do I use the VPN?")
    message = await at.asked()
    assert message.text == "how do I use the VPN?"
    assert message.session.channel == at.channel["id"]
    reply = await at.client.adapter.open_reply(message, None)
    await reply.append("Use")
    await shown(at, token)
    await reply.append(" it.")
    await reply.close(make_run("Use it. " * 500, trace=(STEP,)))
    first, second, third = at.server.rest.responses[token]
    assert first["content"].startswith("Use it.")
    assert second["flags"] & EPHEMERAL
    assert custom_ids(third) == ["trace:run-1"]
    assert at.server.sent(at.channel) == []
    assert reply.ref == {"done": 3}


async def test_finished_parts_of_a_private_answer_are_not_shown_twice(at: Scene):
    token = at.server.command(at.channel, at.ann, "ask", question="vpn?")
    message = await at.asked()
    at.server.rest.fail("POST", r"/webhooks/", 400, 50035)
    reply = await at.client.adapter.open_reply(message, None)
    with pytest.raises(Exception, match="50035"):
        await reply.close(make_run("Use it. " * 500))
    await at.answer(message, make_run("Use it. " * 500), ref=reply.ref)
    assert len(at.server.rest.responses[token]) == 3


async def test_private_answer_after_the_token_expired_goes_to_the_dm_and_never_the_channel(
    at: Scene,
):
    token = at.server.command(at.channel, at.ann, "ask", question="vpn?")
    message = await at.asked()
    at.server.rest.interactions[token]["is_expired"] = True
    await at.answer(message, make_run("Secret answer"))
    dm = next(c for c in at.server.world.channels.values() if c["type"] == 1)
    [post] = at.server.sent(dm)
    assert post["content"].startswith("Secret answer")
    assert at.server.sent(at.channel) == []

    at.server.rest.fail("POST", r"/channels/\d+/messages", 403, 50007)
    token = at.server.command(at.channel, at.ann, "ask", question="vpn again?")
    message = await at.asked(2)
    at.server.rest.interactions[token]["is_expired"] = True
    await at.answer(message, make_run("Secret answer"))
    [post] = at.server.sent(at.channel)
    assert "Secret" not in post["content"]
    assert "took too long" in post["content"]


async def test_memory_shows_facts_and_deletes_the_one_chosen():
    facts = {"shift": Fact("covers @everyone", 1_700_000_000, "1"), "team": Fact("ops", 1, "2")}
    async with scene(door=Door(kept=dict(facts))) as at:
        token = at.server.command(at.channel, at.ann, "memory")
        message = await shown(at, token)
        assert "**shift**" in message["content"]
        assert "@everyone" not in message["content"]
        assert "<t:1700000000:d>" in message["content"]
        assert "<#999>" in message["content"]
        assert custom_ids(message) == ["fact-delete"]
        chosen = f"{value_digest('ops')}:team"
        option = message["components"][0]["components"][0]["options"][1]
        assert option["value"] == chosen
        token = at.server.click(at.channel, at.ann, message, "fact-delete", values=[chosen])
        message = await shown(at, token)
        assert message["content"] == "Deleted: team."
        session = at.door.calls[1][1]
        assert at.door.calls[1][2:] == ("team", value_digest("ops"))
        assert (session.user, session.channel) == (at.ann["id"], at.channel["id"])


async def test_forget_previews_then_does_it_once(at: Scene):
    token = at.server.command(at.channel, at.ann, "forget", scope="everywhere")
    message = await shown(at, token)
    assert "2 facts, 1 question with its answer" in message["content"]
    assert at.door.calls == []
    assert custom_ids(message) == ["forget:everywhere", "forget-not"]
    token = at.server.click(at.channel, at.ann, message, "forget-not")
    assert (await shown(at, token))["content"] == "Nothing was deleted."
    token = at.server.click(at.channel, at.ann, message, "forget:everywhere")
    assert (await shown(at, token))["content"].startswith("Forgotten everywhere: 2 facts")
    [(name, session, scope)] = at.door.calls
    assert (name, session.user, scope) == ("forget", at.ann["id"], "everywhere")


async def test_nothing_to_forget_is_said_plainly(at: Scene):
    at.door.report = ForgetReport()
    for scope, where in (("this channel", "in this channel"), ("everywhere", "anywhere")):
        token = at.server.command(at.channel, at.ann, "forget", scope=scope)
        assert f"nothing of yours {where}" in (await shown(at, token))["content"]


async def test_failed_forget_says_so(at: Scene):
    at.door.report = ForgetReport(facts=1, is_complete=False)
    token = at.server.click(at.channel, at.ann, {}, "forget:channel")
    assert "Not everything could be deleted" in (await shown(at, token))["content"]


async def test_slow_store_is_acknowledged_at_once_and_executed_once():
    async with scene(door=Door(delay_s=4.0)) as at:
        loop = asyncio.get_running_loop()
        token = at.server.click(at.channel, at.ann, {}, "forget:channel")
        state = at.server.rest.interactions[token]
        await wait_until(lambda: "callback" in state)
        assert loop.time() - state["sent_at"] < 3
        message = await shown(at, token)
        assert message["content"].startswith("Forgotten")
        assert len(at.door.calls) == 1


async def test_late_click_changes_nothing_and_says_so(at: Scene):
    at.server.rest.fail("POST", r"/callback$", 404, 10062)
    at.server.click(at.channel, at.ann, {}, "forget:channel")
    [post] = await wait_until(lambda: at.server.sent(at.channel))
    assert "nothing was done" in post["content"]
    assert at.door.calls == []


async def test_click_that_another_process_took_is_left_alone(at: Scene):
    at.server.rest.fail("POST", r"/callback$", 400, 40060)
    at.server.click(at.channel, at.ann, {}, "forget:channel")
    await settle(at.server)
    assert at.door.calls == []
    assert at.server.sent(at.channel) == []


async def test_expired_token_after_forgetting_says_in_the_channel_that_it_is_done(at: Scene):
    at.server.rest.fail("PATCH", r"/webhooks/", 401, 50027)
    at.server.click(at.channel, at.ann, {}, "forget:channel")
    [post] = await wait_until(lambda: at.server.sent(at.channel))
    assert post["content"] == "What you asked me to forget is forgotten."


async def test_trace_is_for_the_asker_alone_at_each_click(at: Scene):
    secret = STEP.__class__(1, "search_docs", {"query": "vpn"}, "long output", False, 3)
    at.door.runs[at.ann["id"], "run-1"] = make_run(trace=(secret,))
    token = at.server.click(at.channel, at.ben, {}, "trace:run-1")
    assert "Only whoever asked" in (await shown(at, token))["content"]
    token = at.server.click(at.channel, at.ann, {}, "trace:run-1")
    assert "search" in (await shown(at, token))["content"]
    [call] = [c for c in at.calls("PATCH", "/webhooks/") if "_files" in c.body]
    await wait_until(lambda: call.status)
    assert call.status == 200
    [(name, data)] = call.body["_files"]
    assert name == "trace.md"
    assert b"long output" in data


async def test_saved_facts_are_shown_to_their_owner_with_an_undo(at: Scene):
    session = (await at.ask()).session
    change = FactChange(session, "shift: late", "Fridays", "Mondays")
    at.door.runs[at.ann["id"], "run-1"] = make_run(facts_saved=(change,))
    token = at.server.click(at.channel, at.ben, {}, "facts:run-1")
    assert "Fridays" not in (await shown(at, token))["content"]
    token = at.server.click(at.channel, at.ann, {}, "facts:run-1")
    message = await shown(at, token)
    assert "Fridays" in message["content"]
    assert custom_ids(message) == ["undo:run-1:shift: late"]
    token = at.server.click(at.channel, at.ann, message, "undo:run-1:shift: late")
    assert "Taken back" in (await shown(at, token))["content"]
    assert at.door.calls[-1] == ("undo", session, "run-1", "shift: late")


async def test_command_in_a_thread_is_about_the_channel(at: Scene):
    thread = at.server.world.thread(at.channel, at.ben)
    at.server.dispatch("THREAD_CREATE", thread)
    token = at.server.command(thread, at.ann, "memory")
    await shown(at, token)
    assert at.door.calls[0][1].channel == at.channel["id"]


async def test_store_that_is_down_is_said_privately():
    async with scene(door=Door(failures=9)) as at:
        token = at.server.command(at.channel, at.ann, "memory")
        assert "could not reach my memory" in (await shown(at, token))["content"]


async def test_outsider_is_refused_privately():
    async with scene(discord_guilds="1") as at:
        token = at.server.command(at.channel, at.ann, "ask", question="vpn?")
        state = at.server.rest.interactions[token]
        await wait_until(lambda: "callback" in state)
        assert state["callback"]["data"]["flags"] & EPHEMERAL
        assert at.door.accepted == []


async def test_command_in_a_dm_is_told_in_time_though_membership_is_not():
    async with scene(is_listed=True) as at:
        released = at.server.rest.hold("GET", "/members/")
        dm = at.server.world.channel(None, 1)
        token = at.server.command(dm, at.ann, "memory")
        state = at.server.rest.interactions[token]
        await wait_until(lambda: "callback" in state)
        assert asyncio.get_running_loop().time() - state["sent_at"] < 3
        assert "try again" in state["callback"]["data"]["content"]
        released.set()
        token = at.server.command(dm, at.ann, "memory")
        assert "nothing about you" in (await shown(at, token))["content"]


async def test_commands_are_synced_only_when_they_changed():
    async with scene() as at:
        assert len(at.calls("PUT", "/commands")) == 1
        names = {c["name"] for c in at.server.world.commands}
        assert names == {"ask", "memory", "forget", "Ask about this"}
        for command in at.server.world.commands:
            assert command["contexts"] == [0, 1]
            assert command["integration_types"] == [0]
        kept = at.server.world.commands

    def known(server, *_: Any) -> None:
        server.world.commands = kept

    async with scene(prepare=known) as at:
        assert not at.calls("PUT", "/commands")

    def other(server, *_: Any) -> None:
        server.world.commands = [{**kept[0], "description": "old"}, *kept[1:]]

    async with scene(prepare=other) as at:
        assert len(at.calls("PUT", "/commands")) == 1
