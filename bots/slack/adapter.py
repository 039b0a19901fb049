"""Slack as core sees it: opens replies, completes messages. No business rule lives here."""

import time
from collections.abc import Sequence

from bots.slack.api import Identity, SlackApi
from bots.slack.context import Context
from bots.slack.events import PLATFORM
from bots.slack.ingress import Ingress, Recent
from bots.slack.pace import Pace
from bots.slack.reply import SlackReply
from bots.slack.tasks import Tasks
from core.protocols import Ref, Reply
from core.types import Message


class SlackAdapter:
    """Implements core's Adapter for one workspace."""

    def __init__(
        self, api: SlackApi, identity: Identity, tasks: Tasks, ingress: Ingress, lease_s: float
    ) -> None:
        self._api = api
        self._identity = identity
        self._tasks = tasks
        self._ingress = ingress
        self._context = Context(api, identity)
        self._pace = Pace()
        self._opened = Recent()
        # Another process can have begun with a message only when its lease has run out since.
        self._fresh_s = lease_s / 2

    @property
    def platform(self) -> str:
        """The platform's name in keys."""
        return PLATFORM

    @property
    def workspaces(self) -> Sequence[str]:
        """The one workspace that the token is for."""
        return (self._identity.team,)

    async def enrich(self, message: Message) -> Message:
        """`message` with its thread, attachments and the author's name."""
        return await self._context.enrich(message)

    async def open_reply(self, message: Message, ref: Ref | None) -> Reply:
        """A reply; one that may have been begun before first looks for what was posted."""
        reply = SlackReply(
            self._api,
            self._tasks,
            self._pace,
            message,
            lambda item: item in self._ingress.withdrawn,
        )
        is_first = self._opened.add(message.id)
        if ref or not is_first or time.time() - message.sent_at > self._fresh_s:
            await reply.recover(ref, self._identity)
        return reply
