"""Fixtures on real servers: name this module in `pytest_plugins` of a test module."""

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from core.store import Store
from tests.support_redis import Server, serve


@pytest.fixture(scope="session")
def redis_server() -> Iterator[Server]:
    with serve() as server:
        yield server


@pytest.fixture(scope="session")
def cluster_server() -> Iterator[Server]:
    with serve(cluster=True) as server:
        yield server


@pytest.fixture
async def store(redis_server: Server, tmp_path: Path) -> AsyncIterator[Store]:
    """A store on an empty data set."""
    opened = await Store.open(redis_server.url, tmp_path)
    await opened.client.flushall()
    yield opened
    await opened.close()


@pytest.fixture(params=["single", "cluster"])
async def any_store(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Store]:
    """A store on an empty data set, once on one server and once on a cluster."""
    kind = "cluster_server" if request.param == "cluster" else "redis_server"
    server: Server = request.getfixturevalue(kind)
    opened = await Store.open(server.url, tmp_path)
    await opened.client.flushall()
    yield opened
    await opened.close()
