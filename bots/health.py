"""The health page of a process. It must not know any platform."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

from core.errors import BotError, ConfigError

if TYPE_CHECKING:
    from bots.process import Link
    from core.app import App

HEALTH_TIMEOUT_S = 5.0


async def health(app: "App", link: "Link") -> Mapping[str, Any]:
    """What `/healthz` says: `ok`, Redis, the connection, and what waits in the inbox."""
    try:
        async with asyncio.timeout(HEALTH_TIMEOUT_S):
            core, is_alive = await app.health(), await link.is_alive()
    except (BotError, TimeoutError):
        return {"ok": False, "redis": False}
    is_ok = is_alive and bool(core["redis"])
    return {**core, "ok": is_ok, link.adapter.platform: is_alive}


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
