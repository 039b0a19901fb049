"""Background work of the Slack process: every task is kept, bounded, and ended at the close.

It must not know what the work is.
"""

import asyncio
import logging
from collections.abc import Coroutine
from typing import Any

from core.ending import end

log = logging.getLogger(__name__)

TASK_TIMEOUT_S = 60.0


class Tasks:
    """One per process. Bolt and the event loop keep no reference to what they start."""

    def __init__(self) -> None:
        self._running: set[asyncio.Task[None]] = set()

    def start(self, work: Coroutine[Any, Any, Any], what: str) -> None:
        """Run `work` beside everything else; a failure is logged under the name `what`."""
        task = asyncio.create_task(self._run(work, what))
        self._running.add(task)
        task.add_done_callback(self._running.discard)

    async def close(self, grace_s: float = 5.0) -> None:
        """Wait for what is under way, then cancel what is left."""
        if self._running:
            await asyncio.wait(self._running, timeout=grace_s)
        await end(*self._running)

    async def _run(self, work: Coroutine[Any, Any, Any], what: str) -> None:
        try:
            async with asyncio.timeout(TASK_TIMEOUT_S):
                await work
        except Exception:
            log.exception("%s failed", what)
