"""When the next edit in a channel may go out, within Discord's five in five seconds.

It must not know what is edited.
"""

import asyncio
import heapq
import itertools
from collections import deque

WINDOW_S = 5.0
PER_WINDOW = 5
STREAMED_PER_WINDOW = 3
"""Edits while a text still grows; what is left of the window is for edits that finish one."""


class _Lane:
    """The edits of one channel: those that went out lately, and those that wait."""

    def __init__(self) -> None:
        self.sent: deque[float] = deque(maxlen=PER_WINDOW)
        self.waiting: list[tuple[int, int, asyncio.Future[None]]] = []
        self.task: asyncio.Task[None] | None = None

    def delay_s(self, now: float, allowed: int) -> float:
        """How long until fewer than `allowed` went out in the last window."""
        if len(self.sent) < allowed:
            return 0.0
        return max(0.0, self.sent[-allowed] + WINDOW_S - now)


class Pace:
    """Turns for edits, channel by channel; a final edit goes before those of growing texts."""

    def __init__(self) -> None:
        self._lanes: dict[int, _Lane] = {}
        self._order = itertools.count()

    async def turn(self, channel: int, *, is_final: bool) -> None:
        """Returns when an edit in `channel` may be sent; the turn counts as used."""
        self._drop_idle()
        lane = self._lanes.setdefault(channel, _Lane())
        future = asyncio.get_running_loop().create_future()
        heapq.heappush(lane.waiting, (0 if is_final else 1, next(self._order), future))
        if lane.task is None or lane.task.done():
            lane.task = asyncio.create_task(self._serve(lane))
        await future

    async def _serve(self, lane: _Lane) -> None:
        loop = asyncio.get_running_loop()
        while lane.waiting:
            rank, _, future = lane.waiting[0]
            if future.done():
                heapq.heappop(lane.waiting)
                continue
            allowed = PER_WINDOW if rank == 0 else STREAMED_PER_WINDOW
            delay = lane.delay_s(loop.time(), allowed)
            if delay > 0:
                # in short sleeps: a final edit that arrives meanwhile goes first
                await asyncio.sleep(min(delay, 0.1))
                continue
            heapq.heappop(lane.waiting)
            lane.sent.append(loop.time())
            future.set_result(None)

    def _drop_idle(self) -> None:
        if len(self._lanes) < 1_000:
            return
        now = asyncio.get_running_loop().time()
        self._lanes = {
            channel: lane
            for channel, lane in self._lanes.items()
            if lane.waiting or (lane.sent and now - lane.sent[-1] < WINDOW_S)
        }
