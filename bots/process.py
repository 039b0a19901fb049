"""One adapter as a process: checks at start, signals, health page, watchdog, graceful end.

It must not know any platform; what is special to one comes in as a `Link`.
"""

import asyncio
import logging
import signal
import sys
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from core.errors import BotError, ConfigError

if TYPE_CHECKING:
    from core.app import App
    from core.config import Settings
    from core.protocols import Adapter

log = logging.getLogger(__name__)

EXIT_OK, EXIT_FAILED, EXIT_CONFIG = 0, 1, 2
WATCH_EVERY_S = 10.0
RECONNECT_TIMEOUT_S = 60.0
CLOSE_TIMEOUT_S = 10.0
HEALTH_TIMEOUT_S = 5.0


@dataclass(frozen=True, slots=True)
class Check:
    """One thing that a doctor looked at. `remedy` tells the operator what to do about it."""

    name: str
    is_ok: bool
    detail: str
    remedy: str = ""


class Link(Protocol):
    """A platform's live connection, as the process sees it."""

    @property
    def adapter(self) -> "Adapter":
        """Renders the runs of this platform."""
        ...

    async def open(self) -> None:
        """Connect and start to take events.

        Raises:
            ConfigError: the platform refuses what was configured.
        """
        ...

    async def is_alive(self) -> bool:
        """Whether events can still arrive; a silent, dead connection is not alive."""
        ...

    async def reconnect(self) -> None:
        """Replace a dead connection."""
        ...

    async def pause(self) -> None:
        """Take no more events; answers under way go on."""
        ...

    async def close(self) -> None:
        """Let go of everything."""
        ...


def checks_text(checks: Sequence[Check]) -> str:
    """The checks as lines for a terminal, each failure with its remedy below."""
    lines: list[str] = []
    for check in checks:
        lines.append(f"{'ok  ' if check.is_ok else 'FAIL'}  {check.name}: {check.detail}")
        if not check.is_ok and check.remedy:
            lines += [f"      {line}" for line in check.remedy.splitlines()]
    return "\n".join(lines)


def run_process(
    settings: "Settings",
    check: Callable[[], Awaitable[Sequence[Check]]],
    connect: "Callable[[App], Awaitable[Link]]",
) -> int:
    """The exit code of a whole life: check, open, serve until SIGTERM or SIGINT, drain, close.

    0 after a graceful end, 1 after a fault, 2 when the configuration is wrong; then every
    problem found is printed at once.
    """
    start_logging(settings.log_level)
    try:
        return asyncio.run(_check_and_serve(settings, check, connect))
    except ConfigError as err:
        print(err, file=sys.stderr)  # noqa: T201 - the operator's terminal is the place for it
        return EXIT_CONFIG
    except KeyboardInterrupt:
        return EXIT_FAILED
    except Exception:
        log.exception("Footnote had to stop")
        return EXIT_FAILED


def start_logging(level: str) -> None:
    """Log to stderr at `level`; libraries, which may log whole requests, at WARNING at least."""
    logging.basicConfig(level=logging.WARNING, format="%(asctime)s %(levelname)s %(message)s")
    for name in ("bots", "core"):
        logging.getLogger(name).setLevel(level)


async def _check_and_serve(
    settings: "Settings",
    check: Callable[[], Awaitable[Sequence[Check]]],
    connect: "Callable[[App], Awaitable[Link]]",
) -> int:
    checks = await check()
    if not all(item.is_ok for item in checks):
        raise ConfigError(checks_text([item for item in checks if not item.is_ok]))
    # Imported late: a wrong token is told at once, without loading search and the model.
    from core.app import App

    with stop_on_signals() as stop:
        app = await App.open(settings)
        try:
            link = await connect(app)
            try:
                async with health_page(settings.health_port, lambda: health(app, link)):
                    await link.open()
                    await _serve(app, link, stop)
            finally:
                await _bounded(link.close(), "closing the connection")
        finally:
            await app.close()
    return EXIT_OK


