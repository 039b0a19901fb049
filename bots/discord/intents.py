"""What the gateway is asked to send. It must not know what is made of it."""

import discord


def make_intents(*, has_content: bool) -> discord.Intents:
    """What the gateway sends: servers, messages, reactions; text of others where allowed."""
    intents = discord.Intents(
        guilds=True,
        guild_messages=True,
        dm_messages=True,
        guild_reactions=True,
        dm_reactions=True,
    )
    intents.message_content = has_content
    return intents
