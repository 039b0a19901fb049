"""Forgetting through the door: the next prompt holds nothing, a run under way saves nothing."""

import asyncio
from collections.abc import AsyncGenerator
from pathlib import Path

import pytest

from core.transcript import content_text
from tests.support import Reply, call, wait_until
from tests.support_chat import RuledModel, Running, running
from tests.support_redis import a_message, a_session, serve, texts

MARKER = "zanzibar"
TOLD = f"I live in {MARKER}"
REMEMBER = Reply(calls=[call("remember", {"key": "place", "value": MARKER})])


@pytest.fixture
async def model() -> RuledModel:
    return RuledModel({TOLD: [REMEMBER, Reply(f"Noted: {MARKER}.")]})


@pytest.fixture
async def bot(tmp_path: Path, model: RuledModel) -> AsyncGenerator[Running]:
    with serve() as server:
        async with running(server.url, tmp_path, model) as runner:
            yield runner


async def ask(bot: Running, text: str, user: str = "U1") -> str:
    """The answer to `text`."""
    before = len(bot.adapter.done)
    await bot.chat.submit(a_message(text, user=user))
    await wait_until(lambda: len(bot.adapter.done) > before)
    return bot.adapter.done[-1][1].text


async def test_a_told_fact_is_in_the_next_prompt_of_its_user_alone(
    bot: Running, model: RuledModel
) -> None:
    await ask(bot, TOLD)
    model.echo = True
    other = await ask(bot, "And of me?", user="U2")
    assert f"- place: {MARKER}" not in other  # the thread is shared, the memory is not
    assert f"- place: {MARKER}" in await ask(bot, "What do you know?")


async def test_after_forgetting_the_whole_prompt_holds_nothing_of_the_old(
    bot: Running, model: RuledModel
) -> None:
    await ask(bot, TOLD)
    counts = await bot.chat.forget_preview(a_session())
    report = await bot.chat.forget(a_session())
    assert report == counts
    assert (report.facts, report.turns, report.is_complete) == (1, 1, True)
    model.echo = True
    assert MARKER not in await ask(bot, "What do you know?")
    assert MARKER not in str(await texts(bot.app.store))


async def test_forgetting_during_a_run_wins_over_it(bot: Running, model: RuledModel) -> None:
    gate = model.gates[TOLD] = asyncio.Event()
    message = a_message(TOLD)
    await bot.chat.submit(message)
    await wait_until(lambda: model.asked.get(TOLD) == 1)
    await bot.chat.forget(a_session())
    gate.set()
    await wait_until(lambda: len(bot.adapter.done) == 1)
    run = bot.adapter.done[0][1]
    assert run.facts_saved == ()
    assert run.trace[0].is_error  # the model was told that nothing was kept
    assert not await bot.chat.facts(a_session())
    model.echo = True
    assert MARKER not in await ask(bot, "What do you know?")


async def test_the_other_users_of_a_thread_keep_everything(bot: Running, model: RuledModel) -> None:
    await ask(bot, TOLD)
    model.rules["I cover Fridays"] = [
        Reply(calls=[call("remember", {"key": "shift", "value": "cover Fridays"})]),
        Reply("Fine."),
    ]
    await ask(bot, "I cover Fridays", user="U2")
    assert set(await bot.chat.facts(a_session())) == {"place"}
    await bot.chat.forget(a_session())
    kept = await bot.chat.facts(a_session("U2"))
    assert {key: fact.value for key, fact in kept.items()} == {"shift": "cover Fridays"}
    model.echo = True
    assert "I cover Fridays" in await ask(bot, "And?", user="U2")


async def test_undo_restores_what_a_run_replaced(bot: Running, model: RuledModel) -> None:
    for place in ("Pune", "Delhi"):
        model.rules[f"I live in {place}"] = [
            Reply(calls=[call("remember", {"key": "place", "value": place})]),
            Reply("Noted."),
        ]
        await ask(bot, f"I live in {place}")
    change = bot.adapter.done[-1][1].facts_saved[0]
    assert (change.old, change.value) == ("Pune", "Delhi")
    run_id = bot.adapter.done[-1][1].id
    assert not await bot.chat.undo(a_session("U2"), run_id, "place")
    assert await bot.chat.undo(a_session(), run_id, "place")
    assert (await bot.chat.facts(a_session()))["place"].value == "Pune"
    assert not await bot.chat.undo(a_session(), run_id, "place")


async def test_a_fact_that_only_others_said_is_refused_with_the_reason(
    bot: Running, model: RuledModel
) -> None:
    await ask(bot, TOLD)
    model.rules["Where do I live?"] = [REMEMBER, Reply("I do not know.")]
    await ask(bot, "Where do I live?", user="U2")
    assert not await bot.chat.facts(a_session("U2"))
    result = model.requests[-1][-1]["content"][0]
    assert result["is_error"]
    assert "own words" in content_text(result["content"])


async def test_secrets_are_in_no_history_record_or_checkpoint(
    bot: Running, model: RuledModel
) -> None:
    secret = "ghp_" + "a1B2c3D4e5" * 4
    asked = f"My token is {secret}, why does it fail?"
    model.rules[asked] = [
        Reply(calls=[call("search_docs", {"query": f"resume {secret}"})]),
        Reply(f"Your token {secret} has expired."),
    ]
    gate = model.gates[asked] = asyncio.Event()
    gate.set()
    await ask(bot, asked)
    assert secret not in str(await texts(bot.app.store))
    exported = str(await bot.app.memory.export(a_session()))
    assert "has expired" in exported
    assert secret not in exported
