"""The link that adds the bot to a server. It must not know discord.py or a token."""

from urllib.parse import urlencode

PERMISSIONS = 309237763136
"""View, send, send in threads, create public threads, read history, embed, attach, react."""


def invite_url(application_id: int | str) -> str:
    """The address that asks a server's owner for exactly what the bot needs.

    Source: discord.com/developers/docs/topics/oauth2, "Bot authorization flow".
    """
    query = {
        "client_id": str(application_id),
        "scope": "bot applications.commands",
        "permissions": str(PERMISSIONS),
        "integration_type": "0",
    }
    return f"https://discord.com/oauth2/authorize?{urlencode(query)}"
