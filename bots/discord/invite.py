"""The link that adds the bot to a server. It must not know discord.py or a token."""

import re
from urllib.parse import urlencode

from core.errors import ConfigError

PERMISSIONS = 309237763136
"""View, send, send in threads, create public threads, read history, embed, attach, react."""


def invite_url(application_id: int | str) -> str:
    """The address that asks a server's owner for exactly what the bot needs.

    Source: discord.com/developers/docs/topics/oauth2, "Bot authorization flow".

    Raises:
        ConfigError: an application id is a number.
    """
    if not re.fullmatch(r"[0-9]{1,20}", str(application_id)):
        raise ConfigError(
            "That is no application id: it is the long number under General Information, "
            "Application ID, in Discord's developer portal."
        )
    query = {
        "client_id": str(application_id),
        "scope": "bot applications.commands",
        "permissions": str(PERMISSIONS),
        "integration_type": "0",
    }
    return f"https://discord.com/oauth2/authorize?{urlencode(query)}"
