"""Redis was away for longer than a lease: those who live keep what they hold, the dead do not."""

import asyncio
from collections.abc import AsyncGenerator, Generator, Sequence
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import pytest

from core.errors import StoreError
from core.inbox import Inbox
from core.lease import Held
from core.protocols import Adapter
from core.store import Store
from core.work import Taken
from core.worker import Worker
from tests.support import wait_until
from tests.support_chat import RecordingAdapter
from tests.support_inbox import PLACES, an_inbox, finish, take, take_none, take_one
from tests.support_redis import Server, a_message, serve

LEASE_S = 0.5


@pytest.fixture
def server() -> Generator[Server]:
    with serve("--appendonly", "yes", "--appendfsync", "always") as made:
        yield made


@pytest.fixture
async def workers(server: Server, tmp_path: Path) -> AsyncGenerator[tuple[Inbox, Inbox]]:
    """Two, each with a connection of its own as two processes have."""
    async with AsyncExitStack() as stack:
        made: list[Inbox] = []
        for name in ("one", "two"):
            store = await Store.open(server.url, tmp_path)
            stack.push_async_callback(store.close)
            made.append(an_inbox(store, name, lease_s=LEASE_S))
        yield made[0], made[1]


async def away(server: Server, *inboxes: Inbox) -> None:
    """Stops the server, lets the workers see that it is gone and every lease run out."""
    server.stop()
    for inbox in inboxes:
        with pytest.raises(StoreError):
            await inbox.take(PLACES, 1, 1)
    server.restart()

    async def is_back() -> bool:
        return server.ask("PING") == "+PONG"

    await wait_until(is_back)


async def test_what_this_process_is_at_is_not_taken_again(
    server: Server, workers: tuple[Inbox, Inbox]
) -> None:
    one, _ = workers
    await one.accept(a_message())
    held = await take_one(one)
    await away(server, one)
    assert await one.take(PLACES, 1, 1, held=[held]) == []
    assert await finish(one, held) is None


class Busy:
    """An answering that never ends."""

    async def answer(self, held: Held, adapter: Adapter) -> None:
        await asyncio.Event().wait()


class Noting(Inbox):
    """Notes what is named as held with every take."""

    held: Sequence[Sequence[Taken]] = ()

    async def take(self, *args: Any, held: Sequence[Taken] = (), **named: Any) -> list[Taken]:
        self.held = [*self.held, held]
        return await super().take(*args, held=held, **named)


async def test_what_was_just_taken_is_named_as_held(server: Server, tmp_path: Path) -> None:
    store = await Store.open(server.url, tmp_path)
    inbox, stop = Noting(store), asyncio.Event()
    worker = Worker(inbox, Busy(), grace_s=0)  # type: ignore[arg-type]
    await inbox.accept(a_message())
    serving = asyncio.create_task(worker.serve([RecordingAdapter()], stop))
    await wait_until(lambda: len(inbox.held) >= 2)
    assert [len(held) for held in inbox.held[:2]] == [0, 1]
    stop.set()
    await serving
    await store.close()


async def test_what_failed_between_two_takes_is_taken_again(
    server: Server, workers: tuple[Inbox, Inbox]
) -> None:
    one, _ = workers
    await one.accept(a_message())
    held = await take_one(one)
    server.stop()
    with pytest.raises(StoreError):
        await one.fail(held, "boom", 0)
    server.restart()
    assert (await take_one(one)).message.id == held.message.id


async def test_what_a_process_lost_sight_of_it_takes_again(
    server: Server, workers: tuple[Inbox, Inbox]
) -> None:
    one, _ = workers
    await one.accept(a_message())
    held = await take_one(one)
    await away(server, one)
    assert (await take_one(one)).message.id == held.message.id


async def test_others_wait_until_the_living_have_renewed(
    server: Server, workers: tuple[Inbox, Inbox]
) -> None:
    one, two = workers
    await one.accept(a_message())
    held = await take_one(one)
    await take_none(two, 0.01)
    await away(server, one, two)
    assert await two.take(PLACES, 1, 1) == []
    assert not (await one.heartbeat([held])).lost
    assert await finish(one, held) is None
    await take_none(two, 3.0)


async def test_what_died_meanwhile_is_taken_over_all_the_same(
    server: Server, workers: tuple[Inbox, Inbox]
) -> None:
    one, two = workers
    await one.accept(a_message())
    held = await take_one(one)
    await take_none(two, 0.01)
    await away(server, two)
    (taken,) = await take(two, wait_s=10.0)
    assert taken.message.id == held.message.id
