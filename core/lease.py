"""A message that this process holds, and for how long nobody else can have taken it.

It must not know what is done with the message.
"""

import time

from core.clock import RunClock
from core.work import Taken


class Held:
    """A message that this process holds: its lease as last seen, and the clock of its run."""

    def __init__(self, taken: Taken, hold_s: float) -> None:
        self.taken = taken
        self.clock = RunClock()
        self._hold_s = hold_s
        self._renewed_at = time.monotonic()
        if taken.is_cancelled:
            self.clock.cancel()

    def renew(self, sent_at: float) -> None:
        """The lease was renewed by a request sent at `sent_at` (monotonic seconds)."""
        self._renewed_at = sent_at

    @property
    def is_fresh(self) -> bool:
        """Whether the lease cannot have run out: monotonic time goes on while we are stopped."""
        return time.monotonic() - self._renewed_at < self._hold_s
