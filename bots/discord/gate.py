"""Who may use the bot: the servers on the list, and in DMs their members.

It must not know what is asked.
"""

import logging
import time

import discord

from bots.discord.recent import Recent

log = logging.getLogger(__name__)

REMEMBER_S = 600.0
REFUSE_AGAIN_S = 600.0
REFUSAL = "I only answer in the servers I was set up for. Please ask whoever runs me."


class Gate:
    """`guild_ids` is the list; empty lets every server in."""

    def __init__(self, client: discord.Client, guild_ids: frozenset[int]) -> None:
        self._client = client
        self._guild_ids = guild_ids
        self._members = Recent[int, tuple[bool, float]](10_000)
        self._refused = Recent[int, float](1_000)

    async def admits(self, guild_id: int | None, user_id: int) -> bool:
        """Whether this user may use the bot in this server (None: in a DM)."""
        if not self._guild_ids:
            return True
        if guild_id is not None:
            return guild_id in self._guild_ids
        known = self._members.get(user_id)
        now = time.monotonic()
        if known is not None and known[1] > now:
            return known[0]
        is_member = await self._is_member(user_id)
        if is_member is not None:
            self._members.put(user_id, (is_member, now + REMEMBER_S))
        return bool(is_member)

    async def _is_member(self, user_id: int) -> bool | None:
        """None when Discord did not say."""
        is_sure = True
        for guild in self._client.guilds:
            if guild.id not in self._guild_ids:
                continue
            try:
                await guild.fetch_member(user_id)
            except discord.NotFound:
                continue
            except (discord.HTTPException, OSError) as err:
                log.warning("membership could not be checked: %s", type(err).__name__)
                is_sure = False
                continue
            return True
        return False if is_sure else None

    def may_refuse(self, channel_id: int) -> bool:
        """Whether the refusal may be said here (again): once in ten minutes."""
        now = time.monotonic()
        last = self._refused.get(channel_id)
        if last is not None and now - last < REFUSE_AGAIN_S:
            return False
        self._refused.put(channel_id, now)
        return True
