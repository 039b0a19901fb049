"""The durable inbox: a message is accepted once, waits in its conversation's order, is done once.

It must not know how a message is answered, nor any platform. All writes of a worker are fenced:
one whose lease was taken over gets LeaseLost and changes nothing.
"""

import json
import secrets
import time
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, cast
from urllib.parse import unquote

from core.history import MAX_TURNS, Turn, turn_to_json
from core.memory import DAY_S
from core.protocols import Ref
from core.ready import Ready, Workplace, new_run_id
from core.store import MAX_BLOCK_MS, Arg, Store
from core.types import Conversation, Message, Session, escape_id
from core.wire import item_parts, taken_from_reply
from core.work import (
    MAX_TRIES,
    Accepted,
    Beat,
    CancelOutcome,
    LeaseLost,
    Outcome,
    SaveOutcome,
    Taken,
    WithdrawOutcome,
)

MAX_NOTES = 10
MAX_NOTE_CHARS = 500


class Inbox:
    """One per process. `consumer` names this process among the workers; made up when None."""

    def __init__(
        self,
        store: Store,
        *,
        lease_s: float = 10.0,
        memory_ttl_days: int = 180,
        history_ttl_days: int = 30,
        run_ttl_days: int = 7,
        consumer: str | None = None,
    ) -> None:
        self._store = store
        self._consumer = consumer or secrets.token_hex(6)
        self._history_ttl_s = history_ttl_days * DAY_S
        self._ttls = (memory_ttl_days * DAY_S, run_ttl_days * DAY_S)
        self._ready = Ready(store, self._consumer, lease_s, *self._ttls)
        self.beat_s = min(0.5, lease_s * 0.2)
        """How often `heartbeat` must be called while anything is held."""
        self.hold_s = self._ready.claim_ms / 1000
        """How long after a renewal a lease is surely ours, without asking."""

    # For whoever talks to us. Each is one round trip, and raises StoreError. ---------------------

    async def accept(self, message: Message) -> Accepted:
        """What became of `message`. When it is "queued" or "duplicate", it will be answered."""
        where = message.conversation
        replied = replace(where, thread=message.reply_to).key if message.reply_to else ""
        outcome, key = await self._store.run(
            "accept",
            where.tag,
            where.key,
            replied,
            escape_id(message.id),
            *item_parts(message),
            int(message.needs_engaged),
            self._history_ttl_s,
        )
        thread = unquote(key.decode().partition("/")[2])
        return Accepted(cast("Outcome", outcome.decode()), replace(where, thread=thread))

    async def cancel(self, conversation: Conversation, by: str) -> CancelOutcome:
        """Asks the run under way to stop, if user `by` asked for it. Seen within `beat_s`."""
        outcome = await self._store.run("cancel", conversation.tag, conversation.key, by)
        return cast("CancelOutcome", outcome.decode())

    async def withdraw(
        self, conversation: Conversation, message_id: str, *, is_whole_thread: bool = False
    ) -> WithdrawOutcome:
        """Takes a message out of the queue, or asks its run to stop when that is under way.

        `conversation` may be where the platform puts the message: where it was queued is known.
        With `is_whole_thread` everything that waits or runs in the conversation goes with it.
        """
        args = (conversation.key, message_id, escape_id(message_id), int(is_whole_thread))
        outcome = await self._store.run("withdraw", conversation.tag, *args)
        return cast("WithdrawOutcome", outcome.decode())

    async def mute(self, conversation: Conversation, is_muted: bool) -> None:
        """A muted conversation takes only messages that are not `needs_engaged`."""
        await self._store.run(
            "mute", conversation.tag, conversation.key, int(is_muted), self._history_ttl_s
        )

    async def note_context(self, conversation: Conversation, label: str, text: str) -> None:
        """Keeps what another bot said: the 10 newest, 500 characters each; in `Taken.notes`."""
        await self._store.run(
            "note",
            conversation.tag,
            conversation.key,
            label,
            text[:MAX_NOTE_CHARS],
            MAX_NOTES,
            self._history_ttl_s,
        )

    async def record(self, session: Session, run_id: str) -> str | None:
        """The JSON of a run that `session` asked for; None when gone or someone else's."""
        run = await self._store.run("record", session.tag, escape_id(run_id), session.key)
        return run.decode() if run is not None else None

    async def feedback(self, session: Session, run_id: str, is_good: bool) -> bool:
        """Whether the verdict was kept with the run; False when it is gone or someone else's."""
        args = (escape_id(run_id), session.key, "good" if is_good else "bad", self._ttls[1])
        return bool(await self._store.run("feedback", session.tag, *args))

    # For workers. Every one on a Taken raises LeaseLost but `owns`, and all raise StoreError. ----

    async def take(
        self,
        workplaces: Sequence[Workplace],
        count: int,
        block_ms: int = MAX_BLOCK_MS,
        held: Sequence[Taken] = (),
    ) -> list[Taken]:
        """At most `count` messages to answer, one a conversation; empty after `block_ms` or less.

        Never one of `held`, those that this process is at, though their leases may have run out.

        Takes over from dead workers and brings back due retries too. After a StoreError call again
        after a pause. Safe to cancel: what was read and lost comes back when its lease ends.
        """
        leases: dict[str, list[str]] = defaultdict(list)
        for taken in held:
            leases[taken.conversation.tag].append(taken.lease)
        heads = await self._ready.take(workplaces, count, block_ms, leases)
        return [taken for head in heads if (taken := taken_from_reply(head))]

    async def heartbeat(self, held: Sequence[Taken]) -> Beat:
        """Keeps the leases. Call every `beat_s` with all that this process holds."""
        groups: dict[str, list[Taken]] = defaultdict(list)
        for taken in held:
            groups[taken.conversation.tag].append(taken)
        calls: list[tuple[str, list[Arg]]] = [
            (tag, [self._consumer, *(arg for taken in group for arg in _beat_args(taken))])
            for tag, group in groups.items()
        ]
        replies = await self._store.run_each("beat", calls)
        await self._ready.tick()
        states = {
            taken.run_id: state
            for group, reply in zip(groups.values(), replies, strict=True)
            for taken, state in zip(group, reply, strict=True)
        }
        return Beat(
            lost=frozenset(run_id for run_id, state in states.items() if state == 0),
            cancelled=frozenset(run_id for run_id, state in states.items() if state == 2),
        )

    async def owns(self, taken: Taken) -> bool:
        """Whether the lease is still ours: ask at the first post and at the close."""
        return bool(await self._store.run("owns", taken.conversation.tag, *_fence(taken)))

    async def checkpoint(self, taken: Taken, data: str, elapsed_ms: int) -> None:
        """Saves the run so far; `elapsed_ms` in total, earlier workers' time included."""
        reply = await self._store.run(
            "checkpoint", taken.conversation.tag, *_fence(taken), data, elapsed_ms
        )
        if not reply:
            raise LeaseLost

    async def save_ref(self, taken: Taken, ref: Ref, aliases: Sequence[str] = ()) -> None:
        """Saves what was posted, and the posts' ids as aliases of the conversation."""
        reply = await self._store.run(
            "ref",
            taken.conversation.tag,
            *_fence(taken),
            json.dumps(ref, ensure_ascii=False),
            self._history_ttl_s,
            *_aliases(taken.conversation, aliases),
        )
        if not reply:
            raise LeaseLost

    async def answered(
        self,
        taken: Taken,
        run_json: str,
        turn: Turn | None,
        elapsed_ms: int,
        aliases: Sequence[str] = (),
        *,
        is_gap: bool = False,
    ) -> SaveOutcome:
        """Saves the final run, its record and its turn, in one call; then it is only delivered.

        "forgotten": the user had things forgotten meanwhile; the answer may be delivered, but
        neither turn nor record is kept. A turn without a question or an answer is not kept.
        `is_gap` says that the documents hold nothing good for the question.
        """
        is_whole = turn is not None and turn.text.strip() and turn.answer.strip()
        reply = await self._store.run(
            "answered",
            taken.conversation.tag,
            *_fence(taken),
            run_json,
            turn_to_json(turn) if turn is not None and is_whole else "",
            elapsed_ms,
            self._history_ttl_s,
            self._ttls[1],
            MAX_TURNS,
            int(time.time()) - self._history_ttl_s,
            int(is_gap),
            *_aliases(taken.conversation, aliases),
        )
        if reply == b"lost":
            raise LeaseLost
        return cast("SaveOutcome", reply.decode())

    async def delivered(self, taken: Taken, aliases: Sequence[str] = ()) -> Taken | None:
        """The conversation's next message, which this worker now holds, or None when it is done."""
        head = await self._store.run(
            "delivered",
            taken.conversation.tag,
            *self._end_args(taken),
            self._history_ttl_s,
            *_aliases(taken.conversation, aliases),
        )
        return _next(head)

    async def fail(self, taken: Taken, reason: str, retry_in_s: float) -> Taken | None:
        """Gives the message back for a retry in `retry_in_s`, or at the last try buries it.

        Tell the user before the last one (`taken.is_last_try`). Then the next message is returned
        as by `delivered`; after a retry None. `reason` must hold no words of the user.
        """
        head = await self._store.run(
            "fail",
            taken.conversation.tag,
            *self._end_args(taken),
            taken.attempts,
            MAX_TRIES,
            reason,
            int(retry_in_s * 1000),
            self._ready.claim_ms,
        )
        if head[0] == b"later":
            conversation = taken.conversation
            self._ready.expect(retry_in_s, (conversation.tag, taken.entry, conversation.key))
        return _next(head)

    async def leave(self) -> None:
        """At the end of the process: hands over all that it still has and signs off."""
        await self._ready.leave()

    def _end_args(self, taken: Taken) -> tuple[Arg, ...]:
        conversation, lease, message_id = _fence(taken)
        return conversation, taken.entry, lease, message_id, new_run_id(), *self._ttls


def _fence(taken: Taken) -> tuple[str, str, str]:
    return taken.conversation.key, taken.lease, taken.message.id


def _beat_args(taken: Taken) -> tuple[str, str, str, str]:
    return taken.entry, *_fence(taken)


def _aliases(conversation: Conversation, ids: Sequence[str]) -> list[str]:
    return [replace(conversation, thread=name).key for name in ids if name != conversation.thread]


def _next(head: Sequence[Any]) -> Taken | None:
    if head[0] == b"lost":
        raise LeaseLost
    return taken_from_reply(head)
