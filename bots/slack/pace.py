"""How fast the streams of one process may be written to, so that together they keep the limit.

It must not know what is written, nor call anything.
"""

import time

FLUSH_EVERY_S = 1.0
FLUSH_EVERY_PER_STREAM_S = 0.6
"""appendStream allows 100 calls a minute in all. Source: Slack's rate limit tiers, tier 4."""
MAX_STREAM_PAUSE_S = 60.0


class Pace:
    """How often streams may be appended to, by how many are under way in this process."""

    def __init__(self) -> None:
        self._seen_at: dict[str, float] = {}

    def interval_s(self, stream: str) -> float:
        """Seconds until `stream` may be appended to again."""
        now = time.monotonic()
        self._seen_at[stream] = now
        for name, seen_at in list(self._seen_at.items()):
            # A reply that another process took over never says that it ended.
            if now - seen_at > MAX_STREAM_PAUSE_S:
                del self._seen_at[name]
        return max(FLUSH_EVERY_S, FLUSH_EVERY_PER_STREAM_S * len(self._seen_at))

    def end(self, stream: str) -> None:
        """`stream` needs no more appends."""
        self._seen_at.pop(stream, None)
