"""The messages of one answer: streamed, rotated when full or old, or written whole at the end.

It must not know what an answer says, nor how a run goes.
"""

import logging
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from bots.slack.api import Identity, SlackApi, SlackFault
from bots.slack.lookup import find_posts, metadata
from bots.slack.markup import (
    MAX_PART_BYTES,
    fallback_text,
    prepare,
    settled_length,
    slack_size,
)
from bots.slack.pace import Pace
from bots.slack.place import Place
from bots.text import close_fence, cut_part, split_markdown, take_part

log = logging.getLogger(__name__)

ROTATE_AFTER_S = 240.0
"""A stream dies after about five minutes. Source: python-slack-sdk#1859."""
MAX_PLAIN_CHARS = 3_900
_REFUSED = frozenset({"invalid_blocks", "msg_blocks_too_long", "msg_too_long", "no_text"})
_LOST = frozenset({"message_not_found", "cant_update_message", "streaming_state_conflict"})

Blocks = list[dict[str, Any]]


class ThreadGone(Exception):
    """Slack put a post at top level, because the thread was deleted."""


@dataclass(slots=True)
class Part:
    """One message posted. `is_open` is a stream that was not stopped."""

    ts: str
    is_open: bool
    opened_at: float = 0.0


class Posts:
    """The answer's messages in its thread, in order. `finish` once; `remove` instead if need be."""

    def __init__(self, api: SlackApi, pace: Pace, place: Place, message_id: str) -> None:
        self._api = api
        self._pace = pace
        self._place = place
        self._message_id = message_id
        self.parts: list[Part] = []
        self._is_streaming = True
        # What was taken of the prepared answer, where the current part begins in it, what the
        # part repeats of the one before, and how much of the part Slack has.
        self._text = ""
        self._from = 0
        self._head = ""
        self._sent = 0
        self._next_flush_at = 0.0

    async def recover(self, known: Sequence[str], identity: Identity) -> str | None:
        """Take over what was posted earlier for this question; the trace's ts where there is one.

        `known` may be short: a post whose return was lost is found in the thread.
        """
        found = await find_posts(self._api, self._place, self._message_id, identity)
        is_open = dict.fromkeys(known, True) | dict(found.answers)
        self.parts = [Part(ts, is_open[ts]) for ts in sorted(is_open, key=float)]
        # A rerun writes other words: what is there is mended at the end. Where nothing is, the
        # question had only waited.
        self._is_streaming = not self.parts
        return found.trace

    async def stream(self, markdown: str) -> None:
        """Show `markdown`, the whole answer so far, as far as it is settled and the pace allows."""
        if not self._is_streaming:
            return
        now = time.monotonic()
        if now < self._next_flush_at:
            return
        text = prepare(markdown[: settled_length(markdown)])
        if not text.startswith(self._shown):
            # What people see is no longer what the answer says: it is written anew at the end.
            self._is_streaming = False
            return
        self._text = text
        if not self._current.strip():
            return
        self._next_flush_at = now + self._pace.interval_s(self._message_id)
        try:
            await self._rotate()
            await self._send_new()
        except SlackFault as fault:
            if fault.code == "ratelimited":
                self._next_flush_at = time.monotonic() + max(fault.retry_after_s, 1.0)
                return
            log.info("streaming ended early, the rest comes at the end: %s", fault)
            self._is_streaming = False

    async def finish(self, markdown: str, blocks: Blocks, session_status: str | None) -> bool:
        """The whole answer stands in the thread, `blocks` below its last part.

        True when the session got its status on the way.

        Raises:
            SlackFault: it could not be posted.
            ThreadGone: the thread is no more.
        """
        self._pace.end(self._message_id)
        text = prepare(markdown)
        if self._is_streaming and self.parts and text.startswith(self._shown):
            self._text = text
            try:
                await self._rotate()
                tail = close_fence(self._current)[self._sent :]
                await self._stop(tail, blocks, session_status)
                return True
            except SlackFault as fault:
                log.info("the stream could not be finished, writing it anew: %s", fault)
        await self._write(split_markdown(text, MAX_PART_BYTES, slack_size), blocks)
        return False

    async def remove(self) -> None:
        """Take away everything that was posted."""
        for part in self.parts:
            await self._attempt("chat.delete", ts=part.ts)
        self.parts.clear()

    @property
    def _shown(self) -> str:
        """How much of the prepared answer people see."""
        return self._text[: self._from + max(self._sent - len(self._head), 0)]

    @property
    def _current(self) -> str:
        return self._head + self._text[self._from :]

    @property
    def _open(self) -> Part | None:
        return self.parts[-1] if self.parts and self.parts[-1].is_open else None

    async def _rotate(self) -> None:
        """Close the current part while it is over the limit, or once it is old."""
        while True:
            current = self._current
            if slack_size(current) > MAX_PART_BYTES:
                floor = max(len(self._head), self._sent)
                part = take_part(current, MAX_PART_BYTES, slack_size, floor)
            elif (
                self._open
                and self._sent < len(current)
                and time.monotonic() - self._open.opened_at > ROTATE_AFTER_S
            ):
                part = cut_part(current, self._sent)
            else:
                return
            await self._stop(part.text[self._sent :])
            self._from = len(self._text) - (len(part.rest) - part.carried)
            self._head = part.rest[: part.carried]
            self._sent = 0

    async def _send_new(self) -> None:
        current = self._current
        new = current[self._sent :]
        if not new.strip():
            return
        if part := self._open:
            await self._live("chat.appendStream", ts=part.ts, markdown_text=new)
        else:
            await self._start(new)
        self._sent = len(current)

    async def _start(self, text: str) -> None:
        place = self._place
        answer = await self._live(
            "chat.startStream",
            thread_ts=place.thread,
            markdown_text=text,
            recipient_team_id=None if place.is_dm else place.team,
            recipient_user_id=None if place.is_dm else place.user,
        )
        self.parts.append(Part(str(answer["ts"]), is_open=True, opened_at=time.monotonic()))

    async def _stop(
        self, tail: str, blocks: Blocks | None = None, session_status: str | None = None
    ) -> None:
        if not self._open:
            await self._start(tail)
            tail = ""
        part = self.parts[-1]
        answer = await self._api.call(
            "chat.stopStream",
            channel=self._place.channel,
            ts=part.ts,
            markdown_text=tail or None,
            blocks=blocks or None,
            metadata=self._metadata,
            session_status=session_status,
        )
        part.is_open = False
        self._check_thread(answer)

    async def _write(self, texts: Sequence[str], blocks: Blocks) -> None:
        """Make the parts say exactly `texts`: update what is there, add or delete the rest."""
        for part in self.parts:
            if part.is_open:
                await self._attempt("chat.stopStream", ts=part.ts, metadata=self._metadata)
                part.is_open = False
        left, self.parts = self.parts, []
        try:
            for index, text in enumerate(texts):
                below = blocks if index == len(texts) - 1 else []
                await self._put(left, [{"type": "markdown", "text": text}, *below], text)
        finally:
            self.parts += left
        for part in left:
            await self._attempt("chat.delete", ts=part.ts)
            self.parts.remove(part)

    async def _put(self, left: list[Part], blocks: Blocks, text: str) -> None:
        try:
            await self._put_one(left, blocks, fallback_text(text))
        except SlackFault as fault:
            if fault.code not in _REFUSED:
                raise
            log.warning("Slack refused the blocks, posting plain text: %s", fault)
            lines = [e["text"] for b in blocks if b["type"] == "context" for e in b["elements"]]
            for piece in split_markdown("\n".join([text, *lines]), MAX_PLAIN_CHARS):
                await self._put_one(left, [], piece)

    async def _put_one(self, left: list[Part], blocks: Blocks, text: str) -> None:
        """One message: the first of `left` made to say it, or a new one."""
        shown = {"text": text, "blocks": blocks, "metadata": self._metadata}
        while left:
            try:
                await self._patient("chat.update", ts=left[0].ts, **shown)
            except SlackFault as fault:
                if fault.code not in _LOST:
                    raise
                await self._attempt("chat.delete", ts=left[0].ts)
                del left[0]
                continue
            self.parts.append(left.pop(0))
            return
        answer = await self._patient(
            "chat.postMessage",
            thread_ts=self._place.thread,
            unfurl_links=False,
            unfurl_media=False,
            **shown,
        )
        self.parts.append(Part(str(answer["ts"]), is_open=False))
        self._check_thread(answer)

    def _check_thread(self, answer: Mapping[str, Any]) -> None:
        message: dict[str, Any] | None = answer.get("message")
        if message and message.get("thread_ts") != self._place.thread:
            raise ThreadGone

    @property
    def _metadata(self) -> dict[str, Any]:
        return metadata(self._message_id, "answer")

    async def _live(self, method: str, **args: Any) -> Mapping[str, Any]:
        if not self._api.has(method):
            raise SlackFault(method, "unknown_method")
        return await self._api.call(method, is_patient=False, channel=self._place.channel, **args)

    async def _patient(self, method: str, **args: Any) -> Mapping[str, Any]:
        return await self._api.call(method, channel=self._place.channel, **args)

    async def _attempt(self, method: str, **args: Any) -> None:
        """A call that may fail, because somebody else may have done it already."""
        try:
            await self._patient(method, **args)
        except SlackFault as fault:
            log.info("%s", fault)
