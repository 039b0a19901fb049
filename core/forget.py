"""Forgetting: every place that holds a user's words is emptied, in this channel or everywhere.

It must not know who may ask: the caller acts for the session's own user.
"""

from dataclasses import dataclass
from typing import Literal

from core.store import Store
from core.types import Session

Scope = Literal["channel", "everywhere"]


@dataclass(frozen=True, slots=True)
class ForgetReport:
    """What was (or, in a preview, would be) deleted, by kind.

    `is_complete` is False when Redis failed before all was done: the counts are true for what was
    done, and forgetting again does the rest.
    """

    facts: int = 0
    turns: int = 0
    records: int = 0
    checkpoints: int = 0
    undos: int = 0
    dead_letters: int = 0
    is_complete: bool = True

    @property
    def total(self) -> int:
        """Things deleted, of all kinds."""
        return (
            self.facts
            + self.turns
            + self.records
            + self.checkpoints
            + self.undos
            + self.dead_letters
        )


async def forget(
    store: Store, session: Session, scope: Scope = "channel", key: str | None = None
) -> ForgetReport:
    """Forgets one fact (`key`), the channel with its threads, or the user in the whole workspace.

    Never raises StoreError: a failure is reported as `is_complete=False`.
    """
    raise NotImplementedError


async def preview(
    store: Store, session: Session, scope: Scope = "channel", key: str | None = None
) -> ForgetReport:
    """The counts that `forget` would give; nothing is changed. Raises StoreError."""
    raise NotImplementedError
