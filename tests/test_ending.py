"""Ends are certain: a cancellation that got lost on its way is not the last one."""

import asyncio
import logging
from typing import Any

import pytest

from core.ending import end
from core.worker import Worker
from tests.support import wait_until


class Deaf:
    """Loses its first cancellation, as `asyncio.wait_for` may before Python 3.12."""

    def __init__(self) -> None:
        self.lost = 0

    async def forever(self) -> None:
        while True:
            await self.once()

    async def once(self) -> None:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            if self.lost:
                raise
            self.lost += 1


async def test_task_that_lost_its_cancellation_is_cancelled_again() -> None:
    deaf = Deaf()
    task = asyncio.create_task(deaf.forever())
    await asyncio.sleep(0)
    await end(task, again_s=0.01)
    assert task.cancelled()
    assert deaf.lost == 1


async def test_failure_while_ending_is_logged_and_an_old_one_is_not(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def fail() -> None:
        raise ValueError("before")

    async def fail_late() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            raise ValueError("while ending")

    over, late = asyncio.create_task(fail()), asyncio.create_task(fail_late())
    await asyncio.wait([over])
    with caplog.at_level(logging.ERROR):
        await end(over, late)
    assert [str(record.exc_info[1]) for record in caplog.records if record.exc_info] == [
        "while ending"
    ]
    assert isinstance(over.exception(), ValueError)


class DeafInbox:
    """An inbox without work, whose take loses the first cancellation."""

    beat_s = 0.01

    def __init__(self) -> None:
        self.deaf = Deaf()
        self.takes = 0
        self.has_left = False

    async def take(self, *_: Any, **__: Any) -> list[Any]:
        self.takes += 1
        await self.deaf.once()
        return []

    async def leave(self) -> None:
        self.has_left = True


async def test_worker_that_is_told_to_stop_takes_nothing_more() -> None:
    inbox, stop = DeafInbox(), asyncio.Event()
    worker = Worker(inbox, None, grace_s=0)  # type: ignore[arg-type]
    serving = asyncio.create_task(worker.serve([], stop))
    await wait_until(lambda: inbox.takes == 1)
    stop.set()
    async with asyncio.timeout(5):
        await serving
    assert (inbox.deaf.lost, inbox.takes, inbox.has_left) == (1, 1, True)
