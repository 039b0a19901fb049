"""Whatever dies or freezes: the next worker goes on, and the old one changes nothing."""

import asyncio
import os
import signal
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from core.backlog import Backlog
from core.inbox import Inbox
from core.store import Store
from core.work import LeaseLost
from tests.support import wait_until
from tests.support_inbox import PLACES, a_turn, an_inbox, answer, finish, take, take_none, take_one
from tests.support_redis import History, Server, a_message, dump

pytest_plugins = ("tests.support_redis_fixtures",)

LEASE_S = 0.8

# A worker in a process of its own: takes one message, says so, and beats until it is stopped.
WORKER = """
import asyncio, sys
from pathlib import Path
from core.inbox import Inbox
from core.store import Store
from core.work import LeaseLost
from tests.support_inbox import PLACES, answer, take_one

async def main():
    store = await Store.open(sys.argv[1], Path("."))
    inbox = Inbox(store, lease_s=float(sys.argv[2]), consumer=sys.argv[3])
    if sys.argv[3] == "reader":
        await inbox._ready._enter(PLACES)
        await inbox._ready.tick()
        await inbox._ready._read(1, 4000)
        print("read", flush=True)
        await asyncio.Event().wait()
    taken = await take_one(inbox)
    await inbox.checkpoint(taken, "half way", 1234)
    print(taken.run_id, flush=True)
    while not (await inbox.heartbeat([taken])).lost:
        await asyncio.sleep(inbox.beat_s)
    try:
        await answer(inbox, taken, "late")
    except LeaseLost:
        print("lost", flush=True)

asyncio.run(main())
"""


def _python(script: str, *args: str) -> "subprocess.Popen[str]":
    return subprocess.Popen(
        [sys.executable, "-c", script, *args],
        stdout=subprocess.PIPE,
        text=True,
        cwd=Path(__file__).parent.parent,
    )


def _worker(server: Server, name: str) -> "subprocess.Popen[str]":
    return _python(WORKER, server.url, str(LEASE_S), name)


async def _line(process: "subprocess.Popen[str]") -> str:
    assert process.stdout
    return (await asyncio.to_thread(process.stdout.readline)).strip()


async def _end(process: "subprocess.Popen[str]") -> None:
    process.kill()
    await asyncio.to_thread(process.communicate)


async def test_killed_workers_run_goes_on_from_its_checkpoint(
    store: Store, redis_server: Server
) -> None:
    message = a_message()
    inbox = an_inbox(store, "alive", lease_s=LEASE_S)
    await take_none(inbox, 0.05)
    process = _worker(redis_server, "dying")
    await inbox.accept(message)
    run_id = await _line(process)
    await inbox.accept(a_message("next"))
    await take_none(inbox, LEASE_S * 2)
    await _end(process)
    dead_at = time.monotonic()
    taken = await take_one(inbox)
    assert time.monotonic() - dead_at < LEASE_S + 5
    assert (taken.run_id, taken.checkpoint, taken.elapsed_ms) == (run_id, "half way", 1234)
    following = await finish(inbox, taken)
    assert following is not None
    assert following.message.text == "next"


async def test_worker_frozen_past_its_lease_changes_nothing(
    store: Store, redis_server: Server
) -> None:
    message = a_message()
    inbox = an_inbox(store, "alive", lease_s=LEASE_S)
    await inbox.accept(message)
    process = _worker(redis_server, "frozen")
    await _line(process)
    process.send_signal(signal.SIGSTOP)
    taken = await take_one(inbox)
    await answer(inbox, taken, "in time")
    process.send_signal(signal.SIGCONT)
    assert await _line(process) == "lost"
    assert await inbox.delivered(taken) is None
    await _end(process)
    (turn,) = await History(store).read(message.conversation, 8_000)
    assert turn.answer == "in time"


async def test_killed_between_reading_and_beginning_is_taken_over(
    store: Store, redis_server: Server
) -> None:
    inbox = an_inbox(store, "alive", lease_s=LEASE_S)
    await take_none(inbox, 0.05)
    process = _worker(redis_server, "reader")
    await wait_until(lambda: store.client.zscore("{test/W1}:workers", "reader"))
    await inbox.accept(a_message())
    assert await _line(process) == "read"
    await _end(process)
    assert (await take_one(inbox)).message.text == "hello"


async def test_what_a_full_process_read_ahead_goes_to_others(any_store: Store) -> None:
    """On a cluster readers outlive the call; what they read must not wait for a free slot."""
    full, other = (an_inbox(any_store, name, lease_s=LEASE_S) for name in ("full", "other"))
    for number in range(8):
        await full.accept(a_message(f"{number}", channel=f"C{number}"))
    held = await take(full, 1)
    waiting = asyncio.create_task(take(other, 7, wait_s=5))
    while not waiting.done():
        assert not (await full.heartbeat(held)).lost
        await asyncio.wait([waiting], timeout=full.beat_s)
    assert len(await waiting) == 7


