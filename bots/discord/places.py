"""Where something was said, and whose conversation and memory that is.

It must not decide what is answered; it names, for core, what Discord's channels are.
"""

from dataclasses import dataclass
from typing import Literal

import discord

from core.types import Conversation, Session

PLATFORM = "discord"
Kind = Literal["channel", "own", "thread", "dm", "other"]
"""`channel` can carry threads, `own` is a thread that the bot opened, `thread` somebody else's
(a forum's post too), `other` is voice chat and the like."""


@dataclass(frozen=True, slots=True)
class Place:
    """A channel as the bot sees it. `parent` is the channel's own id where it has no parent."""

    kind: Kind
    channel: int
    parent: int
    guild: int | None

    def conversation(self, workspace: str, message_id: int) -> Conversation:
        """The conversation that a message here starts, or goes on with."""
        is_standing = self.kind in ("own", "thread", "dm")
        thread = self.channel if is_standing else message_id
        return Conversation(PLATFORM, workspace, str(self.parent), str(thread))

    def session(self, workspace: str, user_id: int) -> Session:
        """The memory of one user here."""
        return Session(PLATFORM, workspace, str(self.parent), str(user_id))


async def find_place(client: discord.Client, channel_id: int, guild_id: int | None) -> Place:
    """The place with this id, from the cache or else from Discord.

    Raises:
        discord.HTTPException: it is gone, or the bot may not see it.
    """
    channel = client.get_channel(channel_id)
    if channel is None and guild_id is None:
        return Place("dm", channel_id, channel_id, None)
    return place_of(channel or await client.fetch_channel(channel_id), client)


def place_of(channel: object, client: discord.Client) -> Place:
    """The place that a channel of discord.py's is."""
    me = client.user.id if client.user else 0
    match channel:
        case discord.Thread():
            kind = "own" if channel.owner_id == me else "thread"
            return Place(kind, channel.id, channel.parent_id, channel.guild.id)
        case discord.TextChannel():
            return Place("channel", channel.id, channel.id, channel.guild.id)
        case discord.DMChannel() | discord.GroupChannel():
            return Place("dm", channel.id, channel.id, None)
        case discord.abc.GuildChannel():
            return Place("other", channel.id, channel.id, channel.guild.id)
        case discord.PartialMessageable():
            kind = "dm" if channel.guild_id is None else "other"
            return Place(kind, channel.id, channel.id, channel.guild_id)
        case _:
            raise TypeError(f"not a channel: {type(channel).__name__}")


def interaction_place(interaction: discord.Interaction[discord.Client]) -> Place:
    """The place where a command or a button was used."""
    if interaction.channel is None:
        channel_id = interaction.channel_id or 0
        kind = "dm" if interaction.guild_id is None else "other"
        return Place(kind, channel_id, channel_id, interaction.guild_id)
    return place_of(interaction.channel, interaction.client)
