"""The facts of a session: kept, replaced, undone, exported.

It must not judge values (core/guard.py does, before `save`) nor know any platform.
"""

from dataclasses import dataclass
from typing import Any

from core.store import Store
from core.types import FactChange, Session

MAX_FACTS = 20
MAX_KEY_CHARS = 40
MAX_VALUE_CHARS = 200


@dataclass(frozen=True, slots=True)
class Fact:
    """What is known of a user under one key. `created_at` is in Unix seconds."""

    value: str
    created_at: float
    message_id: str


def value_digest(value: str) -> str:
    """A short stand-in for a fact's value, for a button that must not carry the value."""
    raise NotImplementedError


class Memory:
    """Facts in Redis, at most MAX_FACTS a session, atomic under concurrent writers."""

    def __init__(self, store: Store, *, memory_ttl_days: int = 180, run_ttl_days: int = 7) -> None:
        raise NotImplementedError

    async def read(self, session: Session) -> tuple[dict[str, Fact], int]:
        """(facts by key, epoch), in one round trip; renews the facts' lifetime.

        Raises:
            StoreError: Redis failed.
        """
        raise NotImplementedError

    async def facts(self, session: Session) -> dict[str, Fact]:
        """The facts by key, oldest first; renews their lifetime. Raises StoreError."""
        raise NotImplementedError

    async def save(
        self, session: Session, key: str, value: str, *, message_id: str, epoch: int, run_id: str
    ) -> FactChange | None:
        """The change, or None when the fact was known already (also in other letters or spacing).

        Raises:
            MemoryRejected: full, out of bounds, or the user had things forgotten since `epoch`.
            StoreError: Redis failed; nothing is known to be saved.
        """
        raise NotImplementedError

    async def undo(self, session: Session, run_id: str, key: str) -> bool:
        """Whether what `run_id` saved under `key` was taken back and the earlier value restored.

        False when the fact no longer has the value that the run saved, or the session's is not it.
        Raises StoreError.
        """
        raise NotImplementedError

    async def delete(self, session: Session, key: str, digest: str | None = None) -> bool:
        """Whether the fact was deleted; with `digest` only while its value still has it."""
        raise NotImplementedError

    async def sessions(self, platform: str, workspace: str, user: str) -> list[Session]:
        """Every session of the user in the workspace that holds facts. Raises StoreError."""
        raise NotImplementedError

    async def export(self, session: Session) -> dict[str, Any]:
        """JSON-able: {session, facts, turns, runs} of this user in this channel. StoreError."""
        raise NotImplementedError
