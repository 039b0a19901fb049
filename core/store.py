"""The connection to Redis: opens it, retries, runs our scripts, starts the embedded server.

It must not know what is stored. Keys and values are the callers'.
"""

import asyncio
import contextlib
import logging
import random
import time
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from redis import exceptions as fault
from redis.asyncio import BlockingConnectionPool, Redis, RedisCluster, UnixDomainSocketConnection
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff

from core.errors import ConfigError, StoreError
from core.faults import FAULTS, URL_FORM, check_url, is_read_only, may_pass, no_answer, plain
from core.keys import root
from core.scripts import text_of

if TYPE_CHECKING:
    from core.embedded import Embedded

log = logging.getLogger(__name__)

Arg = str | bytes | int
T = TypeVar("T")

SOCKET_TIMEOUT_S = 5.0
MAX_BLOCK_MS = 4_000
"""A blocking read must return before the socket times out, or it counts as a failure."""

_CONNECTIONS = 32
_BATCH = 128
_BACKOFF_S = (0.05, 0.1, 0.2, 0.4, 0.8)
_GIVE_UP_S = 8.0  # for a server that hangs: every try of it takes the socket's timeout
_MIN_VERSION = (6, 2)


class Store:
    """A connection to a Redis, a cluster, or the embedded server. Made by `open`.

    `client` is redis-py's own, for what is not a script. `faults` counts failed tries: after one,
    the reply to a call that was made may have been lost.
    """

    # Any: Redis and RedisCluster share no typed base that has the calls used here.
    def __init__(self, client: Any, *, is_cluster: bool, embedded: "Embedded | None") -> None:
        self.client = client
        self.is_cluster = is_cluster
        self.faults = 0
        self._embedded = embedded
        self._relaunch = asyncio.Lock()
        self._loading: dict[str, asyncio.Future[Any]] = {}
        self._waiting: list[tuple[tuple[Arg, ...], asyncio.Future[Any]]] = []
        self._sender: asyncio.Task[None] | None = None

    @classmethod
    async def open(cls, redis_url: str | None, data_dir: Path, *, fsync: str = "always") -> "Store":
        """A connected store; without `redis_url` the embedded server of `data_dir`.

        `fsync` is the embedded server's alone: "always" loses nothing, "everysec" is quicker.

        Raises:
            ConfigError: no server there, or a wrong URL; names host and port, no user or password.
        """
        if redis_url is None:
            return await cls._open_embedded(data_dir, fsync)
        place = check_url(redis_url)
        client = Redis.from_pool(
            BlockingConnectionPool.from_url(  # pyright: ignore[reportUnknownMemberType]
                redis_url, **_options(), max_connections=_CONNECTIONS, timeout=SOCKET_TIMEOUT_S
            )
        )
        try:
            is_cluster = await _check_server(client, place)
        except BaseException:
            await client.aclose()
            raise
        if not is_cluster:
            return cls(client, is_cluster=False, embedded=None)
        await client.aclose()
        nodes = RedisCluster.from_url(redis_url, **_options())
        try:
            await nodes.initialize()
        except FAULTS as err:
            await nodes.aclose()
            raise ConfigError(no_answer(place, err)) from None
        return cls(nodes, is_cluster=True, embedded=None)

    @classmethod
    async def _open_embedded(cls, data_dir: Path, fsync: str) -> "Store":
        try:
            from core.embedded import Embedded
        except ImportError:  # no fcntl: Windows
            raise ConfigError(
                "There is no embedded Redis server for this platform: set REDIS_URL, "
                f"for example {URL_FORM}"
            ) from None
        server = Embedded(data_dir, fsync=fsync)
        try:
            await asyncio.to_thread(server.ensure)
        except OSError as err:
            raise ConfigError(f"DATA_DIR {data_dir} cannot be used: {err.strerror}") from err
        pool = BlockingConnectionPool(
            connection_class=UnixDomainSocketConnection,
            path=server.socket_path,
            client_name=server.client_name,
            max_connections=_CONNECTIONS,
            timeout=SOCKET_TIMEOUT_S,
            **_options(),
        )
        return cls(Redis.from_pool(pool), is_cluster=False, embedded=server)

    async def run(self, script: str, tag: str, *args: Arg) -> Any:
        """The reply of core/lua/<script>.lua for the keys of `tag`.

        A call whose connection broke is made again, so every script can bear to run twice.

        Raises:
            StoreError: Redis failed, after retries; the text names no host.
        """
        return await self.retrying(lambda: self._evaluate(script, tag, args))

    async def run_each(self, script: str, calls: Sequence[tuple[str, Sequence[Arg]]]) -> list[Any]:
        """Replies of several calls of one script, (tag, arguments) each, in one round trip.

        Raises:
            StoreError: as `run`; some of the calls may have been made.
        """
        tasks = [asyncio.create_task(self.run(script, tag, *args)) for tag, args in calls]
        try:
            return list(await asyncio.gather(*tasks))
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def retrying(self, call: Callable[[], Awaitable[T]]) -> T:
        """What `call` gives, made again after a fault that may pass; reconnects, relaunches.

        Raises:
            StoreError: the fault lasts, or is of a kind that repeating does not help.
        """
        give_up_at = time.monotonic() + _GIVE_UP_S
        for pause_s in (*_BACKOFF_S, None):
            try:
                return await call()
            except FAULTS as err:
                self.faults += 1
                is_over = time.monotonic() > give_up_at
                if pause_s is None or is_over or not may_pass(err):
                    log.warning("redis failed: %s", type(err).__name__)
                    raise StoreError(plain(err)) from err
                await self._recover(err)
            await asyncio.sleep(pause_s * random.uniform(0.5, 1.0))
        raise AssertionError  # the last round returns or raises

    async def is_healthy(self) -> bool:
        """Whether the server answers now, without retries."""
        try:
            async with asyncio.timeout(SOCKET_TIMEOUT_S):
                return bool(await self.client.ping())
        except FAULTS:
            return False

    async def close(self) -> None:
        """Disconnect; stops the embedded server when no other client is connected."""
        if self._sender is not None:
            await asyncio.wait([self._sender])
        await self.client.aclose()
        if self._embedded is not None:
            await asyncio.to_thread(self._embedded.stop_if_unused)

    async def _recover(self, err: Exception) -> None:
        """What makes the next try better than the one that failed with `err`."""
        if is_read_only(err):
            if not self.is_cluster:
                # After a failover the name leads elsewhere: idle connections go to the old primary.
                await self.client.connection_pool.disconnect(inuse_connections=False)
        elif self._embedded is not None:
            # The next try reports what is wrong; here a failure only means no better luck.
            async with self._relaunch:
                with contextlib.suppress(ConfigError, OSError):
                    await asyncio.to_thread(self._embedded.ensure)

    async def _evaluate(self, script: str, tag: str, args: Sequence[Arg]) -> Any:
        sha, _ = text_of(script)
        await self._load(script)
        try:
            return await self._send("EVALSHA", sha, 1, root(tag), *args)
        except fault.NoScriptError:
            # The server was restarted, or is another one.
            await self._load(script, anew=True)
            return await self._send("EVALSHA", sha, 1, root(tag), *args)

    async def _load(self, script: str, *, anew: bool = False) -> None:
        """Returns once the server knows the script; sent once for all that wait for it.

        It is sent apart from its calls, as it is much longer than one.
        """
        loading = self._loading.get(script)
        if loading is None or (
            loading.done() and (anew or loading.cancelled() or loading.exception())
        ):
            loading = asyncio.ensure_future(self.client.script_load(text_of(script)[1]))
            self._loading[script] = loading
        if not loading.done():
            await asyncio.shield(loading)

    async def _send(self, *command: Arg) -> Any:
        """The reply to `command`, sent with whatever else is waiting: one trip for all of it."""
        # A lone surrogate from a broken message must fail neither its own call nor its neighbours'.
        command = (
            command[0],
            *(a.encode(errors="replace") if isinstance(a, str) else a for a in command[1:]),
        )
        if self.is_cluster:
            return await self.client.execute_command(*command)
        future: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self._waiting.append((command, future))
        if self._sender is None:
            self._sender = asyncio.create_task(self._drain())
        return await future

    async def _drain(self) -> None:
        """Sends what waits until nothing does; while one batch travels, the next gathers."""
        batch: list[tuple[tuple[Arg, ...], asyncio.Future[Any]]] = []
        try:
            while self._waiting:
                batch, self._waiting = self._waiting[:_BATCH], self._waiting[_BATCH:]
                replies: list[Any]
                try:
                    async with self.client.pipeline(transaction=False) as pipe:
                        for command, _ in batch:
                            pipe.execute_command(*command)
                        replies = await pipe.execute(raise_on_error=False)
                except FAULTS as err:
                    replies = [err] * len(batch)
                for (_, future), reply in zip(batch, replies, strict=True):
                    # A caller that was cancelled no longer waits for its reply.
                    if not future.done():
                        if isinstance(reply, Exception):
                            future.set_exception(reply)
                        else:
                            future.set_result(reply)
        finally:
            self._sender = None
            for _, future in (*batch, *self._waiting):
                if not future.done():
                    future.cancel()
            self._waiting.clear()


