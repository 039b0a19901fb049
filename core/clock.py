"""The one limit on time of a run, which a cancellation uses too.

It must not know what it bounds.
"""

import asyncio
import inspect
from collections.abc import Awaitable
from typing import TypeVar

from core.types import StopReason

T = TypeVar("T")


class Stopped(Exception):
    """The run must end now, for this reason."""

    def __init__(self, reason: StopReason) -> None:
        super().__init__(reason.value)
        self.reason = reason


class RunClock:
    """A deadline for every await of a run; `cancel` moves it to now.

    Each await has a scope of its own, so that a generator never yields inside one: a timeout
    that fired there would cancel whoever consumes the events.
    """

    def __init__(self) -> None:
        self._deadline = 0.0
        self._started = 0.0
        self._scope: asyncio.Timeout | None = None
        self._is_cancelled = False

    def start(self, timeout_s: float) -> None:
        """Begins to count."""
        self._started = asyncio.get_running_loop().time()
        self._deadline = self._started + timeout_s

    @property
    def elapsed_ms(self) -> int:
        """Milliseconds since `start`."""
        return round((asyncio.get_running_loop().time() - self._started) * 1000)

    def cancel(self) -> None:
        """Ends the await under way, and with it the run, as cancelled. Same event loop only."""
        self._is_cancelled = True
        if self._scope is not None and not self._scope.expired():
            self._scope.reschedule(asyncio.get_running_loop().time())

    async def bound(self, awaitable: Awaitable[T]) -> T:
        """The result of `awaitable`, within the deadline.

        Raises:
            Stopped: the deadline passed (`timeout`) or the run was cancelled (`cancelled`).
        """
        if self._is_cancelled:  # a scope alone would let through what never waits
            if inspect.iscoroutine(awaitable):
                awaitable.close()
            raise Stopped(StopReason.CANCELLED)
        scope = asyncio.timeout_at(self._deadline)
        try:
            async with scope:
                self._scope = scope
                return await awaitable
        except TimeoutError:
            if not scope.expired():
                raise
            reason = StopReason.CANCELLED if self._is_cancelled else StopReason.TIMEOUT
            raise Stopped(reason) from None
        finally:
            self._scope = None
