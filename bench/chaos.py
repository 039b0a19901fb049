"""Kills, stops and redelivers while messages are answered, and counts what went wrong.

Two worker processes serve a recording fake platform; messages are spread over the time, as people
write them. Goals: 0 missing, 0 doubled, 0 out of order, and no more model calls repeated than
there were kills and stops: each was under way in a worker that was killed or stopped.

    python -m bench.chaos [--messages 500] [--conversations 50] [--seconds 110] [--json]
"""

import argparse
import asyncio
import itertools
import json
import os
import random
import signal
import sys
import tempfile
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from core.errors import StoreError
from core.inbox import Inbox
from core.store import Store
from core.types import Author, Conversation, Message, Session
from tests.fake_platform import PLATFORM, WORKSPACE, PlatformServer

LEASE_S = 1.5
WORKERS = 2


@dataclass
class Plan:
    """How much is done to how many."""

    messages: int = 500
    conversations: int = 50
    seconds: float = 110.0
    spread_s: float = 70.0
    redelivered: float = 0.1
    seed: int = 7
    kill_server_after_s: float | None = 6.0
    pause_s: tuple[float, float] = (0.6, 1.6)


@dataclass
class Damage:
    """What was done to the processes."""

    kills: int = 0
    stops: int = 0
    server_kills: int = 0
    redelivered: int = 0
    submit_errors: int = 0
    workers: dict[int, asyncio.subprocess.Process] = field(default_factory=dict)


async def chaos(plan: Plan, folder: Path) -> Mapping[str, float]:
    """The figures of one run in `folder`, on an embedded server of its own."""
    rng = random.Random(plan.seed)
    damage = Damage()
    began = time.monotonic()
    order: dict[str, list[str]] = {}
    async with PlatformServer(model_delay_s=0.02) as platform:
        for place in range(WORKERS):
            await _start(damage, platform.url, folder, place)
        store = await Store.open(None, folder / "data")
        inbox = Inbox(store)
        breaking = asyncio.create_task(_break(plan, damage, platform, folder, store, rng))
        try:
            async with asyncio.timeout(plan.seconds):
                await _submit_all(plan, damage, inbox, rng, order)
                breaking_until = time.monotonic() + 2.0
                while len(platform.finished) < plan.messages:
                    if time.monotonic() > breaking_until:
                        breaking.cancel()  # at the end everything may settle
                    await asyncio.sleep(0.05)
        except TimeoutError:
            print("not all was answered in time", file=sys.stderr)
        finally:
            breaking.cancel()
            await asyncio.wait([breaking])
            for worker in damage.workers.values():
                with suppress(ProcessLookupError):
                    worker.send_signal(signal.SIGCONT)
                    worker.terminate()
                await worker.wait()
            await store.close()
            if not breaking.cancelled() and (fault := breaking.exception()):
                raise fault
    return _figures(plan, damage, platform, order, time.monotonic() - began)


async def _start(damage: Damage, url: str, folder: Path, place: int) -> None:
    log = (folder / f"worker{place}.log").open("ab")
    worker = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "tests.fake_platform",
        url,
        "",
        str(folder / "data"),
        json.dumps({"lease_s": LEASE_S}),
        stdout=asyncio.subprocess.PIPE,
        stderr=log,
    )
    log.close()
    damage.workers[place] = worker  # known before it is ready, so that it is ended in any case
    assert worker.stdout is not None
    assert (await worker.stdout.readline()) == b"ready\n", "a worker did not start"


async def _submit_all(
    plan: Plan,
    damage: Damage,
    inbox: Inbox,
    rng: random.Random,
    order: dict[str, list[str]],
) -> None:
    """Submits every message, some twice; notes each conversation's order of acceptance."""
    queues: dict[str, list[Message]] = {}
    for number in range(plan.messages):
        thread = f"T{number % plan.conversations}"
        queues.setdefault(thread, []).append(_message(number, thread))

    pause_s = 2 * plan.spread_s * plan.conversations / plan.messages

    async def submit(message: Message) -> None:
        while True:
            try:
                await inbox.accept(message)
                return
            except StoreError:  # the platform would deliver it again
                damage.submit_errors += 1
                await asyncio.sleep(0.1)

    async def talk(thread: str, messages: list[Message]) -> None:
        for message in messages:
            await asyncio.sleep(rng.uniform(0, pause_s))
            await submit(message)
            order.setdefault(thread, []).append(message.id)
            if rng.random() < plan.redelivered:
                damage.redelivered += 1
                await submit(message)

    await asyncio.gather(*(talk(thread, messages) for thread, messages in queues.items()))


def _message(number: int, thread: str) -> Message:
    channel = f"C{thread}"
    return Message(
        id=f"m{number}",
        conversation=Conversation(PLATFORM, WORKSPACE, channel, thread),
        session=Session(PLATFORM, WORKSPACE, channel, "U1"),
        author=Author("U1", "U1"),
        text=f"m{number}",
        sent_at=time.time(),
    )


async def _break(
    plan: Plan,
    damage: Damage,
    platform: PlatformServer,
    folder: Path,
    store: Store,
    rng: random.Random,
) -> None:
    began = time.monotonic()
    while True:
        await asyncio.sleep(rng.uniform(*plan.pause_s))
        place = rng.randrange(WORKERS)
        worker = damage.workers[place]
        if rng.random() < 0.6:
            worker.kill()
            await worker.wait()
            damage.kills += 1
            # while it starts, the other worker is alone
            await _start(damage, platform.url, folder, place)
        else:
            worker.send_signal(signal.SIGSTOP)
            damage.stops += 1
            await asyncio.sleep(LEASE_S * 1.4)
            with suppress(ProcessLookupError):
                worker.send_signal(signal.SIGCONT)
        due = plan.kill_server_after_s
        if due is not None and not damage.server_kills and time.monotonic() - began > due:
            os.kill(int((await store.client.info("server"))["process_id"]), signal.SIGKILL)
            damage.server_kills += 1


def _figures(
    plan: Plan,
    damage: Damage,
    platform: PlatformServer,
    order: Mapping[str, list[str]],
    seconds: float,
) -> dict[str, float]:
    answered = [post.message_id for post in platform.posts.values() if post.finals]
    finished = {message: place for place, message in enumerate(platform.finished)}
    out_of_order = sum(
        finished[earlier] > finished[later]
        for messages in order.values()
        for earlier, later in itertools.pairwise(messages)
        if earlier in finished and later in finished
    )
    return {
        "messages": plan.messages,
        "missing": plan.messages - len(set(answered)),
        "doubled": len(answered) - len(set(answered)),
        "out_of_order": out_of_order,
        "model_calls_repeated": sum(count - 1 for count in platform.model_calls.values()),
        "kills": damage.kills,
        "stops": damage.stops,
        "server_kills": damage.server_kills,
        "redelivered": damage.redelivered,
        "submit_errors": damage.submit_errors,
        "seconds": round(seconds, 1),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--messages", type=int, default=500)
    parser.add_argument("--conversations", type=int, default=50)
    parser.add_argument("--seconds", type=float, default=110.0)
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--json", action="store_true")
    known = parser.parse_args()
    spread_s = min(70.0, known.seconds * 0.65)
    plan = Plan(known.messages, known.conversations, known.seconds, spread_s, seed=known.seed)
    with tempfile.TemporaryDirectory(prefix="fn-chaos-") as folder:
        figures: Mapping[str, Any] = asyncio.run(chaos(plan, Path(folder)))
    if known.json:
        print(json.dumps(figures))
        return
    for name, value in figures.items():
        print(f"{name:24} {value:>8}")


if __name__ == "__main__":
    main()
