"""What the Discord adapter can be told. It must not know discord.py, so that it loads quickly."""

from pydantic import Field

from core.config import Secret, Settings, Text


class DiscordSettings(Settings):
    """Footnote's settings and Discord's own. Each field is an environment variable.

    `discord_guilds` lists the servers that may use the bot; empty means every server it is in.
    Catch-up looks back at most 55 minutes, because a message stays claimed for an hour.
    """

    discord_token: Secret
    discord_api_url: Text | None = None
    discord_guilds: str = Field(default="", pattern=r"^[\d\s,]*$")
    discord_message_content: bool = True
    discord_catch_up_minutes: int = Field(default=55, ge=0, le=55)
    discord_catch_up_messages: int = Field(default=50, ge=1, le=100)

    @property
    def guild_ids(self) -> frozenset[int]:
        """The servers on the list; empty when there is no list."""
        return frozenset(int(item) for item in self.discord_guilds.replace(",", " ").split())
