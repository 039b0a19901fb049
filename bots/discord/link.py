"""Discord as one process: signs in, connects, serves, and closes.

It must not know events; the client does.
"""

import asyncio
import logging
import signal
from collections.abc import Sequence
from typing import TYPE_CHECKING

import discord
from discord.http import Route

from bots.discord.client import FootnoteClient
from bots.discord.doctor import INTENT_REMEDY, check_start
from bots.discord.settings import DiscordSettings
from bots.process import EXIT_FAILED, Check, run_process
from core.errors import ConfigError
from core.protocols import Adapter

if TYPE_CHECKING:
    from core.app import App

log = logging.getLogger(__name__)

CONNECT_TIMEOUT_S = 120.0
CLOSE_TIMEOUT_S = 10.0
SETTLE_TIMEOUT_S = 3.0


def use_api(url: str | None) -> None:
    """Speaks to another address than Discord's; the gateway's comes from there too."""
    if url:
        Route.BASE = url.rstrip("/")


class DiscordLink:
    """See `bots.process.Link`."""

    def __init__(self, app: "App", settings: DiscordSettings, *, has_content: bool) -> None:
        self._settings = settings
        self._client = FootnoteClient(app.chat, settings, has_content=has_content)
        self._task: asyncio.Task[None] | None = None
        self.has_failed = False

    @property
    def adapter(self) -> Adapter:
        """Renders the runs of this platform."""
        return self._client.adapter

    async def open(self) -> None:
        """Signs in and waits for the gateway.

        Raises:
            ConfigError: the token or an intent is refused.
        """
        try:
            await self._client.login(self._settings.discord_token.get_secret_value())
        except discord.LoginFailure as err:
            raise ConfigError("DISCORD_TOKEN is refused by Discord.") from err
        self._task = asyncio.create_task(self._client.connect())
        connected = asyncio.create_task(self._client.connected.wait())
        done, _ = await asyncio.wait(
            (self._task, connected), timeout=CONNECT_TIMEOUT_S, return_when=asyncio.FIRST_COMPLETED
        )
        connected.cancel()
        if self._task in done:
            try:
                await self._task
            except discord.PrivilegedIntentsRequired as err:
                raise ConfigError(INTENT_REMEDY) from err
        if connected not in done:
            raise ConfigError("Discord's gateway did not answer.")

    async def is_alive(self) -> bool:
        """Whether every shard is connected."""
        if self._task is None or self._task.done() or self._client.is_closed():
            return False
        return all(not shard.is_closed() for shard in self._client.shards.values())

    async def reconnect(self) -> None:
        """The library reconnects by itself; where it gave up for good, the process ends.

        A tight restart loop would use up the day's sign-ins, so that is the supervisor's to pace.
        """
        if self._task is not None and self._task.done() and not self.has_failed:
            error = None if self._task.cancelled() else self._task.exception()
            log.error("the gateway connection ended for good: %s", type(error).__name__)
            self.has_failed = True
            signal.raise_signal(signal.SIGTERM)

    async def pause(self) -> None:
        """Take no more events; answers under way go on."""
        self._client.is_paused = True

    async def close(self) -> None:
        """Let go of everything."""
        await self._client.adapter.desk.settle(SETTLE_TIMEOUT_S)
        await self._client.close()
        if self._task is not None:
            await asyncio.wait([self._task], timeout=CLOSE_TIMEOUT_S)


def run_discord(settings: DiscordSettings) -> int:
    """The exit code of the whole life of the process."""
    use_api(settings.discord_api_url)
    # Nobody is missing voice here.
    discord.VoiceClient.warn_nacl = discord.VoiceClient.warn_dave = False
    has_content = settings.discord_message_content
    links: list[DiscordLink] = []

    async def check() -> Sequence[Check]:
        nonlocal has_content
        found, is_allowed = await check_start(settings)
        has_content = has_content and is_allowed
        return found

    async def connect(app: "App") -> DiscordLink:
        links.append(DiscordLink(app, settings, has_content=has_content))
        return links[-1]

    code = run_process(settings, check, connect)
    return EXIT_FAILED if any(link.has_failed for link in links) else code
