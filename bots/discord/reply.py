"""One answer in a channel, thread or DM: typing, a text that grows by edits, and its end.

It must not decide anything about the answer; core feeds it and closes it exactly once.
"""

import asyncio
import logging
from dataclasses import dataclass, field
from weakref import WeakSet

import discord

from bots.discord.pace import Pace
from bots.discord.posts import CALL_TIMEOUT_S, Posts, Undeliverable, Wanted
from bots.discord.recent import Recent
from bots.discord.render import facts_button, finished, streamed, trace_button
from bots.discord.stream import Stream
from bots.discord.threads import ThreadError, Threads
from core.protocols import Ref
from core.types import Conversation, Message, Run

log = logging.getLogger(__name__)

TYPING_EVERY_S = 8.0
TYPING_SILENT_S = 180.0
EDIT_GAP_S = 1.2


@dataclass(slots=True)
class Desk:
    """What all replies of a process share.

    `posted` names the conversation of each of our posts, and of the thread off it, before core
    has saved that: people may be quicker. After `stale_s` without news from core a reply may be
    another process's.
    """

    client: discord.Client
    stale_s: float
    pace: Pace = field(default_factory=Pace)
    hinted: Recent[int, bool] = field(default_factory=lambda: Recent[int, bool](1_000))
    posted: Recent[int, Conversation] = field(
        default_factory=lambda: Recent[int, Conversation](5_000)
    )
    withdrawn: Recent[str, bool] = field(default_factory=lambda: Recent[str, bool](1_000))
    streams: WeakSet[Stream] = field(default_factory=WeakSet[Stream])

    async def settle(self, timeout_s: float) -> None:
        """At the end of the process: what unfinished answers have to say is shown."""
        async with asyncio.TaskGroup() as group:
            for stream in list(self.streams):
                group.create_task(stream.settle(timeout_s))


class ChannelReply:
    """See `core.protocols.Reply`."""

    def __init__(self, desk: Desk, message: Message, ref: Ref | None) -> None:
        self._desk = desk
        self._message = message
        self._posts = Posts(desk.client, desk.pace, message, ref, self._note)
        self._threads = Threads(desk.client, message, ref)
        self._text = ""
        self._status = ""
        self._stream = Stream(
            self._flush, lambda: self._posts.is_calling, gap_s=EDIT_GAP_S, stale_s=desk.stale_s
        )
        desk.streams.add(self._stream)
        self._has_hint = False
        self._typing = asyncio.create_task(self._type())

    @property
    def ref(self) -> Ref | None:
        """The posts by id, the thread and whether the trace is in it; None before the first."""
        ids = [str(post) for post in self._posts.ids]
        if not ids:
            return None
        noted = self._threads.noted
        return {"channel": str(self._posts.channel), "posts": ids, "aliases": ids, **noted}

    async def status(self, text: str) -> None:
        """Below the text when there is some; before that, typing says enough."""
        self._status = text
        self._stream.feed(is_news=bool(self._posts.ids))

    async def append(self, delta: str) -> None:
        """More text; an edit follows in its own time."""
        self._text += delta
        self._stream.feed()

    async def reset(self, text: str) -> None:
        """Other text; an edit follows in its own time."""
        self._text = text
        self._stream.feed()

    async def close(self, run: Run) -> None:
        """The whole answer, then its trace.

        Raises:
            discord.HTTPException, OSError, TimeoutError: Discord failed; it may be repeated.
        """
        try:
            await self._stream.end()
            if self._desk.withdrawn.get(self._message.id) and not self._posts.ids:
                return
            await self._finish(run)
        except Undeliverable as err:
            log.warning("the answer to message %s cannot be posted: %s", self._message.id, err)
        finally:
            self._typing.cancel()

    async def _finish(self, run: Run) -> None:
        opens_thread = self._message.extra["kind"] == "channel"
        missing = self._threads.missing_permission() if opens_thread else None
        has_thread = opens_thread and missing is None
        final = self._final(run, missing=missing, has_thread=has_thread)
        await self._show(final)
        self._typing.cancel()
        try:
            if has_thread and self._posts.channel == int(self._message.extra["channel"]):
                await self._threads.post_trace(run, self._posts.ids[0])
            elif self._message.extra["kind"] == "own" and run.trace:
                await self._threads.post_trace(run, None)
        except ThreadError as err:
            await self._show(self._final(run, missing=err.missing, has_thread=False))

    async def _show(self, final: list[Wanted]) -> None:
        await self._posts.show(lambda: final, is_final=True)
        await self._posts.trim(len(final))

    def _final(self, run: Run, *, missing: str | None, has_thread: bool) -> list[Wanted]:
        buttons = facts_button(run)
        if not has_thread and self._message.extra["kind"] != "own":
            buttons = [*trace_button(run), *buttons]
        return finished(run, hint=self._hint(missing), buttons=buttons)

    def _hint(self, missing: str | None) -> str:
        """Names the missing permission, once a channel."""
        channel = int(self._message.extra["channel"])
        known = self._desk.hinted.get(channel)
        if not missing or (known and not self._has_hint):
            return ""
        self._desk.hinted.put(channel, True)
        self._has_hint = True
        return f"I can't open a thread here: I need the permission “{missing}”."

    def _note(self, post: int) -> None:
        self._desk.posted.put(post, self._message.conversation)

    async def _type(self) -> None:
        """Typing, for as long as nothing is posted."""
        channel = self._desk.client.get_partial_messageable(int(self._message.extra["channel"]))
        while not self._posts.ids and self._stream.silent_s < TYPING_SILENT_S:
            try:
                async with asyncio.timeout(CALL_TIMEOUT_S):
                    await channel.typing()
            except (discord.HTTPException, OSError, TimeoutError) as err:
                log.info("no typing in channel %s: %s", channel.id, type(err).__name__)
                return
            await asyncio.sleep(TYPING_EVERY_S)

    async def _flush(self) -> None:
        if not self._text.strip():
            return
        try:
            await self._posts.show(
                lambda: streamed(self._text, self._status),
                is_final=False,
                is_over=lambda: self._stream.is_over,
            )
        except Undeliverable as err:
            log.info("nothing can be posted here: %s", err)
