"""The server did what it was asked, and its answer was lost: no work is lost, none done twice."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from core.backlog import Backlog
from core.forget import ForgetReport, forget
from core.memory import Memory
from core.store import Store
from core.types import FactChange
from core.work import MAX_TRIES, Taken
from tests.support_inbox import PLACES, an_inbox, answer, finish, take, take_one
from tests.support_redis import History, Server, a_message, a_session
from tests.support_redis_proxy import Proxy, losing

pytest_plugins = ("tests.support_redis_fixtures",)

LEASE_S = 0.4
U1 = a_session()


@dataclass
class Line:
    """A store whose replies can be lost, beside one whose replies are not."""

    store: Store
    proxy: Proxy
    sure: Store

    def lose(self, word: str) -> None:
        """Lose the next reply to a call that has `word` among its arguments."""
        self.proxy.lose.append(word.encode())


@pytest.fixture
async def line(redis_server: Server, store: Store, tmp_path: Path) -> AsyncIterator[Line]:
    async with losing(redis_server) as proxy:
        opened = await Store.open(proxy.url, tmp_path)
        yield Line(opened, proxy, store)
        await opened.close()
        # A test that lost nothing has shown nothing.
        assert proxy.lost > 0
        assert proxy.lose == []


async def test_message_read_without_an_answer_is_taken_soon(line: Line) -> None:
    inbox, sender = an_inbox(line.store, "w", lease_s=LEASE_S), an_inbox(line.sure)
    await inbox.take(PLACES, 1, 1)
    line.lose("XREADGROUP")
    await sender.accept(a_message("lost"))
    assert (await take_one(inbox)).message.text == "lost"


async def test_message_swept_without_an_answer_is_taken_soon(line: Line) -> None:
    dying, inbox = an_inbox(line.sure, "dying"), an_inbox(line.store, "w", lease_s=LEASE_S)
    await dying.accept(a_message("swept"))
    await take_one(dying)
    await inbox.take(PLACES, 1, 1)
    line.lose(f"{inbox._consumer}/")
    assert (await take_one(inbox)).message.text == "swept"


async def test_accept_without_an_answer_is_queued_once(line: Line) -> None:
    inbox = an_inbox(line.store)
    line.lose("once only")
    assert (await inbox.accept(a_message("once only"))).outcome == "duplicate"
    assert (await Backlog(line.sure, "test", "W1").stats()).depth == 1


async def test_fact_saved_without_an_answer_is_reported_with_what_it_replaced(line: Line) -> None:
    memory = Memory(line.store)
    await memory.save(U1, "city", "Pune", message_id="m", epoch=0, run_id="r1")
    line.lose("Delhi")
    change = await memory.save(U1, "city", "Delhi", message_id="m", epoch=0, run_id="r2")
    assert change == FactChange(U1, "city", "Delhi", "Pune")
    line.lose("r2/city")
    assert await memory.undo(U1, "r2", "city")
    assert (await memory.facts(U1))["city"].value == "Pune"
    line.lose("city")
    assert await memory.delete(U1, "city")


async def test_forgotten_without_an_answer_is_counted_truly(line: Line) -> None:
    memory = Memory(line.store)
    await memory.save(U1, "city", "Pune", message_id="m", epoch=0, run_id="r1")
    await memory.save(U1, "tea", "green", message_id="m", epoch=0, run_id="r1")
    line.lose("U1")
    assert await forget(line.store, U1) == ForgetReport(facts=2, undos=2)


async def test_answer_delivery_and_failure_without_an_answer_count_once(line: Line) -> None:
    inbox = an_inbox(line.store, "w", lease_s=LEASE_S)
    for number in range(4):
        await inbox.accept(a_message(f"message {number}"))
    first = await take_one(inbox)
    line.lose("the only answer")
    assert await answer(inbox, first, "the only answer") == "saved"
    line.lose(first.lease)
    second = await inbox.delivered(first)
    assert second is not None
    assert second.message.text == "message 1"
    for _ in range(MAX_TRIES - 1):
        await inbox.fail(second, "boom", 0)
        second = await take_one(inbox)
    line.lose("boom")
    third = await inbox.fail(second, "boom", 0)
    assert third is not None
    assert third.message.text == "message 2"
    fourth = await finish(inbox, third)
    assert fourth is not None
    assert await finish(inbox, fourth) is None
    assert len(await History(line.sure).read(first.conversation, 8_000)) == 3
    backlog = Backlog(line.store, "test", "W1")
    assert [letter.message.text for letter in await backlog.dead_letters()] == ["message 1"]
    line.lose(second.run_id)
    assert await backlog.retry_dead(second.run_id)
    assert [taken.message.text for taken in await take(inbox, 2, wait_s=0.3)] == ["message 1"]


async def test_cancelled_take_loses_nothing(any_store: Store) -> None:
    inbox = an_inbox(any_store, lease_s=LEASE_S)
    texts: set[str] = set()
    for number in range(20):
        taking = asyncio.create_task(inbox.take(PLACES, 1))
        await asyncio.sleep(0)
        await inbox.accept(a_message(f"{number}", thread=f"T{number}"))
        taking.cancel()
        await asyncio.wait([taking])
        if not taking.cancelled():  # it came too late, or was lost (core/ending.py)
            texts |= {taken.message.text for taken in taking.result()}
    async with asyncio.timeout(20):
        while len(texts) < 20:  # the same one may come again, as nobody renews its lease here
            texts |= {taken.message.text for taken in await inbox.take(PLACES, 20)}


async def test_lost_replies_do_not_end_two_messages(any_store: Store) -> None:
    """A call that ended the head, made again by the client: the next message is still there."""
    inbox = an_inbox(any_store)
    for text in ("one", "two", "three"):
        await inbox.accept(a_message(text))
    taken: Taken | None = await take_one(inbox)
    texts: list[str] = []
    while taken:
        texts.append(taken.message.text)
        await answer(inbox, taken)
        first = await inbox.delivered(taken)
        again = await inbox.delivered(taken)
        assert (again and again.message) == (first and first.message)
        taken = first
    assert texts == ["one", "two", "three"]
