"""Facts read and written per second, and what a run's memory costs in round trips.

python bench/memory.py [--json] [--fsync always] [--url URL]
"""

import argparse
import asyncio
import json
import tempfile
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from core.forget import forget
from core.inbox import Inbox
from core.memory import MAX_FACTS, Memory
from core.store import Store
from core.types import Author, Conversation, Message, Session

SESSIONS = 200
SECONDS = 2.0
AT_ONCE = (1, 50)


async def main() -> None:
    """Measures and prints."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--fsync", choices=["everysec", "always", "no"], default="always")
    parser.add_argument("--url", help="measure this server instead of an embedded one")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        store = await Store.open(options.url, Path(folder), fsync=options.fsync)
        try:
            figures = {"fsync": options.fsync, **await _measure(store)}
        finally:
            await store.close()
    lines = (f"{name:36} {value}" for name, value in figures.items())
    print(json.dumps(figures) if options.json else "\n".join(lines))


async def _measure(store: Store) -> dict[str, Any]:
    memory = Memory(store)
    figures: dict[str, Any] = {}
    for session in map(_session, range(SESSIONS)):
        for fact in range(5):
            await memory.save(
                session, f"key {fact}", "a value", message_id="m", epoch=0, run_id="r"
            )

    async def read(number: int) -> None:
        facts, _ = await memory.read(_session(number))
        assert len(facts) >= 5

    async def write(number: int) -> None:
        session, key = _session(number), f"key {number % MAX_FACTS}"
        change = await memory.save(
            session, key, f"value {number}", message_id="m", epoch=0, run_id=f"r{number}"
        )
        assert change is not None

    for at_once in AT_ONCE:
        figures[f"reads_per_s_{at_once}_at_once"] = await _rate(read, at_once)
        figures[f"writes_per_s_{at_once}_at_once"] = await _rate(write, at_once)
    figures["round_trips_per_read"] = await _trips(store, lambda: read(1))
    figures["round_trips_per_write"] = await _trips(store, lambda: write(-1))
    figures |= await _run_cost(store)
    started = time.perf_counter()
    report = await forget(store, _session(1), "everywhere")
    figures["forget_everywhere_ms"] = round((time.perf_counter() - started) * 1e3, 1)
    assert report.facts
    return figures


async def _run_cost(store: Store) -> dict[str, Any]:
    """A run that reads the facts, the history and the epoch, and keeps one fact."""
    inbox, memory = Inbox(store), Memory(store)
    await inbox.take((("bench", "W1"),), 1, 1)
    await inbox.accept(_message())

    async def with_memory() -> None:
        (taken,) = await inbox.take((("bench", "W1"),), 1)
        await memory.save(
            taken.message.session,
            "city",
            "Pune",
            message_id=taken.message.id,
            epoch=taken.epoch,
            run_id=taken.run_id,
        )

    # Taking costs two trips (read the stream, begin) whether or not there is a memory.
    trips = await _trips(store, with_memory) - 2
    await inbox.leave()
    return {"round_trips_of_memory_per_run": trips}


async def _rate(call: Callable[[int], Awaitable[None]], at_once: int) -> int:
    done = 0
    began = time.perf_counter()
    until = began + SECONDS

    async def work(first: int) -> None:
        nonlocal done
        number = first
        while time.perf_counter() < until:
            await call(number)
            number += at_once
            done += 1

    await asyncio.gather(*(work(number) for number in range(at_once)))
    return round(done / (time.perf_counter() - began))


async def _trips(store: Store, call: Callable[[], Awaitable[None]]) -> int:
    """Calls that reached the server: commands inside a script are not round trips."""

    async def count() -> int:
        stats = await store.client.info("commandstats")
        names = ("evalsha", "eval", "xreadgroup")
        return sum(stats.get(f"cmdstat_{name}", {}).get("calls", 0) for name in names)

    before = await count()
    await call()
    return await count() - before


def _session(number: int) -> Session:
    return Session("bench", "W1", f"C{number % SESSIONS % 50}", f"U{number % SESSIONS}")


def _message() -> Message:
    return Message(
        id="m1",
        conversation=Conversation("bench", "W1", "C1", "T1"),
        session=Session("bench", "W1", "C1", "U999"),
        author=Author("U999", "someone"),
        text="I live in Pune.",
        sent_at=time.time(),
    )


if __name__ == "__main__":
    asyncio.run(main())
