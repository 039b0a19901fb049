"""The operator's view of the inbox: stock figures, dead letters, repair.

It must not know how a message is answered.
"""

import secrets
import time
from typing import cast
from urllib.parse import unquote

from core import keys
from core.keys import partitions
from core.memory import DAY_S
from core.store import Arg, Store
from core.types import escape_id
from core.wire import letter_from_json
from core.work import DeadLetter, Stats


async def workplaces(store: Store) -> list[tuple[str, str]]:
    """Every (platform, workspace) that a process was ever started for. Raises StoreError."""
    raw = await store.retrying(lambda: store.client.smembers(keys.workplaces()))
    names = sorted(item.decode() for item in cast("set[bytes]", raw))
    return [(unquote(name.partition("|")[0]), unquote(name.partition("|")[2])) for name in names]


class Backlog:
    """Of one workspace. Dead letters are kept for `run_ttl_days`."""

    def __init__(
        self, store: Store, platform: str, workspace: str, *, run_ttl_days: int = 7
    ) -> None:
        self._store = store
        self._name = f"{escape_id(platform)}|{escape_id(workspace)}"
        self._tags = partitions(platform, workspace)
        self._keep_s = run_ttl_days * DAY_S

    async def register(self) -> None:
        """Makes the workspace known to `workplaces`. Raises StoreError."""
        await self._store.retrying(lambda: self._store.client.sadd(keys.workplaces(), self._name))

    async def stats(self) -> Stats:
        """Depth, oldest age, in flight, dead letters. Raises StoreError."""
        parts = await self._store.run_each("stats", [(tag, ()) for tag in self._tags])
        ages_ms = [now - oldest for _, oldest, now, _, _ in parts if oldest]
        return Stats(
            depth=sum(part[0] for part in parts),
            oldest_age_s=max(ages_ms, default=0) / 1000,
            in_flight=sum(part[3] for part in parts),
            dead=sum(part[4] for part in parts),
        )

    async def dead_letters(self) -> list[DeadLetter]:
        """All that were given up, newest first. Raises StoreError."""
        parts = await self._store.run_each("dead", [(tag, ()) for tag in self._tags])
        letters = [letter_from_json(raw) for part in parts for raw in part]
        return sorted(letters, key=lambda letter: letter.at, reverse=True)

    async def retry_dead(self, letter_id: str) -> bool:
        """Whether the letter was found and put back at the end of its conversation's inbox.

        Raises StoreError.
        """
        args = (letter_id, secrets.token_hex(8))
        return any(await self._store.run_each("retry", [(tag, args) for tag in self._tags]))

    async def gaps(self) -> list[str]:
        """Questions that found nothing good or got a thumbs down, as asked. Raises StoreError."""
        parts = await self._store.run_each("gaps", [(tag, ()) for tag in self._tags])
        return [question.decode() for part in parts for question, _ in part]

    async def repair(self) -> int:
        """How many conversations were stuck and are ready again. Raises StoreError.

        A conversation is stuck when it is marked as ready but its entry is gone from the stream.
        Run at start and daily. Looks at those marked alone, a few hundred at a time. Drops dead
        letters that are too old.
        """
        oldest_ms = int((time.time() - self._keep_s) * 1000)
        cursors: dict[str, bytes] = dict.fromkeys(self._tags, b"0")
        repaired = 0
        while cursors:
            calls: list[tuple[str, tuple[Arg, ...]]] = [
                (tag, (cursor, oldest_ms)) for tag, cursor in cursors.items()
            ]
            replies = await self._store.run_each("repair", calls)
            cursors = {
                tag: cursor
                for (tag, _), (cursor, _) in zip(calls, replies, strict=True)
                if cursor != b"0"
            }
            repaired += sum(count for _, count in replies)
        return repaired
