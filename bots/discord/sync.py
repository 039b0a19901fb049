"""Discord's list of the bot's commands, kept like ours; written only when it differs.

It must not know what the commands do.
"""

import logging
from collections.abc import Mapping, Sequence
from typing import Any, cast

import discord
from discord import app_commands

log = logging.getLogger(__name__)

_KEPT = (
    "name", "type", "description", "options", "choices", "required", "value", "contexts",
    "integration_types", "default_member_permissions", "max_length", "min_length",
)  # fmt: skip


def essence(command: Mapping[str, Any]) -> dict[str, Any]:
    """What makes a command: without ids, versions and defaults."""
    kept: dict[str, Any] = {}
    for name in _KEPT:
        value = command.get(name)
        if value in (None, "", False, []):
            continue
        if name in ("options", "choices"):
            value = [essence(item) for item in value]
        elif name in ("contexts", "integration_types"):
            value = sorted(value)
        kept[name] = value
    kept.setdefault("type", 1)
    return kept


async def is_synced(tree: app_commands.CommandTree[discord.Client]) -> bool:
    """Whether Discord's list is ours. Raises discord.HTTPException."""
    client = tree.client
    remote = await client.http.get_global_commands(client.application_id or 0)
    ours = [command.to_dict(tree) for command in tree.get_commands()]
    ours += [
        command.to_dict(tree) for command in tree.get_commands(type=discord.AppCommandType.message)
    ]
    return _by_name(cast("Sequence[Mapping[str, Any]]", remote)) == _by_name(ours)


async def sync(tree: app_commands.CommandTree[discord.Client]) -> bool:
    """Whether anything had to be written; a failure is logged, mentions work without commands."""
    try:
        if await is_synced(tree):
            return False
        await tree.sync()
    except discord.HTTPException as err:
        log.warning("the commands could not be synced: code %s", err.code)
        return False
    return True


def _by_name(commands: Sequence[Mapping[str, Any]]) -> dict[tuple[str, int], dict[str, Any]]:
    essences = [essence(command) for command in commands]
    return {(each["name"], each["type"]): each for each in essences}
