"""Fixtures on real servers: name this module in `pytest_plugins` of a test module."""

import shutil
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


@pytest.fixture(scope="session")
def debian_server() -> Iterator[Server]:
    """Redis itself, where the system has it: its protocol and scripts differ in small things."""
    binary = shutil.which("redis-server")
    if binary is None:
        pytest.skip("redis-server is not installed")
    with serve(binary=binary) as server:
        yield server


@pytest.fixture
async def store(redis_server: Server, tmp_path: Path) -> AsyncIterator[Store]:
    """A store on an empty data set."""
    opened = await Store.open(redis_server.url, tmp_path)
    await opened.client.flushall()
    yield opened
    await opened.close()


@pytest.fixture(params=["redis_server", "cluster_server", "debian_server"])
async def any_store(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Store]:
    """A store on an empty data set: on one server, on a cluster, and on Debian's Redis."""
    server: Server = request.getfixturevalue(request.param)
    opened = await Store.open(server.url, tmp_path)
    await opened.client.flushall()
    yield opened
    await opened.close()
