"""The connection to Redis: opens it, retries, runs our scripts, starts the embedded server.

It must not know what is stored. Keys and values are the callers'.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

Arg = str | bytes | int | float


class Store:
    """A connection to a Redis, a cluster, or the embedded server. Made by `open`."""

    client: Any
    is_embedded: bool
    is_cluster: bool

    @classmethod
    async def open(cls, redis_url: str | None, data_dir: Path) -> "Store":
        """A connected store; without `redis_url` the embedded server of `data_dir`.

        Raises:
            ConfigError: no server there, or a wrong URL; names host and port, never user or password.
        """
        raise NotImplementedError

    async def run(self, script: str, tag: str, *args: Arg) -> Any:
        """The reply of core/lua/<script>.lua for the keys of `tag`.

        Raises:
            StoreError: Redis failed, after retries; the text names no host.
        """
        raise NotImplementedError

    async def run_each(self, script: str, calls: Sequence[tuple[str, Sequence[Arg]]]) -> list[Any]:
        """Replies of several calls of one script, (tag, arguments) each, in one round trip.

        Raises:
            StoreError: as `run`.
        """
        raise NotImplementedError

    async def is_healthy(self) -> bool:
        """Whether the server answers now, without retries."""
        raise NotImplementedError

    async def close(self) -> None:
        """Disconnect; stops the embedded server when no other client is connected."""
        raise NotImplementedError
