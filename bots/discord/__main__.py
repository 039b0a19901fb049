"""`python -m bots.discord`: the bot in Discord as a process. It must not hold anything else."""

import sys

from bots.discord.settings import DiscordSettings
from core.config import load_settings
from core.errors import ConfigError


def main() -> int:
    """The exit code; settings that are wrong are told at once, all of them."""
    try:
        settings = load_settings(DiscordSettings)
    except ConfigError as err:
        sys.stderr.write(f"{err}\n")
        return 2
    # Imported late: discord.py takes a while to load, and wrong settings are told at once.
    from bots.discord.client import run

    return run(settings)


if __name__ == "__main__":
    sys.exit(main())
