"""The connection: faults that pass, faults that last, and what is said about them."""

import asyncio
import logging
import socket
from pathlib import Path

import pytest

from core.errors import ConfigError, StoreError
from core.store import Store
from tests.support import wait_until
from tests.support_redis import Server, a_session, serve

pytest_plugins = ("tests.support_redis_fixtures",)

SESSION = a_session()


async def test_scripts_survive_a_flush_of_the_script_cache(any_store: Store) -> None:
    first = await any_store.run("read", SESSION.tag, SESSION.key, "C1", "U1", 60)
    await any_store.client.script_flush()
    assert await any_store.run("read", SESSION.tag, SESSION.key, "C1", "U1", 60) == first == [0, []]


async def test_concurrent_calls_travel_together(store: Store) -> None:
    await store.run("read", SESSION.tag, SESSION.key, "C1", "U1", 60)
    replies = await asyncio.gather(
        *(store.run("read", SESSION.tag, f"C1/U{n}", "C1", f"U{n}", 60) for n in range(300))
    )
    assert replies == [[0, []]] * 300


async def test_readonly_for_a_while_then_saved(tmp_path: Path) -> None:
    with serve() as server:
        store = await Store.open(server.url, tmp_path)
        await store.run("read", SESSION.tag, SESSION.key, "C1", "U1", 60)
        server.ask("REPLICAOF 127.0.0.1 1")
        writing = asyncio.create_task(
            store.run("note", SESSION.tag, "C1/T1", "label", "text", 10, 60)
        )
        failures = lambda: "errorstat_READONLY:count=2" in server.ask("INFO errorstats")  # noqa: E731
        await wait_until(failures)
        server.ask("REPLICAOF NO ONE")
        await writing
        assert await store.client.llen(f"{{{SESSION.tag}}}:notes:C1/T1") == 1
        await store.close()


async def test_out_of_memory_is_said_without_host(tmp_path: Path) -> None:
    with serve() as server:
        store = await Store.open(server.url, tmp_path)
        server.ask("CONFIG SET maxmemory 1")
        with pytest.raises(StoreError, match="out of memory") as caught:
            await store.run("note", SESSION.tag, "C1/T1", "label", "text", 10, 60)
        assert str(server.folder) not in str(caught.value)
        server.ask("CONFIG SET maxmemory 0")
        await store.run("note", SESSION.tag, "C1/T1", "label", "text", 10, 60)
        await store.close()


@pytest.mark.parametrize("is_cluster", [False, True])
async def test_server_gone_is_an_error_and_its_return_is_enough(
    tmp_path: Path, is_cluster: bool
) -> None:
    with serve(cluster=is_cluster) as server:
        store = await Store.open(server.url, tmp_path)
        await store.run("read", SESSION.tag, SESSION.key, "C1", "U1", 60)
        server.stop()
        assert not await store.is_healthy()
        with pytest.raises(StoreError, match="does not answer") as caught:
            await store.run("read", SESSION.tag, SESSION.key, "C1", "U1", 60)
        assert str(server.folder) not in str(caught.value)
        server.restart()
        assert await store.run("read", SESSION.tag, SESSION.key, "C1", "U1", 60) == [0, []]
        await store.close()


async def test_restart_under_way_is_waited_for(tmp_path: Path) -> None:
    with serve() as server:
        store = await Store.open(server.url, tmp_path)
        await store.run("read", SESSION.tag, SESSION.key, "C1", "U1", 60)
        server.stop()
        reading = asyncio.create_task(store.run("read", SESSION.tag, SESSION.key, "C1", "U1", 60))
        await asyncio.to_thread(server.restart)
        assert await reading == [0, []]
        await store.close()


async def test_a_cancelled_caller_disturbs_nobody(store: Store) -> None:
    calls = [
        asyncio.create_task(store.run("read", SESSION.tag, SESSION.key, "C1", "U1", 60))
        for _ in range(20)
    ]
    await asyncio.sleep(0)
    for call in calls[::2]:
        call.cancel()
    results = await asyncio.gather(*calls, return_exceptions=True)
    assert results[1::2] == [[0, []]] * 10
    assert all(isinstance(result, asyncio.CancelledError) for result in results[::2])


def _closed_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


async def test_nothing_there_names_host_and_port_but_no_password(tmp_path: Path) -> None:
    port = _closed_port()
    with pytest.raises(ConfigError) as caught:
        await Store.open(f"redis://someone:s3cr3t@127.0.0.1:{port}/0", tmp_path)
    text = str(caught.value)
    assert f"127.0.0.1:{port}" in text
    assert "s3cr3t" not in text
    assert "someone" not in text


@pytest.mark.parametrize(
    "url",
    ["rediss://s3cr3t@h:6379", "redis://:s3/cr3t@h:6379", "localhost:6379", "http://:s3cr3t@h"],
)
async def test_a_wrong_url_is_answered_with_the_right_form(url: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="PASSWORD@HOST") as caught:
        await Store.open(url, tmp_path)
    assert "s3cr3t" not in str(caught.value)
    assert caught.value.__cause__ is None


async def test_a_wrong_password_is_said_and_not_shown(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    with serve("--requirepass", "right") as server:
        for url in (f"unix://:s3cr3t@{server.folder}/s", server.url):
            with pytest.raises(ConfigError, match="refuses the user or password") as caught:
                await Store.open(url, tmp_path)
            assert "s3cr3t" not in str(caught.value) + caplog.text


async def test_eviction_is_warned_about(
    redis_server: Server, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    redis_server.ask("CONFIG SET maxmemory-policy allkeys-lru")
    try:
        store = await Store.open(redis_server.url, tmp_path)
        await store.close()
    finally:
        redis_server.ask("CONFIG SET maxmemory-policy noeviction")
    assert "noeviction" in caplog.text
