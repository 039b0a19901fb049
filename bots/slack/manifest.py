"""The app's manifest: what to paste into Slack, for either way to connect, and what it asks for.

It must not know Slack's API; the YAML beside it is the one place that names scopes and events.
"""

from pathlib import Path
from typing import Literal

from core.errors import ConfigError

Mode = Literal["socket", "http"]
EVENTS_PATH = "/slack/events"
PLACEHOLDER_URL = "https://YOUR-HOST"

_FILE = Path(__file__).with_name("manifest.yaml")


def manifest_text(mode: Mode = "socket", url: str = PLACEHOLDER_URL) -> str:
    """The manifest as YAML; for HTTP mode with `url`, the https address of this process.

    Raises:
        ConfigError: `url` is not an https address.
    """
    text = _FILE.read_text(encoding="utf-8")
    if mode == "socket":
        return text
    if not url.startswith("https://"):
        raise ConfigError("Slack needs an https address, such as https://bot.example.com.")
    request_url = f"{url.rstrip('/')}{EVENTS_PATH}"
    text = text.replace("socket_mode_enabled: true", "socket_mode_enabled: false")
    text = text.replace(
        "  event_subscriptions:\n", f"  event_subscriptions:\n    request_url: {request_url}\n"
    )
    text = text.replace(
        "    is_enabled: true\n", f"    is_enabled: true\n    request_url: {request_url}\n"
    )
    return text.replace("      should_escape", f"      url: {request_url}\n      should_escape")


def wanted_scopes() -> frozenset[str]:
    """The bot scopes that the manifest asks for."""
    block = _FILE.read_text(encoding="utf-8").split("    bot:\n", 1)[1].split("settings:", 1)[0]
    return frozenset(line.strip().removeprefix("- ") for line in block.splitlines() if "- " in line)
