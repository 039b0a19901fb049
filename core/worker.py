"""Workers: which messages a process takes, how it keeps their leases, how it ends.

It must not know how a message is answered (core/answering.py) nor any platform.
"""

import asyncio
import logging
import random
import time
from collections.abc import Mapping, Sequence

from core.answering import Answering
from core.ending import end
from core.errors import StoreError
from core.inbox import Inbox, Workplace
from core.lease import Held
from core.protocols import Adapter
from core.types import Conversation
from core.work import Taken

log = logging.getLogger(__name__)

PAUSE_MIN_S, PAUSE_MAX_S = 0.2, 5.0


class Worker:
    """One per process: up to `concurrent_runs` conversations side by side."""

    def __init__(
        self,
        inbox: Inbox,
        answering: Answering,
        *,
        concurrent_runs: int = 64,
        grace_s: float = 20.0,
    ) -> None:
        self._inbox = inbox
        self._answering = answering
        self._concurrent_runs = concurrent_runs
        self._grace_s = grace_s
        self._held: dict[Conversation, Held] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._adapters: Mapping[str, Adapter] = {}

    def cancel(self, conversation: Conversation) -> None:
        """Stops the conversation's run at once, if it is this process that runs it."""
        if held := self._held.get(conversation):
            held.clock.cancel()

    async def serve(self, adapters: Sequence[Adapter], stop: asyncio.Event) -> None:
        """Answers messages until `stop`, then drains.

        Runs under way get `grace_s` to finish; what is left is handed over with its checkpoint.
        """
        self._adapters = {adapter.platform: adapter for adapter in adapters}
        workplaces = [
            (adapter.platform, workspace)
            for adapter in adapters
            for workspace in adapter.workspaces
        ]
        taking = asyncio.create_task(self._take_until(stop, workplaces))
        beating = asyncio.create_task(self._beat_forever())
        stopping = asyncio.create_task(stop.wait())
        try:
            await asyncio.wait({taking, beating, stopping}, return_when=asyncio.FIRST_COMPLETED)
            for task in (taking, beating):
                if task.done():
                    task.result()
        finally:
            await end(taking, stopping)
            await self._drain()
            await end(beating)

    async def _take_until(self, stop: asyncio.Event, workplaces: Sequence[Workplace]) -> None:
        pause_s = PAUSE_MIN_S
        while not stop.is_set():
            free = self._concurrent_runs - len(self._tasks)
            if free <= 0:
                await asyncio.wait(self._tasks, return_when=asyncio.FIRST_COMPLETED)
                continue
            try:
                held = [each.taken for each in self._held.values()]
                for taken in await self._inbox.take(workplaces, free, held=held):
                    self._begin(taken)
                pause_s = PAUSE_MIN_S
            except StoreError as err:
                log.warning("no work can be taken, trying again: %s", err)
                await asyncio.sleep(pause_s * random.uniform(0.5, 1.5))
                pause_s = min(pause_s * 2, PAUSE_MAX_S)

    def _begin(self, taken: Taken) -> None:
        # Known as held at once, as work is taken again before the task has begun.
        task = asyncio.create_task(self._converse(self._hold(taken)))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def _hold(self, taken: Taken) -> Held:
        held = self._held[taken.conversation] = Held(taken, self._inbox.hold_s)
        return held

    async def _converse(self, held: Held) -> None:
        """Answers a conversation's messages, first in, first out, until none is left."""
        conversation = held.taken.conversation
        while True:
            try:
                adapter = self._adapters[conversation.platform]
                upcoming = await self._answering.answer(held, adapter)
            except StoreError as err:
                log.warning("run %s is left to another worker: %s", held.taken.run_id, err)
                return
            finally:
                if self._held.get(conversation) is held:
                    del self._held[conversation]
            if upcoming is None:
                return
            held = self._hold(upcoming)

    async def _beat_forever(self) -> None:
        while True:
            await asyncio.sleep(self._inbox.beat_s)
            held = list(self._held.values())
            if not held:
                continue
            sent_at = time.monotonic()
            try:
                beat = await self._inbox.heartbeat([item.taken for item in held])
            except StoreError as err:
                log.warning("leases not renewed: %s", err)
                continue
            for item in held:
                if item.taken.run_id not in beat.lost:
                    item.renew(sent_at)
                if item.taken.run_id in beat.cancelled:
                    item.clock.cancel()

    async def _drain(self) -> None:
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=self._grace_s)
        left = list(self._tasks)
        await end(*left)
        if left:
            log.warning("handing over %d unfinished runs", len(left))
        try:
            await self._inbox.leave()
        except StoreError as err:
            log.warning("not handed over, the leases will run out: %s", err)
