"""The embedded server: one for all processes of a folder, durable, private, gone when unused."""

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from core.embedded import Embedded
from core.errors import ConfigError
from core.store import Store
from tests.support import wait_until

# What a process of the bot does with the store, without the bot: opens, writes, waits for a line.
SCRIPT = """
import asyncio, sys
from pathlib import Path
from core.store import Store

async def main():
    store = await Store.open(None, Path(sys.argv[1]))
    info = await store.client.info("server")
    await store.client.incr("starts")
    print(info["process_id"], flush=True)
    await asyncio.to_thread(sys.stdin.readline)
    await store.close()

asyncio.run(main())
"""


@pytest.fixture
async def folder(tmp_path: Path) -> AsyncIterator[Path]:
    yield tmp_path
    if pid := Embedded(tmp_path).pid():
        os.kill(pid, signal.SIGKILL)


def _process(folder: Path) -> "subprocess.Popen[bytes]":
    return subprocess.Popen(
        [sys.executable, "-c", SCRIPT, str(folder)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )


async def test_data_outlives_a_clean_exit(folder: Path) -> None:
    store = await Store.open(None, folder)
    await store.client.set("kept", "yes")
    await store.close()
    assert Embedded(folder).pid() is None
    assert not await asyncio.to_thread(Path(Embedded(folder).socket_path).parent.exists)
    store = await Store.open(None, folder)
    assert await store.client.get("kept") == b"yes"
    await store.close()


async def test_server_stops_however_many_connections_it_had(folder: Path) -> None:
    for _ in range(10):
        store = await Store.open(None, folder)
        await asyncio.gather(*(store.client.ping() for _ in range(20)))
        await store.close()
        assert Embedded(folder).pid() is None


async def test_four_processes_share_one_server_and_the_last_one_stops_it(folder: Path) -> None:
    processes = [_process(folder) for _ in range(4)]
    pids = {process.stdout.readline() for process in processes if process.stdout}
    assert len(pids) == 1
    for number, process in enumerate(processes):
        assert Embedded(folder).pid() == int(next(iter(pids))), f"stopped before process {number}"
        await asyncio.to_thread(process.communicate, b"\n")
        assert process.returncode == 0
    assert Embedded(folder).pid() is None
    store = await Store.open(None, folder)
    assert await store.client.get("starts") == b"4"
    await store.close()


async def test_killed_server_is_started_again_with_its_data(folder: Path) -> None:
    store = await Store.open(None, folder)
    await store.run("note", "test/W1/0", "C1/T1", "label", "kept", 10, 600)
    first = Embedded(folder).pid()
    assert first
    os.kill(first, signal.SIGKILL)
    await asyncio.gather(
        *(store.run("note", "test/W1/0", "C1/T1", "label", f"{n}", 100, 600) for n in range(20))
    )
    assert await store.client.llen("{test/W1/0}:notes:C1/T1") == 21
    assert Embedded(folder).pid() not in (None, first)
    await store.close()


async def test_server_outlives_a_process_that_was_killed(folder: Path) -> None:
    process = _process(folder)
    assert process.stdout
    pid = int(process.stdout.readline())
    process.kill()
    process.communicate()
    assert Embedded(folder).pid() == pid
    store = await Store.open(None, folder)
    assert await store.client.get("starts") == b"1"
    await store.close()
    await wait_until(lambda: Embedded(folder).pid() is None)


async def test_folders_are_private(folder: Path) -> None:
    store = await Store.open(None, folder)
    socket_path = Path(Embedded(folder).socket_path)
    for place in (folder / "redis", socket_path.parent, socket_path):
        assert place.stat().st_mode & 0o077 == 0
    assert len(str(socket_path)) < 104
    await store.close()


async def test_no_second_server_while_the_first_hangs(folder: Path) -> None:
    store = await Store.open(None, folder)
    await store.client.set("kept", "yes")
    pid = Embedded(folder).pid()
    assert pid
    # Without its socket the server is alive and cannot be reached: the log is still its own.
    await asyncio.to_thread(Path(Embedded(folder).socket_path).unlink)
    starting = asyncio.create_task(asyncio.to_thread(Embedded(folder).ensure))
    await asyncio.wait([starting], timeout=0.3)
    assert not starting.done()
    os.kill(pid, signal.SIGKILL)
    await starting
    assert await store.client.get("kept") == b"yes"
    await store.close()


async def test_an_unusable_folder_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(ConfigError, match="DATA_DIR"):
        await Store.open(None, tmp_path / "file")


async def test_without_a_binary_redis_url_is_asked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda _name: None)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(ConfigError, match="REDIS_URL"):
        await Store.open(None, tmp_path)
