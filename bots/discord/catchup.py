"""What was said while the bot was away: the last hour's messages, through the same door.

It must not decide what is for the bot: the client's `take` does, and core's claim makes sure that
nothing is answered twice.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterator
from datetime import timedelta

import discord

from bots.discord.settings import DiscordSettings

log = logging.getLogger(__name__)

CHANNEL_TIMEOUT_S = 30.0
Readable = discord.TextChannel | discord.VoiceChannel | discord.Thread


class CatchUp:
    """One look back at a time."""

    def __init__(
        self,
        client: discord.Client,
        settings: DiscordSettings,
        take: Callable[[discord.Message], Awaitable[None]],
    ) -> None:
        self._client = client
        self._minutes = settings.discord_catch_up_minutes
        self._per_channel = settings.discord_catch_up_messages
        self._guild_ids = settings.guild_ids
        self._take = take
        self._lock = asyncio.Lock()

    async def run(self) -> None:
        """Takes the messages of the last minutes, oldest first in each channel."""
        if not self._minutes or self._lock.locked():
            return
        async with self._lock:
            start = discord.utils.utcnow() - timedelta(minutes=self._minutes)
            after = discord.Object(discord.utils.time_snowflake(start))
            for channel in self._channels(after.id):
                await self._read(channel, after)

    def _channels(self, after: int) -> Iterator[Readable]:
        """Where something new is, by the id of its last message, and we may read it."""
        for guild in self._client.guilds:
            if self._guild_ids and guild.id not in self._guild_ids:
                continue
            for channel in [*guild.text_channels, *guild.voice_channels, *guild.threads]:
                if (channel.last_message_id or 0) <= after:
                    continue
                try:
                    allowed = channel.permissions_for(guild.me)
                except discord.ClientException:
                    continue
                if allowed.view_channel and allowed.read_message_history:
                    yield channel

    async def _read(self, channel: Readable, after: discord.Object) -> None:
        # The newest ones: an unread flood must not hide what was asked last.
        newest = channel.history(limit=self._per_channel, after=after, oldest_first=False)
        try:
            async with asyncio.timeout(CHANNEL_TIMEOUT_S):
                found = [raw async for raw in newest]
        except (discord.HTTPException, OSError, TimeoutError) as err:
            log.warning("no catch-up in channel %s: %s", channel.id, type(err).__name__)
            return
        for raw in reversed(found):
            await self._take(raw)
