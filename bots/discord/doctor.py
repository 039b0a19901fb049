"""What is wrong with the setup in Discord, each with its remedy.

It must not connect to the gateway, nor change anything.
"""

import logging
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import discord

from bots.discord.commands import Commands, make_tree
from bots.discord.invite import PERMISSIONS, invite_url
from bots.discord.settings import DiscordSettings
from bots.discord.sync import is_synced
from bots.process import Check

log = logging.getLogger(__name__)

INTENT_REMEDY = (
    "The message-content intent is off, so only messages that mention the bot can be read.\n"
    "Open https://discord.com/developers/applications, choose the application, then Bot, and "
    "switch on “Message Content Intent”; or set DISCORD_MESSAGE_CONTENT=false to do without."
)
PUBLIC_REMEDY = (
    "Anybody can add this bot to their server. Under Bot, switch off “Public Bot”, or list your "
    "servers in DISCORD_GUILDS."
)
"""Warnings start with "warning:" and do not stop the start."""


async def doctor(settings: DiscordSettings, channel_id: int | None = None) -> list[Check]:
    """Token, intents, public or not, commands, servers, and permissions in a channel."""
    from bots.discord.link import use_api

    use_api(settings.discord_api_url)
    async with _signed_in(settings) as (client, checks):
        if client is None:
            return checks
        checks.append(_intent_check(client, settings))
        checks.append(_public_check(client, settings))
        checks.append(await _commands_check(client))
        checks += await _guild_checks(client, settings)
        if channel_id is not None:
            checks.append(await _channel_check(client, channel_id))
        url = invite_url(client.application_id or 0)
        checks.append(Check("invite", True, url))
        return checks


async def check_start(settings: DiscordSettings) -> tuple[list[Check], bool]:
    """What must be right before the bot connects, and whether it may read all messages' text."""
    async with _signed_in(settings) as (client, checks):
        if client is None:
            return checks, False
        intent = _intent_check(client, settings)
        public = _public_check(client, settings)
        for check in (intent, public):
            if check.detail.startswith("warning"):
                log.warning("%s: %s %s", check.name, check.detail, check.remedy)
        checks += await _guild_checks(client, settings)
        return checks, _has_content(client)


@asynccontextmanager
async def _signed_in(
    settings: DiscordSettings,
) -> AsyncGenerator[tuple[discord.Client | None, list[Check]]]:
    """A client without a gateway; None when the token is refused, with the check that says so."""
    client = discord.Client(intents=discord.Intents(guilds=True))
    try:
        try:
            await client.login(settings.discord_token.get_secret_value())
        except discord.LoginFailure:
            remedy = "Copy the token again from the portal, under Bot, into DISCORD_TOKEN."
            yield None, [Check("token", False, "refused by Discord", remedy)]
            return
        except (discord.HTTPException, OSError) as err:
            remedy = "Check the network, and DISCORD_API_URL if you set it."
            yield None, [Check("token", False, f"no answer: {type(err).__name__}", remedy)]
            return
        name = client.user.name if client.user else ""
        yield client, [Check("token", True, f"signed in as {name}")]
    finally:
        await client.close()


def _has_content(client: discord.Client) -> bool:
    flags = client.application_flags
    return flags.gateway_message_content or flags.gateway_message_content_limited


def _intent_check(client: discord.Client, settings: DiscordSettings) -> Check:
    if not settings.discord_message_content:
        return Check("message content", True, "not wanted; people mention the bot each time")
    if _has_content(client):
        return Check("message content", True, "on")
    return Check("message content", True, "warning: off", INTENT_REMEDY)


def _public_check(client: discord.Client, settings: DiscordSettings) -> Check:
    application = client.application
    is_public = application is not None and application.bot_public
    if is_public and not settings.guild_ids:
        return Check("who can add it", True, "warning: public", PUBLIC_REMEDY)
    return Check(
        "who can add it", True, "public, but servers are listed" if is_public else "private"
    )


async def _commands_check(client: discord.Client) -> Check:
    # Only what they look like is compared; nothing is ever called.
    tree = make_tree(client, _no_commands)
    try:
        if await is_synced(tree):
            return Check("commands", True, "as they should be")
    except discord.HTTPException as err:
        return Check("commands", False, f"cannot be read: code {err.code}")
    return Check("commands", True, "warning: not synced; the bot does that when it starts")


def _no_commands() -> Commands:
    raise RuntimeError("the doctor answers no commands")


async def _guild_checks(client: discord.Client, settings: DiscordSettings) -> list[Check]:
    """One check for each server on the list that the bot is not in."""
    if not settings.guild_ids:
        return []
    try:
        joined = {guild.id async for guild in client.fetch_guilds(limit=None)}
    except discord.HTTPException as err:
        return [Check("servers", False, f"cannot be read: code {err.code}")]
    remedy = (
        f"Add the bot with {invite_url(client.application_id or 0)}, or correct DISCORD_GUILDS."
    )
    missing = sorted(settings.guild_ids - joined)
    checks = [Check(f"server {each}", False, "the bot is not in it", remedy) for each in missing]
    return checks or [Check("servers", True, f"{len(settings.guild_ids)} listed, in all of them")]


async def _channel_check(client: discord.Client, channel_id: int) -> Check:
    name = f"channel {channel_id}"
    try:
        found = await client.fetch_channel(channel_id)
        if isinstance(found, discord.Thread | discord.abc.PrivateChannel):
            return Check(name, False, "is not a server's channel", "Give a text channel's id.")
        guild = await client.fetch_guild(found.guild.id)
        me = await guild.fetch_member(client.user.id if client.user else 0)
        channel = await guild.fetch_channel(channel_id)
    except discord.HTTPException as err:
        remedy = "Let the bot see the channel, or correct the id."
        return Check(name, False, f"cannot be read: code {err.code}", remedy)
    allowed = channel.permissions_for(me)
    wanted = discord.Permissions(PERMISSIONS)
    missing = [name for name, is_wanted in wanted if is_wanted and not getattr(allowed, name)]
    if not missing:
        return Check(name, True, "every permission is there")
    names = ", ".join(each.replace("_", " ") for each in missing)
    return Check(name, False, f"missing: {names}", "Allow these for the bot's role there.")
