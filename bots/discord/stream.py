"""A text that grows in the background: flushed now and then, never after its feeder fell silent.

It must not know where the text goes.
"""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress

import discord

log = logging.getLogger(__name__)

FIRST_S = 0.4
"""How long the first words wait for more, so that a quick answer is one post and no edit."""
END_TIMEOUT_S = 30.0


class Stream:
    """Calls `flush` at most every `gap_s` while there is news, younger than `stale_s`.

    Core feeds only while it holds the message: what is older, as after the process was stopped for
    a while, may already be another process's. `is_calling` tells whether a request is on its way,
    which must not be cut off.
    """

    def __init__(
        self,
        flush: Callable[[], Awaitable[None]],
        is_calling: Callable[[], bool],
        *,
        gap_s: float,
        stale_s: float,
    ) -> None:
        self._flush = flush
        self._is_calling = is_calling
        self._gap_s = gap_s
        self._stale_s = stale_s
        self._fed_at = time.monotonic()
        self._is_dirty = False
        self._task: asyncio.Task[None] | None = None
        self._closing = asyncio.Event()

    @property
    def silent_s(self) -> float:
        """Seconds since the last news."""
        return time.monotonic() - self._fed_at

    @property
    def is_over(self) -> bool:
        """Whether nothing may be shown any more, or not before the next news."""
        return self._closing.is_set() or self.silent_s > self._stale_s

    def feed(self, *, is_news: bool = True) -> None:
        """There is something to flush, or at least a sign of life."""
        self._fed_at = time.monotonic()
        self._is_dirty = self._is_dirty or is_news
        if self._is_dirty and (self._task is None or self._task.done()):
            self._task = asyncio.create_task(self._run())

    async def end(self) -> None:
        """Returns when no flush is under way or will come."""
        self._closing.set()
        if self._task is None:
            return
        if not self._is_calling():
            self._task.cancel()
        await asyncio.wait([self._task], timeout=END_TIMEOUT_S)
        self._task.cancel()

    async def settle(self, timeout_s: float) -> None:
        """Returns when all the news is flushed, or after `timeout_s`."""
        if self._task is not None and not self._task.done():
            await asyncio.wait([self._task], timeout=timeout_s)

    async def _run(self) -> None:
        await self._pause(FIRST_S)
        while self._is_dirty and not self.is_over:
            self._is_dirty = False
            try:
                await self._flush()
            except (discord.HTTPException, OSError, TimeoutError) as err:
                # The end shows all of it; until then the next text tries again.
                log.info("a text could not be shown yet: %s", type(err).__name__)
            await self._pause(self._gap_s)

    async def _pause(self, seconds: float) -> None:
        """Waits, but not once the end has come."""
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._closing.wait()
