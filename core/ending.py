"""How tasks are ended for certain. It must not know what they do."""

import asyncio
import logging
from typing import Any

log = logging.getLogger(__name__)

AGAIN_S = 5.0
"""Longer than what a task may still have to say once it is cancelled."""


async def end(*tasks: asyncio.Task[Any], again_s: float = AGAIN_S) -> None:
    """Cancels those of `tasks` that go on, and returns when they have ended; failures are logged.

    One cancellation is not enough: before Python 3.12 `asyncio.wait_for`, through which redis-py
    sends, loses one that comes just as it is done, and a task that goes on for ever would be
    waited for as long. Source: https://github.com/python/cpython/issues/86296
    """
    left = {task for task in tasks if not task.done()}
    while left:
        for task in left:
            task.cancel()
        done, left = await asyncio.wait(left, timeout=again_s)
        for task in done:
            if not task.cancelled() and (err := task.exception()) is not None:
                log.error("a task ended badly", exc_info=err)
