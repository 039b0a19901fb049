"""The Slack process: Bolt, Socket Mode or HTTP, wired to core. It holds no rule of its own."""

import asyncio
import logging
import re
import sys
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from aiohttp import web
from slack_bolt.adapter.aiohttp import to_aiohttp_response, to_bolt_request
from slack_bolt.adapter.socket_mode.aiohttp import AsyncSocketModeHandler
from slack_bolt.app.async_app import AsyncApp
from slack_bolt.authorization import AuthorizeResult

from bots.process import Check, run_process
from bots.slack.adapter import SlackAdapter
from bots.slack.api import Identity, SlackApi, SlackFault
from bots.slack.desk import Desk
from bots.slack.doctor import doctor
from bots.slack.ingress import Ingress
from bots.slack.manifest import EVENTS_PATH
from bots.slack.settings import SlackSettings
from bots.slack.tasks import Tasks
from core.config import load_settings
from core.errors import ConfigError
from core.protocols import Adapter

if TYPE_CHECKING:
    from core.app import App

log = logging.getLogger(__name__)

PING_EVERY_S = 10.0
CONNECT_TIMEOUT_S = 30.0
_ANYTHING = re.compile(".*")


class SlackLink:
    """The live connection of one workspace. Made by `connect`."""

    def __init__(
        self,
        settings: SlackSettings,
        api: SlackApi,
        bolt: AsyncApp,
        adapter: SlackAdapter,
        tasks: Tasks,
    ) -> None:
        self._settings = settings
        self._api = api
        self._bolt = bolt
        self._adapter = adapter
        self._tasks = tasks
        # Any: slack_sdk's clients are untyped.
        self._socket: Any = None
        self._runner: web.AppRunner | None = None
        self.port: int | None = None

    @property
    def adapter(self) -> Adapter:
        """Renders the runs."""
        return self._adapter

    async def open(self) -> None:
        """Connect the socket, or listen for Slack's requests."""
        if self._settings.slack_mode == "http":
            await self._listen()
            return
        token = self._settings.slack_app_token
        handler: Any = AsyncSocketModeHandler(
            self._bolt,
            token.get_secret_value() if token else "",
            ping_interval=PING_EVERY_S,
        )
        self._socket = handler.client
        try:
            async with asyncio.timeout(CONNECT_TIMEOUT_S):
                await self._socket.connect()
        except TimeoutError as err:
            raise ConfigError(
                f"Slack's socket did not open within {CONNECT_TIMEOUT_S:.0f} s; "
                "`footnote doctor slack` says more."
            ) from err

    async def is_alive(self) -> bool:
        """Whether the socket answers pings; in HTTP mode always."""
        return self._socket is None or bool(await self._socket.is_connected())

    async def reconnect(self) -> None:
        """A new socket in place of a dead one."""
        if self._socket is not None:
            await self._socket.connect_to_new_endpoint(force=True)

    async def pause(self) -> None:
        """Take no more events: Slack gives them to another process, or again later."""
        if self._socket is not None:
            await self._socket.close()
        if self._runner is not None:
            await self._runner.cleanup()
            self._runner = None

    async def close(self) -> None:
        """Finish what runs beside, and hang up."""
        await self.pause()
        await self._tasks.close()
        await self._api.close()

    async def _listen(self) -> None:
        async def handle(request: web.Request) -> web.Response:
            return await to_aiohttp_response(
                await self._bolt.async_dispatch(await to_bolt_request(request))
            )

        server = web.Application()
        server.router.add_post(EVENTS_PATH, handle)
        self._runner = web.AppRunner(server, access_log=None)
        await self._runner.setup()
        try:
            # All interfaces: a load balancer in front ends the encryption.
            await web.TCPSite(self._runner, "0.0.0.0", self._settings.port).start()  # noqa: S104
        except OSError as err:
            raise ConfigError(f"PORT {self._settings.port} cannot be opened: {err}") from err
        self.port = int(self._runner.addresses[0][1])