async def test_every_late_write_is_refused(any_store: Store) -> None:
    old, new = (an_inbox(any_store, name, lease_s=LEASE_S) for name in ("old", "new"))
    message = a_message()
    await old.accept(message)
    stale = await take_one(old)
    await take_none(new, 0.05)
    fresh = await take_one(new)
    assert fresh.run_id == stale.run_id
    before = await dump(any_store)
    writes: list[Callable[[], Awaitable[Any]]] = [
        lambda: old.checkpoint(stale, "late", 1),
        lambda: old.save_ref(stale, {"late": 1}, ["late"]),
        lambda: old.answered(stale, "{}", a_turn(stale), 1),
        lambda: old.delivered(stale),
        lambda: old.fail(stale, "late", 0),
    ]
    for write in writes:
        with pytest.raises(LeaseLost):
            await write()
    assert not await old.owns(stale)
    assert (await old.heartbeat([stale])).lost == {stale.run_id}
    after = await dump(any_store)
    workers = b"{test/W1}:workers"
    assert {**after, workers: b""} == {**before, workers: b""}
    assert await new.owns(fresh)
    assert await finish(new, fresh) is None


async def test_saved_answer_is_only_delivered_by_the_next_worker(any_store: Store) -> None:
    old, new = (an_inbox(any_store, name, lease_s=LEASE_S) for name in ("old", "new"))
    await old.accept(a_message())
    stale = await take_one(old)
    await old.save_ref(stale, {"ts": "1"})
    await answer(old, stale, "kept")
    taken = await take_one(new)
    assert (taken.phase, taken.ref) == ("answered", {"ts": "1"})
    assert taken.final is not None
    assert "kept" in taken.final
    assert await new.delivered(taken) is None
    assert len(await History(any_store).read(taken.conversation, 8_000)) == 1


async def test_heartbeat_keeps_a_long_run(store: Store) -> None:
    inbox, other = (an_inbox(store, name, lease_s=LEASE_S) for name in ("a", "b"))
    await inbox.accept(a_message())
    taken = await take_one(inbox)
    until = time.monotonic() + 3 * LEASE_S

    async def beat() -> None:
        while time.monotonic() < until:
            assert not (await inbox.heartbeat([taken])).lost
            await asyncio.sleep(inbox.beat_s)

    _, stolen = await asyncio.gather(beat(), take(other, wait_s=3 * LEASE_S))
    assert stolen == []
    assert await inbox.owns(taken)


async def test_run_of_a_worker_that_leaves_goes_on_at_once_elsewhere(any_store: Store) -> None:
    inbox, other = (an_inbox(any_store, name) for name in ("a", "b"))
    await inbox.accept(a_message())
    taken = await take_one(inbox)
    waiting = asyncio.create_task(take_one(other))
    await inbox.checkpoint(taken, "state", 77)
    await inbox.leave()
    async with asyncio.timeout(2):
        going_on = await waiting
    assert (going_on.run_id, going_on.checkpoint, going_on.elapsed_ms) == (
        taken.run_id,
        "state",
        77,
    )
    with pytest.raises(LeaseLost):
        await inbox.checkpoint(taken, "late", 99)


async def test_leaving_hands_over_all_that_was_read(any_store: Store) -> None:
    inbox, other = (an_inbox(any_store, name) for name in ("a", "b"))
    for number in range(5):
        await inbox.accept(a_message(f"{number}", thread=f"T{number}"))
    held = await take(inbox, 5)
    assert len(held) == 5
    await inbox.leave()
    async with asyncio.timeout(3):
        assert len(await take(other, 5)) == 5
    assert await any_store.client.zrange("{test/W1}:workers", 0, -1) == [b"b"]
    # Nothing remains of a consumer that left.
    tag = a_message().conversation.tag
    consumers = await any_store.client.xinfo_consumers(f"{{{tag}}}:ready", "workers")
    assert [consumer["name"] for consumer in consumers] == [b"b"]


async def test_kill_inside_submit_either_queues_once_or_not_at_all(
    store: Store, redis_server: Server
) -> None:
    """A process killed anywhere in its submits: each redelivery afterwards is answered once."""
    script = """
import asyncio, sys
from pathlib import Path
from core.inbox import Inbox
from core.store import Store
from tests.support_redis import a_message

async def main():
    inbox = Inbox(await Store.open(sys.argv[1], Path(".")))
    print("ready", flush=True)
    await asyncio.gather(*(
        inbox.accept(a_message(f"{n}", thread=f"T{n}", message_id=f"m{n}")) for n in range(3000)
    ))

asyncio.run(main())
"""
    process = _python(script, redis_server.url)
    assert await _line(process) == "ready"
    backlog = Backlog(store, "test", "W1")
    await wait_until(lambda: _has_depth(backlog))
    os.kill(process.pid, signal.SIGKILL)
    await asyncio.to_thread(process.communicate)
    queued = (await backlog.stats()).depth
    assert 0 < queued < 3000
    inbox = an_inbox(store)
    again = [
        await inbox.accept(a_message(f"{n}", thread=f"T{n}", message_id=f"m{n}"))
        for n in range(queued + 20)
    ]
    outcomes = [accepted.outcome for accepted in again]
    assert outcomes == ["duplicate"] * queued + ["queued"] * 20
    assert (await backlog.stats()).depth == queued + 20


async def _has_depth(backlog: Backlog) -> bool:
    return (await backlog.stats()).depth > 0


async def test_many_ready_conversations_are_shared_out(store: Store) -> None:
    busy, idle = Inbox(store, consumer="busy"), Inbox(store, consumer="idle")
    for number in range(60):
        await busy.accept(a_message(f"{number}", channel=f"C{number}"))
    first = await busy.take(PLACES, 2)
    assert len(first) == 2
    rest = await take(idle, 58)
    assert len({taken.message.text for taken in first + rest}) == 60
