"""When the next post or edit in a channel may go out, within Discord's five in five seconds each.

It must not know what is posted.
"""

import asyncio
import heapq
import itertools
from collections import deque

WINDOW_S = 5.25
"""A little more than Discord's, since requests do not all take the same time."""
PER_WINDOW = 5
STREAMED_PER_WINDOW = 3
"""Requests while a text still grows; what is left of the window is for those that finish one."""


class _Lane:
    """One kind of request in one channel: those that went out lately, and those that wait."""

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
    """Turns, lane by lane; what finishes an answer goes before the growing texts."""

    def __init__(self) -> None:
        self._lanes: dict[str, _Lane] = {}
        self._order = itertools.count()

    async def turn(self, name: str, *, is_final: bool) -> None:
        """Returns when the next request in the lane may be sent; the turn counts as used.

        A lane is one kind of request in one channel, since Discord counts those together.
        """
        self._drop_idle()
        lane = self._lanes.setdefault(name, _Lane())
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
                # in short sleeps: what finishes an answer and arrives meanwhile goes first
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
            name: lane
            for name, lane in self._lanes.items()
            if lane.waiting or (lane.sent and now - lane.sent[-1] < WINDOW_S)
        }
