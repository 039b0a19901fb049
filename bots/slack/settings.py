"""What the Slack process can be told, beyond core's settings.

It must not judge tokens: the doctor does, and says what to do.
"""

from typing import Literal

from pydantic import Field

from core.config import Secret, Settings, Text


class SlackSettings(Settings):
    """Each field is an environment variable of the same name.

    The tokens are optional here so that the doctor can name every missing or swapped one at once.
    """

    slack_bot_token: Secret | None = None
    slack_app_token: Secret | None = None
    slack_signing_secret: Secret | None = None
    slack_mode: Literal["socket", "http"] = "socket"
    port: int = Field(default=3000, ge=0, le=65_535)
    slack_api_url: Text = "https://slack.com/api/"
    slack_allow_external: bool = False
    slack_channels: Text = ""
    slack_users: Text = ""

    @property
    def allowed_channels(self) -> frozenset[str]:
        """Ids from SLACK_CHANNELS; empty means all."""
        return _ids(self.slack_channels)

    @property
    def allowed_users(self) -> frozenset[str]:
        """Ids from SLACK_USERS; empty means all."""
        return _ids(self.slack_users)


def _ids(listed: str) -> frozenset[str]:
    return frozenset(listed.replace(",", " ").split())
