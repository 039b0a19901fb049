"""Forgetting: every place that holds a user's words is emptied, in this channel or everywhere.

It must not know who may ask: the caller acts for the session's own user.
"""

import logging
import secrets
from dataclasses import astuple, dataclass
from typing import Literal

from core.errors import StoreError
from core.keys import partitions
from core.memory import DAY_S
from core.store import Store
from core.types import Session, escape_id

log = logging.getLogger(__name__)

Scope = Literal["channel", "everywhere"]

_EPOCH_TTL_S = 30 * DAY_S
"""Longer than any run lasts: after it, no run is left that began before the forgetting."""

_THREAD_TTL_S = 30 * DAY_S


@dataclass(frozen=True, slots=True)
class ForgetReport:
    """What was (or, in a preview, would be) deleted, by kind.

    `turns` are questions with their answers, `checkpoints` runs under way that cannot be resumed,
    `undos` the values that an Undo would restore. `is_complete` is False when Redis failed before
    all was done: the counts are true for what was done, and forgetting again does the rest.
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
        return sum(astuple(self)[:-1])


async def forget(
    store: Store, session: Session, scope: Scope = "channel", key: str | None = None
) -> ForgetReport:
    """Forgets one fact (`key`), the channel with its threads, or the user in the whole workspace.

    One script for each partition: atomic in a channel. A run of the user that is under way may
    still deliver its answer but saves nothing; messages that wait in the queue stay, and are
    answered from an empty memory. Never raises StoreError: see `ForgetReport.is_complete`.
    """
    total = ForgetReport()
    for tag in _tags(session, scope):
        try:
            report = await _call(store, tag, session, scope, key, is_preview=False)
        except StoreError:
            log.warning("forgetting stopped half-way")
            return _sum(total, ForgetReport(is_complete=False))
        total = _sum(total, report)
    return total


async def preview(
    store: Store, session: Session, scope: Scope = "channel", key: str | None = None
) -> ForgetReport:
    """The counts that `forget` would give; nothing is changed. Raises StoreError."""
    total = ForgetReport()
    for tag in _tags(session, scope):
        total = _sum(total, await _call(store, tag, session, scope, key, is_preview=True))
    return total


def _tags(session: Session, scope: Scope) -> list[str]:
    if scope == "channel":
        return [session.tag]
    return partitions(session.platform, session.workspace)


async def _call(
    store: Store, tag: str, session: Session, scope: Scope, key: str | None, *, is_preview: bool
) -> ForgetReport:
    *counts, complete = await store.run(
        "forget",
        tag,
        escape_id(session.user),
        session.user,
        escape_id(session.channel) if scope == "channel" else "",
        key or "",
        escape_id(key or ""),
        int(is_preview),
        secrets.token_hex(8),
        _EPOCH_TTL_S,
        _THREAD_TTL_S,
    )
    return ForgetReport(*(int(count) for count in counts), is_complete=bool(complete))


def _sum(a: ForgetReport, b: ForgetReport) -> ForgetReport:
    return ForgetReport(
        facts=a.facts + b.facts,
        turns=a.turns + b.turns,
        records=a.records + b.records,
        checkpoints=a.checkpoints + b.checkpoints,
        undos=a.undos + b.undos,
        dead_letters=a.dead_letters + b.dead_letters,
        is_complete=a.is_complete and b.is_complete,
    )
