"""Short hands for tests on the inbox: workers that take, answer and deliver."""

import json
import time
from collections.abc import Sequence

from core.history import Turn
from core.inbox import Inbox
from core.memory import Memory
from core.store import Store
from core.types import Session
from core.work import Taken

PLACES = (("test", "W1"),)


def an_inbox(store: Store, name: str | None = None, *, lease_s: float = 10.0) -> Inbox:
    return Inbox(store, lease_s=lease_s, consumer=name)


async def take(
    inbox: Inbox, count: int = 1, *, places: Sequence[tuple[str, str]] = PLACES, wait_s: float = 5.0
) -> list[Taken]:
    """`count` messages, or as many as come within `wait_s`."""
    taken: list[Taken] = []
    deadline = time.monotonic() + wait_s
    while len(taken) < count and (left := deadline - time.monotonic()) > 0:
        taken += await inbox.take(places, count - len(taken), max(1, int(left * 1000)))
    return taken


async def take_one(inbox: Inbox) -> Taken:
    (taken,) = await take(inbox)
    return taken


async def take_none(inbox: Inbox, wait_s: float = 0.1) -> None:
    assert await take(inbox, wait_s=wait_s) == []


def a_turn(taken: Taken, answer: str = "the answer") -> Turn:
    author = taken.message.author
    return Turn(author.id, author.name, taken.message.text, answer, taken.run_id, time.time())


async def answer(inbox: Inbox, taken: Taken, answer: str = "the answer") -> str:
    """The save outcome of an answer that is not delivered yet."""
    run = json.dumps({"id": taken.run_id, "text": answer})
    return await inbox.answered(taken, run, a_turn(taken, answer), 1)


async def finish(inbox: Inbox, taken: Taken, text: str = "the answer") -> Taken | None:
    """Answers and delivers; the next message."""
    await answer(inbox, taken, text)
    return await inbox.delivered(taken)


async def remember(store: Store, session: Session, value: str, key: str = "city") -> None:
    memory = Memory(store)
    _, epoch = await memory.read(session)
    await memory.save(session, key, value, message_id="m", epoch=epoch, run_id=f"r{value[:8]}")
