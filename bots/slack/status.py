"""The line under a thread that says what is going on, and the session with its Stop button.

It must not know a run: it is given words and told when something was posted.
"""

import asyncio
import time
from collections.abc import Coroutine
from typing import Any

from bots.slack.api import SlackApi, SlackFault
from bots.slack.place import Place
from bots.slack.tasks import Tasks
from bots.text import defuse_slack

SHOW_EVERY_S = 1.5
REFRESH_AFTER_S = 90.0
"""A status clears itself after two minutes. Source: assistant.threads.setStatus."""
MAX_REFRESHES = 3
MAX_CHARS = 100

_STATUS = "assistant.threads.setStatus"
_SESSION = "agents.sessions.setStatus"


class Status:
    """Of one reply. Never raises: an answer must not fail for its status line."""

    def __init__(self, api: SlackApi, tasks: Tasks, place: Place) -> None:
        self._api = api
        self._tasks = tasks
        self._place = place
        self._wanted = ""
        self._shown = ""
        self._shown_at = float("-inf")
        # A session that a dead process left has to be ended, though it may not show a Stop button.
        self._has_session = False
        self._is_processing = False
        self._refreshes = 0
        self._timer: asyncio.TimerHandle | None = None
        self._is_ended = False
        self._sending = asyncio.Lock()

    @property
    def session_status(self) -> str | None:
        """What the session is to be when the answer stands; None where there is no session."""
        return "active" if self._has_session else None

    async def show(self, text: str) -> None:
        """Show `text` now, or soon where another one was shown just before."""
        text = defuse_slack(_predicate(text))
        self._wanted = text if len(text) <= MAX_CHARS else text[: MAX_CHARS - 1] + "…"
        wait_s = self._shown_at + SHOW_EVERY_S - time.monotonic()
        if wait_s > 0:
            self._later(wait_s)
        elif self._is_processing or not self._api.has(_SESSION):
            await self._send()
        else:
            self._has_session = self._is_processing = True
            await asyncio.gather(self._send(), self._set_session("processing"))

    def take_over(self) -> None:
        """Another process may have left a status and a session behind: `end` clears them."""
        self._shown = "…"
        self._has_session = self._api.has(_SESSION)

    def posted(self) -> None:
        """Slack has cleared the status, as it does at any message."""
        self._shown = ""

    async def end(self, *, is_session_ended: bool) -> None:
        """Leave nothing behind."""
        self._is_ended = True
        if self._timer:
            self._timer.cancel()
        last: list[Coroutine[Any, Any, None]] = []
        if self._shown or self._sending.locked():
            last.append(self._send())
        if self._has_session and not is_session_ended:
            last.append(self._set_session("active"))
        await asyncio.gather(*last)

    async def _send(self) -> None:
        # One at a time: a status that overtook its clearing would stay behind.
        async with self._sending:
            text = "" if self._is_ended else self._wanted
            if not self._api.has(_STATUS) or (not text and not self._shown):
                return
            self._shown, self._shown_at = text, time.monotonic()
            await self._attempt(_STATUS, status=text)
            if text and self._refreshes < MAX_REFRESHES:
                self._refreshes += 1
                self._later(REFRESH_AFTER_S)

    async def _set_session(self, status: str) -> None:
        await self._attempt(_SESSION, status=status)

    async def _attempt(self, method: str, **args: Any) -> None:
        place = self._place
        try:
            await self._api.call(
                method, is_patient=False, channel_id=place.channel, thread_ts=place.thread, **args
            )
        except SlackFault:
            # `api` has noted it where the workspace lacks the method; else the next one will do.
            self._has_session = self._has_session and method != _SESSION

    def _later(self, delay_s: float) -> None:
        if self._timer:
            self._timer.cancel()
        if self._is_ended:
            return
        loop = asyncio.get_running_loop()
        self._timer = loop.call_later(
            delay_s, lambda: self._tasks.start(self._send(), "the status line")
        )


def _predicate(text: str) -> str:
    """`text` as the end of a sentence: Slack puts the bot's name in front. `is thinking…`

    Source: assistant.threads.setStatus ("is thinking..."); getsentry/sentry#115280 shows it.
    """
    said = text.removeprefix("I am ")
    return f"is {said[:1].lower()}{said[1:]}"
