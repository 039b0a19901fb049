"""The durable inbox: a message is accepted once, waits in its conversation's order, is done once.

It must not know how a message is answered, nor any platform. All writes of a worker are fenced:
one whose lease was taken over gets LeaseLost and changes nothing.
"""

from collections.abc import Sequence

from core.history import Turn
from core.store import Store
from core.types import Conversation, Message, Ref, Session
from core.work import Accepted, Beat, CancelOutcome, SaveOutcome, Taken

Workplace = tuple[str, str]
"""(platform, workspace): whose messages this process can answer."""


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
        raise NotImplementedError

    beat_s: float
    """How often `heartbeat` must be called while anything is held."""

    # For whoever talks to us. Each is one round trip, and raises StoreError.

    async def accept(self, message: Message) -> Accepted:
        """What became of `message`. When it is "queued" or "duplicate", it will be answered."""
        raise NotImplementedError

    async def cancel(self, conversation: Conversation, by: str) -> CancelOutcome:
        """Asks the run under way to stop, if user `by` asked for it. Seen within `beat_s`."""
        raise NotImplementedError

    async def mute(self, conversation: Conversation, muted: bool) -> None:
        """A muted conversation takes only messages that are not `needs_engaged`."""
        raise NotImplementedError

    async def add_alias(self, conversation: Conversation, ids: Sequence[str]) -> None:
        """Messages in thread `ids` of this channel, or replies to them, belong to it."""
        raise NotImplementedError

    async def note_context(self, conversation: Conversation, label: str, text: str) -> None:
        """Keeps what another bot said: the 10 newest, 500 characters each; in `Taken.notes`."""
        raise NotImplementedError

    async def record(self, session: Session, run_id: str) -> str | None:
        """The JSON of a run that `session` asked for; None when gone or someone else's."""
        raise NotImplementedError

    # For workers. Every one after `take` raises LeaseLost, and StoreError.

    async def take(
        self, workplaces: Sequence[Workplace], count: int, block_ms: int = 4_000
    ) -> list[Taken]:
        """At most `count` messages to answer, one a conversation; empty after `block_ms`.

        Takes over from dead workers and brings back due retries too. Raises StoreError; call again
        after a pause.
        """
        raise NotImplementedError

    async def heartbeat(self, held: Sequence[Taken]) -> Beat:
        """Keeps the leases. Call every `beat_s` with all that this process holds. StoreError."""
        raise NotImplementedError

    async def owns(self, taken: Taken) -> bool:
        """Whether the lease is still ours: ask at the first post and at the close. StoreError."""
        raise NotImplementedError

    async def checkpoint(self, taken: Taken, data: str, elapsed_ms: int) -> None:
        """Saves the run so far; `elapsed_ms` in total, earlier workers' time included."""
        raise NotImplementedError

    async def save_ref(self, taken: Taken, ref: Ref, aliases: Sequence[str] = ()) -> None:
        """Saves what was posted, and the posts' ids as aliases of the conversation."""
        raise NotImplementedError

    async def answered(
        self,
        taken: Taken,
        run_json: str,
        turn: Turn | None,
        elapsed_ms: int,
        aliases: Sequence[str] = (),
    ) -> SaveOutcome:
        """Saves the final run, its record and its turn, in one call; then it is only delivered.

        "forgotten": the user had things forgotten meanwhile; the answer may be delivered, but
        neither turn nor record is kept. A blank turn is not kept.
        """
        raise NotImplementedError

    async def delivered(self, taken: Taken, aliases: Sequence[str] = ()) -> Taken | None:
        """The conversation's next message, which this worker now holds, or None when it is done."""
        raise NotImplementedError

    async def fail(self, taken: Taken, reason: str, retry_in_s: float) -> Taken | None:
        """Gives the message back for a retry in `retry_in_s`, or at the last try buries it.

        Tell the user before the last one (`taken.is_last_try`). Then the next message is returned
        as by `delivered`; after a retry None. `reason` must hold no words of the user.
        """
        raise NotImplementedError

    async def release(self, taken: Taken) -> None:
        """Hands the message over to any worker at once; its run goes on from the checkpoint."""
        raise NotImplementedError

    async def leave(self) -> None:
        """At the end of the process: hands over all that it still has and signs off."""
        raise NotImplementedError
