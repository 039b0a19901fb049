"""The one door: adapters hand messages in here and ask for what people may ask for.

It must not know any platform, nor how an answer is made: workers (core/worker.py) do that.
"""

from collections.abc import Mapping, Sequence

from core.forget import ForgetReport, Scope, forget, preview
from core.inbox import Inbox
from core.memory import Fact, Memory
from core.record import run_from_json
from core.store import Store
from core.types import Conversation, Message, Run, Session
from core.work import Accepted
from core.worker import Worker


class Chat:
    """Everything that may be asked of Footnote, from any process."""

    def __init__(self, store: Store, inbox: Inbox, memory: Memory, worker: Worker) -> None:
        self._store = store
        self._inbox = inbox
        self._memory = memory
        self._worker = worker

    async def submit(self, message: Message) -> Accepted:
        """Accepts `message` in one Redis call; a worker answers it, in its conversation's order.

        Raises:
            StoreError: it was not accepted; the platform must deliver it again.
        """
        return await self._inbox.accept(message)

    async def cancel(self, conversation: Conversation, by: str) -> bool:
        """Stops the run under way, if user `by` asked for it; seen by its worker within 1 s."""
        outcome = await self._inbox.cancel(conversation, by)
        if outcome == "cancelled":
            self._worker.cancel(conversation)
        return outcome == "cancelled"

    async def withdraw(
        self, conversation: Conversation, message_id: str, *, is_whole_thread: bool = False
    ) -> bool:
        """The question was deleted: takes it out of the queue, or stops its run.

        With `is_whole_thread` the thread went with it, and so does all that waits or runs there.
        """
        outcome = await self._inbox.withdraw(
            conversation, message_id, is_whole_thread=is_whole_thread
        )
        if outcome == "cancelled":
            self._worker.cancel(conversation)
        return outcome != "nothing"

    async def mute(self, conversation: Conversation, is_muted: bool) -> None:
        """A muted conversation is silent until somebody mentions the bot or unmutes it."""
        await self._inbox.mute(conversation, is_muted)

    async def note(self, conversation: Conversation, label: str, text: str) -> None:
        """Keeps what another bot said as context: the 10 newest, 500 characters each."""
        await self._inbox.note_context(conversation, label, text)

    async def facts(self, session: Session) -> Mapping[str, Fact]:
        """What is remembered of a user in a channel, by key."""
        return await self._memory.facts(session)

    async def sessions(self, platform: str, workspace: str, user: str) -> Sequence[Session]:
        """Every channel of a workspace in which something of the user is kept."""
        return await self._memory.sessions(platform, workspace, user)

    async def delete_fact(self, session: Session, key: str, digest: str | None = None) -> bool:
        """Deletes one fact; with `digest` only while it still has that value."""
        return await self._memory.delete(session, key, digest)

    async def undo(self, session: Session, run_id: str, key: str) -> bool:
        """Takes back what a run saved, while the fact still has that value."""
        return await self._memory.undo(session, run_id, key)

    async def forget_preview(
        self, session: Session, scope: Scope = "channel", key: str | None = None
    ) -> ForgetReport:
        """What `forget` would delete, by kind."""
        return await preview(self._store, session, scope, key)

    async def forget(
        self, session: Session, scope: Scope = "channel", key: str | None = None
    ) -> ForgetReport:
        """Forgets, past the queue; a run under way will save nothing."""
        return await forget(self._store, session, scope, key)

    async def run_of(self, session: Session, run_id: str) -> Run | None:
        """A run with its full trace, for the session that asked; None when gone or another's."""
        record = await self._inbox.record(session, run_id)
        return run_from_json(record) if record is not None else None

    async def feedback(self, session: Session, run_id: str, is_good: bool) -> bool:
        """Stores a thumbs up or down with the run; whether the run is still kept."""
        return await self._inbox.feedback(session, run_id, is_good)
