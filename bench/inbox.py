"""Throughput, latency, round trips and idle cost of the inbox, without a model or a platform.

    python -m bench.inbox [--json] [--messages 6000] [--workers 2] [--fsync everysec] [--url URL]

A process submits, others take, save what was posted, save the answer, deliver. The server is an
embedded one in a temporary folder, with the durability asked for, unless `--url` names another.
"""

import argparse
import asyncio
import json
import statistics
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from core.history import Turn
from core.inbox import Inbox
from core.store import Store
from core.types import Author, Conversation, Message, Session
from core.work import Taken

ROOT = Path(__file__).resolve().parent.parent
PLACES = (("bench", "W1"),)
CONVERSATIONS = 200
CONCURRENT_RUNS = 64
SUBMITS_AT_ONCE = 64
IDLE_S = 20.0
RUN = json.dumps({"id": "r", "text": "An answer of ordinary length. " * 10, "trace": []})
CLIENT_CALLS = ("evalsha", "eval", "xreadgroup")


async def main() -> None:
    """Runs all parts and prints the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--messages", type=int, default=6_000)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--fsync", choices=["everysec", "always", "no"], default="everysec")
    parser.add_argument("--url", help="measure this server instead of an embedded one")
    parser.add_argument("--work", nargs=2, metavar=("FOLDER", "SECONDS"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.work:
        await _work(options.url, Path(options.work[0]), float(options.work[1]))
        return
    with tempfile.TemporaryDirectory() as folder:
        store = await Store.open(options.url, Path(folder), fsync=options.fsync)
        try:
            figures = {
                "fsync": options.fsync,
                **await _throughput(store, options, folder),
                **await _round_trips(store),
                **await _idle(store),
            }
        finally:
            await store.close()
    print(json.dumps(figures) if options.json else _table(figures))


async def _throughput(store: Store, options: argparse.Namespace, folder: str) -> dict[str, Any]:
    inbox = Inbox(store)
    await store.client.delete("bench:done", "bench:go")
    command = ["-m", "bench.inbox", "--work", folder, "90"]
    command += ["--url", options.url] if options.url else []
    workers = [
        await asyncio.create_subprocess_exec(
            sys.executable, *command, stdout=asyncio.subprocess.PIPE, cwd=ROOT
        )
        for _ in range(options.workers)
    ]
    for worker in workers:
        assert worker.stdout
        await worker.stdout.readline()
    before, cpu_before = await _calls(store), await _cpu_s(store)
    began = time.time()
    accepts: list[float] = []

    async def submit(first: int) -> None:
        for number in range(first, options.messages, SUBMITS_AT_ONCE):
            started = time.perf_counter()
            await inbox.accept(_message(number, number % CONVERSATIONS))
            accepts.append(time.perf_counter() - started)

    await asyncio.gather(*(submit(number) for number in range(SUBMITS_AT_ONCE)))
    submitted = time.time()
    async with asyncio.timeout(60):
        while int(await store.client.get("bench:done") or 0) < options.messages:  # noqa: ASYNC110
            await asyncio.sleep(0.005)
    seconds = time.time() - began
    calls = await _calls(store) - before
    cpu_s = await _cpu_s(store) - cpu_before
    await store.client.set("bench:go", "stop")
    outs = [json.loads((await worker.communicate())[0]) for worker in workers]
    waits = [wait for out in outs for wait in out["waits"]]
    runs = [run for out in outs for run in out["runs"]]
    return {
        "messages": options.messages,
        "workers": options.workers,
        "messages_per_s": round(options.messages / seconds),
        "accepts_per_s": round(options.messages / (submitted - began)),
        # Of all processes, the server too: comparable on a machine that is busy with other things.
        "cpu_ms_per_message": round((cpu_s + sum(o["cpu_s"] for o in outs)) * 1e3 / len(runs), 2),
        "accept_ms": _quantiles(accepts),
        "accept_to_taken_ms": _quantiles(waits),
        "taken_to_done_ms": _quantiles(runs),
        "calls_per_message_under_load": round(calls / options.messages, 2),
    }


async def _work(url: str | None, folder: Path, seconds: float) -> None:
    """A worker process: answers until it is told to stop."""
    store = await Store.open(url, folder)
    inbox = Inbox(store)
    waits: list[float] = []
    runs: list[float] = []
    tasks: set[asyncio.Task[None]] = set()

    held: dict[str, Taken] = {}

    async def beat() -> None:
        while True:
            await inbox.heartbeat(list(held.values()))
            await asyncio.sleep(inbox.beat_s)

    async def answer(found: Taken) -> None:
        taken: Taken | None = found
        done = 0
        while taken:
            held[taken.run_id] = taken
            waits.append(time.time() - taken.message.sent_at)
            started = time.perf_counter()
            following = await _answer(inbox, taken)
            runs.append(time.perf_counter() - started)
            del held[taken.run_id]
            taken, done = following, done + 1
        await store.client.incrby("bench:done", done)

    await inbox.take(PLACES, 1, 1)
    print("ready", flush=True)
    cpu_began = time.process_time()
    until = time.monotonic() + seconds
    async with asyncio.TaskGroup() as group:
        beating = group.create_task(beat())
        while time.monotonic() < until and await store.client.get("bench:go") is None:
            if len(tasks) >= CONCURRENT_RUNS:
                await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
                continue
            for taken in await inbox.take(PLACES, CONCURRENT_RUNS - len(tasks), 200):
                task = group.create_task(answer(taken))
                tasks.add(task)
                task.add_done_callback(tasks.discard)
        beating.cancel()
    cpu_s = time.process_time() - cpu_began
    await inbox.leave()
    await store.close()
    print(json.dumps({"waits": waits, "runs": runs, "cpu_s": cpu_s}))


async def _answer(inbox: Inbox, taken: Taken) -> Taken | None:
    author = taken.message.author
    turn = Turn(author.id, author.name, taken.message.text, "An answer.", taken.run_id, time.time())
    await inbox.save_ref(taken, {"ts": "1.1"}, ["bot-post"])
    await inbox.answered(taken, RUN, turn, 10)
    return await inbox.delivered(taken)


async def _round_trips(store: Store, messages: int = 200) -> dict[str, Any]:
    """One message at a time, so that nothing is shared between messages."""
    inbox = Inbox(store)
    await inbox.take(PLACES, 1, 1)
    before = await _calls(store)
    waits: list[float] = []
    totals: list[float] = []
    for number in range(messages):
        started = time.perf_counter()
        await inbox.accept(_message(1_000_000 + number, 100_000 + number))
        (taken,) = await inbox.take(PLACES, 1)
        waits.append(time.perf_counter() - started)
        assert await _answer(inbox, taken) is None
        totals.append(time.perf_counter() - started)
    calls = await _calls(store) - before
    await inbox.leave()
    return {
        "alone_round_trips_per_message": round(calls / messages, 2),
        "alone_accept_to_taken_ms": _quantiles(waits),
        "alone_accept_to_done_ms": _quantiles(totals),
    }


async def _idle(store: Store) -> dict[str, Any]:
    """What one process that waits for work costs, by the server's own count of commands."""
    inbox = Inbox(store)
    await inbox.take(PLACES, 64, 1)
    before = await store.client.info("stats")
    until = time.monotonic() + IDLE_S
    while time.monotonic() < until:
        await inbox.take(PLACES, 64)
    after = await store.client.info("stats")
    count = after["total_commands_processed"] - before["total_commands_processed"] - 1
    await inbox.leave()
    return {"idle_commands_per_s": round(count / IDLE_S, 2)}