def _options() -> dict[str, Any]:
    # Retries are ours (`retrying`), which also relaunches; redis-py's own defaults differ by how a
    # client is made. `protocol` stays unset: 3 changes the shape of XREADGROUP's reply.
    return {
        "retry": Retry(NoBackoff(), 0),
        "socket_timeout": SOCKET_TIMEOUT_S,
        "socket_connect_timeout": 2.0,
    }


async def _check_server(client: Any, place: str) -> bool:
    """Whether it is a cluster. Raises ConfigError when it does not answer or is too old."""
    deadline = time.monotonic() + 2 * SOCKET_TIMEOUT_S
    while True:
        try:
            info = await client.info()
            break
        except fault.BusyLoadingError:
            if time.monotonic() > deadline:
                raise ConfigError(f"Redis at {place} is still loading its data.") from None
            await asyncio.sleep(0.2)
        except FAULTS as err:
            # The cause may quote what was sent to log in.
            raise ConfigError(no_answer(place, err)) from None
    version = str(info.get("redis_version", "0"))
    if tuple(int(part) for part in version.split(".")[:2]) < _MIN_VERSION:
        raise ConfigError(f"Redis at {place} is {version}; 6.2 or newer is needed.")
    if str(info.get("maxmemory_policy", "")).startswith("allkeys"):
        log.warning("redis evicts any key when it is full: use maxmemory-policy noeviction")
    return bool(info.get("cluster_enabled"))
