"""Answers to commands and clicks that only one person sees: acknowledged first, told later.

It must not know what was asked for.
"""

import logging
from collections.abc import Sequence
from typing import Any

import discord

from bots.discord.posts import NO_MENTIONS

log = logging.getLogger(__name__)

LATE, ALREADY = 10062, 40060
EXPIRED = (10015, 10062, 50027)
TOO_LATE = "Discord reached me too late for that; nothing was done. Please try again."
STORE_FAILED = "I could not reach my memory; nothing was changed. Please try again in a minute."

Interaction = discord.Interaction[discord.Client]
Response = discord.InteractionCallbackResponse[discord.Client]


async def acknowledge(interaction: Interaction, *, is_update: bool = False) -> Response | None:
    """Tells Discord within 3 s that an answer comes; Discord's word on it when it is ours to give.

    With `is_update` the message with the button stays and will be edited. None when another
    process was first, or when it is too late; then nothing may be done.
    """
    try:
        if is_update:
            return await interaction.response.defer()
        return await interaction.response.defer(ephemeral=True, thinking=True)
    except discord.InteractionResponded:
        return None
    except discord.HTTPException as err:
        if err.code == LATE:
            log.warning("an interaction came too late to be acknowledged")
            await _say(interaction, TOO_LATE)
        elif err.code != ALREADY:
            log.warning("an interaction could not be acknowledged: code %s", err.code)
        return None


async def tell(
    interaction: Interaction,
    text: str,
    *,
    view: discord.ui.View | None = None,
    files: Sequence[discord.File] = (),
    fallback: str = "A private answer here took too long to be shown. Please ask again.",
) -> None:
    """Shows the answer privately; `fallback`, for everyone, when the token has run out."""
    more: dict[str, Any] = {"attachments": list(files)} if files else {}
    try:
        await interaction.edit_original_response(
            content=text, view=view, allowed_mentions=NO_MENTIONS, **more
        )
    except discord.HTTPException as err:
        if err.code not in EXPIRED:
            raise
        await _say(interaction, fallback)


async def tell_more(interaction: Interaction, text: str, view: discord.ui.View | None) -> None:
    """One more private message after `tell`."""
    more: dict[str, Any] = {"view": view} if view is not None else {}
    await interaction.followup.send(text, ephemeral=True, allowed_mentions=NO_MENTIONS, **more)


async def _say(interaction: Interaction, text: str) -> None:
    channel = interaction.client.get_partial_messageable(interaction.channel_id or 0)
    try:
        await channel.send(text, allowed_mentions=NO_MENTIONS)
    except discord.HTTPException as err:
        log.warning("nor could that be said in the channel: code %s", err.code)