async def _serve(app: "App", link: Link, stop: asyncio.Event) -> None:
    async with asyncio.TaskGroup() as group:
        watching = group.create_task(watch(link))
        pausing = group.create_task(_pause_at(stop, link, watching))
        await app.serve([link.adapter], stop)
        watching.cancel()
        pausing.cancel()


async def _pause_at(stop: asyncio.Event, link: Link, watching: asyncio.Task[None]) -> None:
    await stop.wait()
    # Or it would take the pause for a dead connection.
    watching.cancel()
    # Events that come from now on belong to another process, or to the next start.
    await _bounded(link.pause(), "pausing the connection")


async def _bounded(work: Awaitable[None], what: str) -> None:
    try:
        async with asyncio.timeout(CLOSE_TIMEOUT_S):
            await work
    except TimeoutError:
        log.warning("%s took longer than %.0f s", what, CLOSE_TIMEOUT_S)


@contextmanager
def stop_on_signals() -> Generator[asyncio.Event]:
    """An event that SIGTERM and SIGINT set; a second signal ends the process as usual."""
    loop = asyncio.get_running_loop()
    stop = asyncio.Event()
    numbers = (signal.SIGTERM, signal.SIGINT)

    def remove() -> None:
        for number in numbers:
            with suppress(NotImplementedError):
                loop.remove_signal_handler(number)

    def stop_once() -> None:
        stop.set()
        remove()

    for number in numbers:
        # Windows has no loop handlers; Ctrl-C raises KeyboardInterrupt there.
        with suppress(NotImplementedError):
            loop.add_signal_handler(number, stop_once)
    try:
        yield stop
    finally:
        remove()


async def watch(link: Link, every_s: float = WATCH_EVERY_S) -> None:
    """Reconnect `link` whenever it is found dead, for ever."""
    while True:
        await asyncio.sleep(every_s)
        try:
            async with asyncio.timeout(RECONNECT_TIMEOUT_S):
                if await link.is_alive():
                    continue
                log.warning("the connection is dead; reconnecting")
                await link.reconnect()
        except Exception:
            # The next round tries again; a watchdog that dies of a fault guards nothing.
            log.exception("reconnecting failed")


async def health(app: "App", link: Link) -> Mapping[str, Any]:
    """What `/healthz` says: `ok`, Redis, the connection, and what waits in the inbox."""
    try:
        async with asyncio.timeout(HEALTH_TIMEOUT_S):
            core = dict(await app.health())
            stocks = [
                await app.backlog(link.adapter.platform, workspace).stats()
                for workspace in link.adapter.workspaces
            ]
            is_alive = await link.is_alive()
    except (BotError, TimeoutError):
        return {"ok": False, "redis": False}
    return {
        **core,
        "ok": is_alive and bool(core.get("redis")),
        link.adapter.platform: is_alive,
        "waiting": sum(stock.depth for stock in stocks),
        "oldest_age_s": max((round(stock.oldest_age_s, 1) for stock in stocks), default=0.0),
        "dead_letters": sum(stock.dead for stock in stocks),
    }


@asynccontextmanager
async def health_page(
    port: int | None, probe: Callable[[], Awaitable[Mapping[str, Any]]]
) -> AsyncGenerator[int | None]:
    """Serves `/healthz` on `port` (0: any free one) while inside; None serves nothing.

    200 when `ok` is true, else 503. Yields the port.
    """
    if port is None:
        yield None
        return
    from aiohttp import web

    async def answer(_: web.Request) -> web.Response:
        report = await probe()
        return web.json_response(dict(report), status=200 if report.get("ok") else 503)

    server = web.Application()
    server.router.add_get("/healthz", answer)
    runner = web.AppRunner(server, access_log=None)
    await runner.setup()
    try:
        # All interfaces: what asks is an orchestrator outside the container.
        await web.TCPSite(runner, "0.0.0.0", port).start()  # noqa: S104
        yield int(runner.addresses[0][1])
    except OSError as err:
        raise ConfigError(f"HEALTH_PORT {port} cannot be opened: {err.strerror}.") from err
    finally:
        await runner.cleanup()
