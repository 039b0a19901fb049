"""Redis failing under a running bot: the answer comes, what is not kept is said, it recovers."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Generator
from dataclasses import replace
from pathlib import Path

import pytest

from core.answering import INTERRUPTED, NOT_SAVED
from core.errors import StoreError
from core.types import StopReason
from tests.support import Reply, call, wait_until
from tests.support_chat import RuledModel, Running, running
from tests.support_redis import Server, a_message, serve

QUESTION = "Where does the name go?"
SECRETS = ("127.0.0.1", "hunter22", "/s'", "redis://", "unix://")


@pytest.fixture
def server() -> Generator[Server]:
    with serve("--appendonly", "yes", "--appendfsync", "always") as made:
        yield made


@pytest.fixture
async def model() -> RuledModel:
    return RuledModel(
        {"remember me": [Reply(calls=[call("remember", {"key": "role", "value": "me"})])]}
    )


@pytest.fixture
async def bot(server: Server, tmp_path: Path, model: RuledModel) -> AsyncGenerator[Running]:
    async with running(server.url, tmp_path, model) as runner:
        yield runner


async def begin(bot: Running, model: RuledModel, text: str = QUESTION) -> asyncio.Event:
    """A run that waits inside its model call; the event lets it go on."""
    gate = model.gates[text] = asyncio.Event()
    await bot.chat.submit(a_message(text))
    await wait_until(lambda: model.asked.get(text) == 1)
    return gate


async def goes_on(bot: Running) -> None:
    """Waits until a new question is accepted and answered."""

    async def accepted() -> bool:
        try:
            await bot.chat.submit(a_message("next", message_id="next"))
        except StoreError:
            return False
        return True

    await wait_until(accepted, timeout_s=30, every_s=0.2)
    await wait_until(lambda: bot.adapter.run_for("next") is not None, timeout_s=30)


def shown(bot: Running) -> str:
    return str([(item.text, item.statuses, item.runs) for item in bot.adapter.posted])


async def test_out_of_memory_delivers_the_answer_and_says_what_is_not_kept(
    bot: Running, model: RuledModel, server: Server
) -> None:
    gate = await begin(bot, model)
    server.ask("CONFIG SET maxmemory 1")
    gate.set()
    await wait_until(lambda: bot.adapter.run_for(QUESTION) is not None, timeout_s=30)
    run = bot.adapter.run_for(QUESTION)
    assert run is not None
    assert (run.stop_reason, run.note) == (StopReason.DONE, NOT_SAVED)
    server.ask("CONFIG SET maxmemory 0")
    await goes_on(bot)
    assert [text for text, _ in bot.adapter.done] == [QUESTION, "next"]
    assert not any(secret in shown(bot) for secret in SECRETS)


async def test_a_start_on_a_full_server_waits_until_there_is_room(
    server: Server, tmp_path: Path, model: RuledModel
) -> None:
    server.ask("CONFIG SET maxmemory 1")
    async with running(server.url, tmp_path, model) as bot:

        async def is_refused() -> bool:
            return "errorstat_OOM" in server.ask("INFO errorstats")

        await wait_until(is_refused)
        assert not bot.serving.done()
        server.ask("CONFIG SET maxmemory 0")
        await goes_on(bot)


async def test_a_finished_answer_is_done_with_on_a_full_server(
    bot: Running, server: Server
) -> None:
    def fill() -> Awaitable[None]:
        server.ask("CONFIG SET maxmemory 1")
        return asyncio.sleep(0)

    bot.adapter.before_close = fill
    message = a_message(QUESTION)
    await bot.chat.submit(message)
    await wait_until(lambda: bot.adapter.run_for(QUESTION) is not None)

    async def is_done() -> bool:
        return (await bot.app.backlog("test", "W1").stats()).depth == 0

    await wait_until(is_done)
    server.ask("CONFIG SET maxmemory 0")
    known = replace(message.conversation, thread=f"bot-{message.id}")
    accepted = await bot.chat.submit(replace(a_message("next"), conversation=known))
    assert accepted.conversation == message.conversation


async def test_a_server_that_goes_away_under_way_is_survived(
    bot: Running, model: RuledModel, server: Server
) -> None:
    gate = await begin(bot, model)
    server.stop()
    gate.set()
    await wait_until(lambda: bot.adapter.run_for(QUESTION) is not None, timeout_s=30)
    run = bot.adapter.run_for(QUESTION)
    assert run is not None
    assert run.note == NOT_SAVED
    with pytest.raises(StoreError) as caught:
        await bot.chat.submit(a_message("lost"))  # the platform will deliver it again
    assert not any(secret in str(caught.value) for secret in SECRETS)
    server.restart()
    await goes_on(bot)
    assert [text for text, _ in bot.adapter.done] == [QUESTION, "next"]
    assert model.asked[QUESTION] == 1


async def test_a_given_answer_gets_no_more_status_when_the_process_ends(
    bot: Running, model: RuledModel, server: Server
) -> None:
    gate = await begin(bot, model)
    server.stop()
    gate.set()
    await wait_until(lambda: bot.adapter.run_for(QUESTION) is not None, timeout_s=30)
    await bot.stop()
    assert INTERRUPTED not in bot.adapter.posted[0].statuses


async def test_a_failover_is_waited_for_and_everything_is_saved(
    bot: Running, model: RuledModel, server: Server
) -> None:
    gate = await begin(bot, model)
    server.ask("REPLICAOF 127.0.0.1 1")  # writes answer READONLY from now on
    gate.set()
    await asyncio.sleep(0)
    server.ask("REPLICAOF NO ONE")
    await wait_until(lambda: bot.adapter.run_for(QUESTION) is not None, timeout_s=30)
    run = bot.adapter.run_for(QUESTION)
    assert run is not None
    assert run.note == ""
    await goes_on(bot)
    assert f"Answer to {QUESTION}" in str(model.requests_for("next")[0])


async def test_lost_connections_are_made_again(
    bot: Running, model: RuledModel, server: Server
) -> None:
    gate = await begin(bot, model)
    server.ask("CLIENT KILL TYPE normal SKIPME yes")
    gate.set()
    await wait_until(lambda: bot.adapter.run_for(QUESTION) is not None, timeout_s=30)
    run = bot.adapter.run_for(QUESTION)
    assert run is not None
    assert run.note == ""
    await goes_on(bot)
