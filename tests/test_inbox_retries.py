"""What failed is tried again, then put aside; the stock tells what waits, runs and died."""

import time
from pathlib import Path

import pytest

from core.backlog import Backlog
from core.errors import StoreError
from core.store import Store
from core.work import MAX_TRIES
from tests.support import wait_until
from tests.support_inbox import PLACES, an_inbox, finish, take, take_none, take_one
from tests.support_redis import a_message, serve

pytest_plugins = ("tests.support_redis_fixtures",)

LEASE_S = 0.8


async def test_failures_are_retried_then_buried_and_the_next_is_answered(any_store: Store) -> None:
    inbox = an_inbox(any_store, lease_s=LEASE_S)
    backlog = Backlog(any_store, "test", "W1")
    message = a_message("poison")
    await inbox.accept(message)
    await inbox.accept(a_message("next"))
    taken = await take_one(inbox)
    for attempt in range(1, MAX_TRIES):
        assert not taken.is_last_try
        await inbox.checkpoint(taken, f"state {attempt}", attempt)
        failed_at = time.monotonic()
        # The second wait is longer than a lease.
        wait_s = 0.15 * attempt**3
        assert await inbox.fail(taken, "boom", wait_s) is None
        again = await take_one(inbox)
        assert wait_s <= time.monotonic() - failed_at < wait_s + 10
        assert (again.run_id, again.attempts) == (taken.run_id, attempt)
        assert again.checkpoint == f"state {attempt}"
        taken = again
    assert taken.is_last_try
    following = await inbox.fail(taken, "boom", 1)
    assert following is not None
    assert following.message.text == "next"
    (letter,) = await backlog.dead_letters()
    assert (letter.id, letter.reason, letter.attempts) == (taken.run_id, "boom", MAX_TRIES)
    assert letter.message == message
    assert await finish(inbox, following) is None
    assert (await backlog.stats()).dead == 1
    assert not await backlog.retry_dead("unknown")
    assert await backlog.retry_dead(letter.id)
    assert not await backlog.retry_dead(letter.id)
    revived = await take_one(inbox)
    assert (revived.message, revived.attempts) == (message, 0)
    assert await backlog.dead_letters() == []


async def test_due_retry_of_a_dead_worker_is_brought_back(any_store: Store) -> None:
    old, new = (an_inbox(any_store, name, lease_s=LEASE_S) for name in ("old", "new"))
    await old.accept(a_message())
    await old.fail(await take_one(old), "boom", 0.2)
    taken = await take_one(new)
    assert taken.attempts == 1


async def test_due_retry_of_a_worker_that_left_is_handed_over(any_store: Store) -> None:
    old, new = (an_inbox(any_store, name) for name in ("old", "new"))
    await old.accept(a_message())
    held = await take_one(old)
    await take_none(new)
    await old.fail(held, "boom", 2)
    await old.leave()
    taken = await take_one(new)
    assert (taken.run_id, taken.attempts) == (held.run_id, 1)


async def test_orphaned_act_is_repaired(any_store: Store) -> None:
    inbox, backlog = an_inbox(any_store), Backlog(any_store, "test", "W1")
    message, other = a_message("stuck"), a_message("fine", thread="T2")
    await inbox.accept(message)
    await inbox.accept(other)
    tag = message.conversation.tag
    act, ready = f"{{{tag}}}:act", f"{{{tag}}}:ready"
    entry = await any_store.client.hget(act, message.conversation.key)
    await any_store.client.xdel(ready, entry)
    await any_store.client.hset(act, "C1/T9", "1-1")
    assert [taken.message.text for taken in await take(inbox, 2, wait_s=0.2)] == ["fine"]
    assert await backlog.repair() == 1
    assert await backlog.repair() == 0
    assert (await take_one(inbox)).message.text == "stuck"
    assert not await any_store.client.hexists(act, "C1/T9")


async def test_old_dead_letters_are_dropped_by_repair(store: Store) -> None:
    inbox = an_inbox(store, lease_s=LEASE_S)
    await inbox.accept(a_message())
    for _ in range(MAX_TRIES):
        await inbox.fail(await take_one(inbox), "boom", 0)
    assert await Backlog(store, "test", "W1").repair() == 0
    assert len(await Backlog(store, "test", "W1").dead_letters()) == 1
    await Backlog(store, "test", "W1", run_ttl_days=0).repair()
    assert await Backlog(store, "test", "W1").dead_letters() == []


async def test_stats_count_what_waits_runs_and_died(any_store: Store) -> None:
    inbox, backlog = an_inbox(any_store), Backlog(any_store, "test", "W1")
    assert (await backlog.stats()).depth == 0
    for number in range(4):
        await inbox.accept(a_message(thread=f"T{number % 2}"))
    await inbox.accept(a_message(channel="C2"))
    await inbox.accept(a_message(workspace="W2"))
    await take_one(inbox)
    stats = await backlog.stats()
    assert (stats.depth, stats.in_flight, stats.dead) == (5, 1, 0)
    await wait_until(lambda: _is_older(backlog, 0.05))


async def _is_older(backlog: Backlog, age_s: float) -> bool:
    return (await backlog.stats()).oldest_age_s > age_s


async def test_streams_that_vanish_are_made_again(store: Store) -> None:
    inbox = an_inbox(store)
    await take_none(inbox, 0.05)
    await store.client.flushall()
    await inbox.accept(a_message())
    assert (await take_one(inbox)).message.text == "hello"


async def test_streams_that_cannot_be_made_are_an_error(tmp_path: Path) -> None:
    with serve() as server:
        store = await Store.open(server.url, tmp_path)
        inbox = an_inbox(store)
        await take_none(inbox, 0.05)
        await store.client.flushall()
        server.ask("CONFIG SET maxmemory 1")
        # An empty reply would be asked for again at once.
        with pytest.raises(StoreError):
            await inbox.take(PLACES, 1)
        await store.close()
