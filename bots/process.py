"""One adapter as a process: checks at start, signals, health page, watchdog, graceful end.

It must not know any platform; what is special to one comes in as a `Link`.
"""

import asyncio
import logging
import os
import signal
import sys
import threading
from collections.abc import (
    Awaitable,
    Callable,
    Coroutine,
    Generator,
    Sequence,
)
from contextlib import AsyncExitStack, contextmanager, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from bots.health import health, health_page
from core.ending import end
from core.errors import ConfigError

if TYPE_CHECKING:
    from core.app import App
    from core.config import Settings
    from core.protocols import Adapter

log = logging.getLogger(__name__)
T = TypeVar("T")

EXIT_OK, EXIT_FAILED, EXIT_CONFIG = 0, 1, 2
WATCH_EVERY_S = 10.0
RECONNECT_TIMEOUT_S = 60.0
CLOSE_TIMEOUT_S = 10.0
LAST_RESORT_S = 60.0
"""What an end may take beyond GRACE_S; a process that hangs while it ends helps nobody."""


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
        # Around the loop's own end too, which waits for every task and thread that is left.
        with last_resort(settings.grace_s + LAST_RESORT_S) as insist:
            return asyncio.run(_check_and_serve(settings, check, connect, insist))
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
    insist: Callable[[], None],
) -> int:
    checks = await check()
    if not all(item.is_ok for item in checks):
        raise ConfigError(checks_text([item for item in checks if not item.is_ok]))
    # Imported late: a wrong token is told at once, without loading search and the model.
    from core.app import App

    with stop_on_signals(insist) as stop:
        async with AsyncExitStack() as closing:
            app = await _unless(stop, App.open(settings))
            if app is None:
                return EXIT_OK
            closing.push_async_callback(_bounded, app.close, "closing")
            link = await connect(app)
            closing.push_async_callback(_bounded, link.close, "closing the connection")
            async with health_page(settings.health_port, lambda: health(app, link)):
                await _unless(stop, link.open())
                if not stop.is_set():
                    await _serve(app, link, stop)
    return EXIT_OK


async def _unless(stop: asyncio.Event, work: Coroutine[Any, Any, T]) -> T | None:
    """What `work` gives; None when it was told to stop before that."""
    working, stopping = asyncio.create_task(work), asyncio.create_task(stop.wait())
    try:
        await asyncio.wait((working, stopping), return_when=asyncio.FIRST_COMPLETED)
        return working.result() if working.done() else None
    finally:
        await end(working, stopping)


async def _serve(app: "App", link: Link, stop: asyncio.Event) -> None:
    watching = asyncio.create_task(watch(link, stop))
    pausing = asyncio.create_task(_pause_at(stop, link, watching))
    try:
        await app.serve([link.adapter], stop)
    finally:
        await end(watching, pausing)


async def _pause_at(stop: asyncio.Event, link: Link, watching: asyncio.Task[None]) -> None:
    await stop.wait()
    # Or it would take the pause for a dead connection.
    watching.cancel()
    # Events that come from now on belong to another process, or to the next start.
    await _bounded(link.pause, "pausing the connection")


async def _bounded(work: Callable[[], Awaitable[None]], what: str) -> None:
    try:
        async with asyncio.timeout(CLOSE_TIMEOUT_S):
            await work()
    except TimeoutError:
        log.warning("%s took longer than %.0f s", what, CLOSE_TIMEOUT_S)


@contextmanager
def last_resort(after_s: float) -> Generator[Callable[[], None]]:
    """Gives what starts a countdown of `after_s`, at whose end the process ends as it stands.

    Nothing is lost by that: what was under way is taken over from its checkpoint.
    """

    def give_up() -> None:
        log.error("still not ended after %.0f s; ending as it stands", after_s)
        logging.shutdown()
        os._exit(EXIT_FAILED)

    # A thread, since it may be the event loop that hangs.
    timer = threading.Timer(after_s, give_up)
    timer.daemon = True
    try:
        yield timer.start
    finally:
        timer.cancel()


@contextmanager
def stop_on_signals(on_stop: Callable[[], None]) -> Generator[asyncio.Event]:
    """An event that SIGTERM and SIGINT set; a second signal ends the process as usual.

    `on_stop` is called once, when the event is set.
    """
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
        on_stop()

    for number in numbers:
        # Windows has no loop handlers; Ctrl-C raises KeyboardInterrupt there.
        with suppress(NotImplementedError):
            loop.add_signal_handler(number, stop_once)
    try:
        yield stop
    finally:
        remove()


async def watch(link: Link, stop: asyncio.Event, every_s: float = WATCH_EVERY_S) -> None:
    """Reconnect `link` whenever it is found dead, until `stop`."""
    while not stop.is_set():
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