async def _calls(store: Store) -> int:
    """Calls that clients made: commands inside a script are not round trips."""
    stats = await store.client.info("commandstats")
    return sum(stats.get(f"cmdstat_{name}", {}).get("calls", 0) for name in CLIENT_CALLS)


async def _cpu_s(store: Store) -> float:
    """Processor time of this process and of the server so far."""
    used = await store.client.info("cpu")
    return time.process_time() + float(used["used_cpu_user"]) + float(used["used_cpu_sys"])


def _message(number: int, conversation: int) -> Message:
    channel = f"C{conversation % 50}"
    return Message(
        id=f"m{number}",
        conversation=Conversation("bench", "W1", channel, f"T{conversation}"),
        session=Session("bench", "W1", channel, f"U{number % 100}"),
        author=Author(f"U{number % 100}", "someone"),
        text="How do I put my work experience on a resume that a machine reads first?",
        sent_at=time.time(),
    )


def _quantiles(seconds: Sequence[float]) -> dict[str, float]:
    cuts = statistics.quantiles(seconds, n=100)
    return {name: round(cuts[at] * 1000, 2) for name, at in (("p50", 49), ("p95", 94), ("p99", 98))}


def _table(figures: dict[str, Any]) -> str:
    return "\n".join(f"{name:32} {value}" for name, value in figures.items())


if __name__ == "__main__":
    asyncio.run(main())
