"""Discord's rate limits for messages: five of one kind in five seconds for each channel.

It must not know what a request does.
"""

import re
import time

from tests.support_discord_world import ApiError

WINDOW_S, PER_WINDOW = 5.0, 5


class Limits:
    """Counts requests when `is_on`; `refused` is how many got a 429."""

    def __init__(self) -> None:
        self.is_on = False
        self.refused = 0
        self._windows: dict[str, tuple[float, int]] = {}

    def count(self, method: str, path: str) -> dict[str, str]:
        """The headers for an answer. Raises ApiError with 429 beyond the limit."""
        found = re.match(r"/channels/(\d+)/messages(?:/\d+)?(/\w+)?", path)
        if not self.is_on or found is None:
            return {}
        kind = f"{method}-messages{found[2] or ''}".replace("/", "-")
        key = f"{kind} {found[1]}"
        now = time.monotonic()
        began, used = self._windows.get(key, (now, 0))
        if now - began >= WINDOW_S:
            began, used = now, 0
        wait = WINDOW_S - (now - began)
        if used >= PER_WINDOW:
            self.refused += 1
            raise ApiError(429, 0, "rate", {"Via": "1.1 local"}, {"retry_after": wait})
        self._windows[key] = (began, used + 1)
        return {
            "X-RateLimit-Limit": str(PER_WINDOW),
            "X-RateLimit-Remaining": str(PER_WINDOW - used - 1),
            "X-RateLimit-Reset": f"{time.time() + wait:.3f}",
            "X-RateLimit-Reset-After": f"{wait:.3f}",
            "X-RateLimit-Bucket": kind,
        }