async def connect(settings: SlackSettings, app: "App") -> SlackLink:
    """Slack, ready to be opened.

    Raises:
        ConfigError: Slack does not accept the token.
    """
    token = settings.slack_bot_token
    api = SlackApi(token.get_secret_value() if token else "", settings.slack_api_url)
    try:
        identity = await api.identity()
    except SlackFault as fault:
        await api.close()
        raise ConfigError(
            f"Slack does not accept SLACK_BOT_TOKEN ({fault.code}); "
            "`footnote doctor slack` says what to do."
        ) from fault
    tasks = Tasks()
    desk = Desk(app.chat, api, identity)
    ingress = Ingress(app.chat, api, identity, settings, tasks, desk)
    adapter = SlackAdapter(api, identity, tasks, ingress, settings.lease_s)
    bolt = make_bolt(settings, api, identity, ingress, desk, tasks)
    return SlackLink(settings, api, bolt, adapter, tasks)


def make_bolt(
    settings: SlackSettings,
    api: SlackApi,
    identity: Identity,
    ingress: Ingress,
    desk: Desk,
    tasks: Tasks,
) -> AsyncApp:
    """The Bolt app. An event is acknowledged once its listener is done, and not if it fails."""
    known = AuthorizeResult(
        enterprise_id=identity.enterprise or None,
        team_id=identity.team,
        bot_user_id=identity.user,
        bot_id=identity.bot,
        bot_token=api.token,
    )

    async def authorize() -> AuthorizeResult:
        # Who we are was asked at the start: no call for it on an event's way.
        return known

    secret = settings.slack_signing_secret
    # Bolt warns, in two ways, of the token in the environment, which it is right not to use.
    logging.getLogger("slack_bolt.AsyncApp").addFilter(_is_not_about_tokens)
    bolt: Any = AsyncApp(
        client=api.client,
        authorize=authorize,
        signing_secret=secret.get_secret_value() if secret else None,
        process_before_response=True,
    )

    async def on_message(event: Mapping[str, Any]) -> None:
        await ingress.on_message(event)

    async def on_reaction(event: Mapping[str, Any]) -> None:
        await ingress.on_reaction(event)

    async def on_stop(event: Mapping[str, Any]) -> None:
        await ingress.on_stop(event)

    async def on_home(event: Mapping[str, Any]) -> None:
        await ingress.on_home(event)

    async def on_removed(event: Mapping[str, Any]) -> None:
        log.error("the app was removed or its tokens were revoked (%s)", event.get("type"))

    async def on_anything(event: Mapping[str, Any]) -> None:
        # Unmatched, Bolt would answer 404 and Slack would deliver it again.
        log.debug("an event of type %s is not for us", event.get("type"))

    async def on_command(ack: Any, body: Mapping[str, Any]) -> None:
        await ack()
        tasks.start(desk.on_command(body), "a slash command")

    async def on_shortcut(ack: Any, body: Mapping[str, Any]) -> None:
        await ack()
        tasks.start(desk.on_shortcut(body), "a shortcut")

    async def on_action(ack: Any, body: Mapping[str, Any]) -> None:
        await ack()
        tasks.start(desk.on_action(body), "a button")

    async def on_view(ack: Any) -> None:
        await ack()

    for kind in ("message", "app_mention"):
        bolt.event(kind)(on_message)
    bolt.event("reaction_added")(on_reaction)
    bolt.event("agent_session_stopped")(on_stop)
    bolt.event("app_home_opened")(on_home)
    for kind in ("app_uninstalled", "tokens_revoked"):
        bolt.event(kind)(on_removed)
    bolt.event({"type": _ANYTHING})(on_anything)
    bolt.command(_ANYTHING)(on_command)
    bolt.shortcut("forget_thread")(on_shortcut)
    bolt.action(_ANYTHING)(on_action)
    bolt.view(_ANYTHING)(on_view)
    return bolt


def _is_not_about_tokens(record: logging.LogRecord) -> bool:
    return not record.getMessage().startswith("As ")


def run(settings: SlackSettings) -> int:
    """The whole life of the process; its exit code (2: the configuration is wrong)."""

    async def check() -> Sequence[Check]:
        return await doctor(settings)

    async def make_link(app: "App") -> SlackLink:
        return await connect(settings, app)

    return run_process(settings, check, make_link)


def main() -> int:
    """`python -m bots.slack`."""
    try:
        settings = load_settings(SlackSettings)
    except ConfigError as err:
        print(err, file=sys.stderr)  # noqa: T201 - the operator's terminal is the place for it
        return 2
    return run(settings)
