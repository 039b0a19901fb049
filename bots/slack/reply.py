"""One answer in Slack from the first status to the trace.

It must not know who decides what is answered; how messages are cut and rotated is in posts.py.
"""

import logging
from collections.abc import Callable
from typing import Any, cast

from bots.slack.api import Identity, SlackApi, SlackFault
from bots.slack.blocks import answer_blocks, answer_text, saved_blocks
from bots.slack.lookup import is_deleted
from bots.slack.pace import Pace
from bots.slack.place import place_of
from bots.slack.posts import Posts, ThreadGone
from bots.slack.status import Status
from bots.slack.tasks import Tasks
from bots.slack.trace import post_trace
from core.protocols import Ref
from core.types import Message, Run, StopReason

log = logging.getLogger(__name__)


class SlackReply:
    """Implements core's Reply. Made by `open`."""

    def __init__(
        self,
        api: SlackApi,
        tasks: Tasks,
        pace: Pace,
        message: Message,
        is_withdrawn: Callable[[str], bool],
    ) -> None:
        self._api = api
        self._message = message
        self._place = place_of(message)
        self._posts = Posts(api, pace, self._place, message.id)
        self._status = Status(api, tasks, self._place)
        self._is_withdrawn = is_withdrawn
        self._text = ""
        self._trace: str | None = None
        self._is_recovered = False

    async def recover(self, ref: Ref | None, identity: Identity) -> None:
        """Take over what an earlier try posted, here or in another process."""
        known = cast("list[str]", (ref or {}).get("parts", []))
        self._trace = await self._posts.recover(known, identity)
        self._is_recovered = True
        self._status.take_over()

    @property
    def ref(self) -> Ref | None:
        """The timestamps of what was posted."""
        parts = [part.ts for part in self._posts.parts]
        if not parts and not self._trace:
            return None
        trace = [self._trace] if self._trace else []
        ref: dict[str, Any] = {"parts": parts, "aliases": [*parts, *trace]}
        return ref

    async def status(self, text: str) -> None:
        """Show what is going on; what was written meanwhile is shown with it."""
        await self._stream()
        await self._status.show(text)

    async def append(self, delta: str) -> None:
        """Add to the answer; Slack is called about once a second."""
        self._text += delta
        await self._stream()

    async def reset(self, text: str) -> None:
        """Replace the answer so far; where people saw more already, it is mended at the close."""
        self._text = text
        await self._stream()

    async def close(self, run: Run) -> None:
        """Answer, footer, private facts, trace: nothing is posted twice, no status stays behind."""
        is_session_ended = False
        try:
            if await self._is_unwanted(run):
                await self._posts.remove()
                return
            is_session_ended = await self._finish(run)
            await self._tell_owner(run)
            if run.trace and not self._trace:
                self._trace = await post_trace(self._api, self._place, self._message.id, run)
                self._posted(is_new=self._trace is not None)
        except ThreadGone:
            log.info("message %s: its thread was deleted, so is the answer", self._message.id)
            await self._posts.remove()
        finally:
            await self._status.end(is_session_ended=is_session_ended)

    async def _is_unwanted(self, run: Run) -> bool:
        if self._is_withdrawn(self._message.id):
            return True
        # It may be another process that was told of the deletion, and cancelled the run.
        is_cancelled = run.stop_reason is StopReason.CANCELLED
        return is_cancelled and await is_deleted(self._api, self._place)

    async def _finish(self, run: Run) -> bool:
        known = {part.ts for part in self._posts.parts}
        status = self._status.session_status
        text, blocks = answer_text(run), answer_blocks(run)
        is_session_ended = await self._posts.finish(text, blocks, status)
        # Slack clears the status at a new message, not at a change of one.
        self._posted(is_new=any(part.ts not in known for part in self._posts.parts))
        return is_session_ended

    async def _stream(self) -> None:
        posted = len(self._posts.parts)
        await self._posts.stream(self._text)
        self._posted(is_new=len(self._posts.parts) > posted)

    def _posted(self, *, is_new: bool) -> None:
        if is_new:
            self._status.posted()

    async def _tell_owner(self, run: Run) -> None:
        """Values of saved facts, to their owner alone; once, as far as can be known."""
        if not run.facts_saved or (self._is_recovered and self._trace):
            return
        try:
            await self._api.call(
                "chat.postEphemeral",
                channel=self._place.channel,
                thread_ts=self._place.thread,
                user=self._place.user,
                text="I will remember something about you.",
                blocks=saved_blocks(run.id, run.facts_saved),
            )
        except SlackFault as fault:
            log.warning("a saved fact could not be shown to its owner: %s", fault)
