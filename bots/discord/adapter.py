"""Discord as core sees it: opens replies, completes messages.

It must not take events; the client does.
"""

from collections.abc import Sequence

import discord

from bots.discord.context import enrich
from bots.discord.places import PLATFORM
from bots.discord.private import PrivateReply
from bots.discord.reply import ChannelReply, Desk
from core.protocols import Ref, Reply
from core.types import Message


class DiscordAdapter:
    """See `core.protocols.Adapter`. The workspace is the application, servers and DMs alike."""

    def __init__(self, client: discord.Client, lease_s: float) -> None:
        self._client = client
        # A lease is renewed before a fifth of it has passed, and taken over after seven tenths.
        self.desk = Desk(client, stale_s=0.45 * lease_s)

    @property
    def platform(self) -> str:
        """The platform's name in keys."""
        return PLATFORM

    @property
    def workspaces(self) -> Sequence[str]:
        """The application's id; known once the client has logged in."""
        return [str(self._client.application_id)] if self._client.application_id else []

    async def enrich(self, message: Message) -> Message:
        """`message` with files, embeds, forwards and quoted posts as context."""
        user = self._client.user
        return await enrich(self._client, message, user.id if user else 0)

    async def open_reply(self, message: Message, ref: Ref | None) -> Reply:
        """A reply in the channel, or a private one to a command."""
        if message.extra["kind"] == "private":
            return PrivateReply(self._client, message, ref, self.desk.stale_s)
        return ChannelReply(self.desk, message, ref)
