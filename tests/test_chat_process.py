"""Worker processes that are ended, killed and replaced: one answer each, in order, none lost."""

import asyncio
import json
import os
import signal
import sys
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import pytest

from core.inbox import Inbox
from core.store import Store
from core.types import Author, Conversation, Message, Session
from tests.fake_platform import PLATFORM, WORKSPACE, PlatformServer
from tests.support import wait_until

START_S = 30.0


class Site:
    """The platform, a Redis of its own, and the workers that serve it."""

    def __init__(self, folder: Path, platform: PlatformServer, store: Store) -> None:
        self.folder = folder
        self.platform = platform
        self.store = store
        self.inbox = Inbox(store)
        self.workers: list[asyncio.subprocess.Process] = []

    async def start(self, **settings: Any) -> asyncio.subprocess.Process:
        """A worker that is ready to take messages."""
        known = {"lease_s": 1.0, "grace_s": 0.3} | settings
        worker = await asyncio.create_subprocess_exec(
            sys.executable,
            *("-m", "tests.fake_platform", self.platform.url, ""),
            *(str(self.folder / "data"), json.dumps(known)),
            stdout=asyncio.subprocess.PIPE,
        )
        self.workers.append(worker)
        assert worker.stdout is not None
        async with asyncio.timeout(START_S):
            assert await worker.stdout.readline() == b"ready\n"
        return worker

    async def ask(self, text: str) -> None:
        where = Conversation(PLATFORM, WORKSPACE, "C1", "T1")
        session = Session(PLATFORM, WORKSPACE, "C1", "U1")
        await self.inbox.accept(Message(text, where, session, Author("U1", "U1"), text, 1.0))

    async def answered(self, *texts: str) -> None:
        """Waits until exactly these were finished, in this order."""
        await wait_until(lambda: len(self.platform.finished) >= len(texts), timeout_s=20)
        assert self.platform.finished == list(texts)
        assert sorted(self.platform.by_message) == sorted(texts)

    async def called(self, text: str, turn: int) -> None:
        """Waits until the model was asked."""
        await wait_until(lambda: (text, turn) in self.platform.model_calls, timeout_s=20)


@pytest.fixture
async def site(tmp_path: Path) -> AsyncGenerator[Site]:
    store = await Store.open(None, tmp_path / "data")
    async with PlatformServer() as platform:
        made = Site(tmp_path, platform, store)
        try:
            yield made
        finally:
            platform.release()
            for worker in made.workers:
                if worker.returncode is None:
                    worker.kill()
                await worker.wait()
            await store.close()


async def end(worker: asyncio.subprocess.Process) -> int:
    worker.send_signal(signal.SIGTERM)
    async with asyncio.timeout(10):
        return await worker.wait()


async def kill(worker: asyncio.subprocess.Process) -> None:
    worker.kill()
    await worker.wait()


async def test_sigterm_during_a_model_call_hands_over_and_nothing_blocks(site: Site) -> None:
    first = await site.start()
    site.platform.hold(1)
    await site.ask("one")
    await site.called("one", 1)
    assert await end(first) == 0
    site.platform.release()
    await site.start()
    await site.answered("one")
    await site.ask("two")
    await site.answered("one", "two")
    assert "after 2 messages" in site.platform.posts["p2"].text  # one pair of history, one question


async def test_sigterm_lets_an_answer_that_is_nearly_done_finish(site: Site) -> None:
    worker = await site.start(grace_s=10)
    site.platform.hold(2)
    await site.ask("one")
    await site.called("one", 2)
    worker.send_signal(signal.SIGTERM)
    site.platform.release()
    async with asyncio.timeout(10):
        assert await worker.wait() == 0
    assert site.platform.finished == ["one"]
    assert set(site.platform.model_calls.values()) == {1}


async def test_a_kill_in_the_second_turn_repeats_that_model_call_alone(site: Site) -> None:
    first = await site.start()
    site.platform.hold(2)
    await site.ask("one")
    await site.called("one", 2)
    await kill(first)
    site.platform.release()
    await site.start()
    await site.answered("one")
    assert site.platform.model_calls == {("one", 1): 1, ("one", 2): 2}


async def test_a_kill_between_reply_and_save_delivers_in_place(site: Site) -> None:
    first = await site.start()
    site.platform.hold(edits=True)
    await site.ask("one")
    await wait_until(lambda: site.platform.edits == 1, timeout_s=20)
    await kill(first)
    await site.ask("one")  # the platform delivers it again
    site.platform.release()
    await site.start()
    await site.answered("one")
    assert set(site.platform.model_calls.values()) == {1}
    assert len(site.platform.posts) == 1


async def test_a_frozen_worker_wakes_up_too_late_and_changes_nothing(site: Site) -> None:
    first = await site.start()
    site.platform.hold(2)
    await site.ask("one")
    await site.called("one", 2)
    first.send_signal(signal.SIGSTOP)
    second = await site.start()
    await wait_until(lambda: site.platform.model_calls[("one", 2)] == 2, timeout_s=20)
    first.send_signal(signal.SIGCONT)
    site.platform.release()
    await site.answered("one")
    await site.ask("two")
    await site.answered("one", "two")
    assert await end(first) == 0
    assert await end(second) == 0
    assert [post.finals for post in site.platform.posts.values()] == [1, 1]


async def test_two_workers_keep_the_order_of_one_conversation(site: Site) -> None:
    await site.start()
    await site.start()
    texts = [f"m{number}" for number in range(12)]
    for text in texts:
        await site.ask(text)
    await site.answered(*texts)


async def test_the_embedded_server_killed_under_way_loses_nothing(site: Site) -> None:
    await site.start()
    site.platform.hold(1)
    await site.ask("one")
    await site.called("one", 1)
    server = await site.store.client.info("server")
    os.kill(int(server["process_id"]), signal.SIGKILL)
    site.platform.release()
    await site.ask("two")
    await site.answered("one", "two")
