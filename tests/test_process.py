"""The life of a process: it ends when it is told to, whatever it is at."""

import asyncio
import subprocess
import sys
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from bots.process import EXIT_FAILED, EXIT_OK
from tests.support_redis import Server

pytest_plugins = ("tests.support_redis_fixtures",)

ROOT = Path(__file__).resolve().parent.parent

# A process with a platform of its own, which hangs where it is told to.
SCRIPT = """
import asyncio, sys
from pathlib import Path
import bots.process
from core.config import Settings

if sys.argv[3] in ("close", "left behind"):
    bots.process.LAST_RESORT_S = 1.0

class Link:
    platform, workspaces = "test", ("W1",)
    adapter = property(lambda self: self)

    async def open(self):
        if sys.argv[3] == "open":
            print("hangs", flush=True)
            await asyncio.Event().wait()
        print("open", flush=True)

    async def is_alive(self):
        return True

    async def pause(self): pass

    async def deaf(self):
        while True:
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                print("deaf", flush=True)

    async def close(self):
        if sys.argv[3] == "left behind":
            self.task = asyncio.create_task(self.deaf())
            await asyncio.sleep(0)
        if sys.argv[3] == "close":
            await self.deaf()

async def check():
    return []

async def connect(app):
    return Link()

settings = Settings(
    redis_url=sys.argv[1], data_dir=Path(sys.argv[2]), docs_path=Path("examples/help-center"),
    grace_s=0, health_port=None, search_by_meaning=False,
)
sys.exit(bots.process.run_process(settings, check, connect))
"""

Start = Callable[[str], Awaitable["subprocess.Popen[str]"]]


@pytest.fixture
async def start(redis_server: Server, tmp_path: Path) -> AsyncGenerator[Start]:
    """Starts a process that hangs where it is told to, and returns when it has said a line."""
    async with _starting(redis_server.url, tmp_path) as begin:
        yield begin


@asynccontextmanager
async def _starting(url: str, folder: Path) -> AsyncGenerator[Start]:
    started: list[subprocess.Popen[str]] = []

    def run(where: str) -> "subprocess.Popen[str]":
        command = [sys.executable, "-c", SCRIPT, url, str(folder), where]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=ROOT)
        started.append(process)
        return process

    async def begin(where: str) -> "subprocess.Popen[str]":
        process = run(where)
        assert process.stdout is not None
        assert await asyncio.to_thread(process.stdout.readline) in ("hangs\n", "open\n")
        return process

    try:
        yield begin
    finally:
        for process in started:
            process.kill()
            process.communicate()


async def _end(process: "subprocess.Popen[str]") -> int:
    process.terminate()
    return await asyncio.to_thread(process.wait, 30)


async def test_told_to_stop_it_ends(start: Start) -> None:
    assert await _end(await start("nowhere")) == EXIT_OK


async def test_told_to_stop_while_it_connects_it_ends(start: Start) -> None:
    assert await _end(await start("open")) == EXIT_OK


async def test_a_task_that_is_left_behind_does_not_keep_the_process(start: Start) -> None:
    assert await _end(await start("left behind")) == EXIT_FAILED


async def test_what_hangs_at_the_end_does_not_keep_the_process(start: Start) -> None:
    assert await _end(await start("close")) == EXIT_FAILED
