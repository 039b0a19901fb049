"""A server between client and server that loses replies: the call is made, the answer is not."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from pathlib import Path

from tests.support_redis import Server


class Proxy:
    """Passes everything on; `lose` names words, in calls, whose next reply is lost."""

    def __init__(self, server: Server) -> None:
        self._target = f"{server.folder}/s"
        self._path = Path(f"{server.folder}/p")
        self.lose: list[bytes] = []
        self.lost = 0
        self._tasks: set[asyncio.Task[None]] = set()

    @property
    def url(self) -> str:
        return f"unix://{self._path}"

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        to_reader, to_writer = await asyncio.open_unix_connection(self._target)
        is_losing = asyncio.Event()

        async def forward() -> None:
            while data := await reader.read(1 << 20):
                for word in [word for word in self.lose if word in data]:
                    self.lose.remove(word)
                    is_losing.set()
                to_writer.write(data)

        async def back() -> None:
            while data := await to_reader.read(1 << 20):
                if is_losing.is_set():
                    self.lost += 1
                    return
                writer.write(data)

        ways = [asyncio.create_task(forward()), asyncio.create_task(back())]
        try:
            await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for way in ways:
                way.cancel()
            await asyncio.gather(*ways, return_exceptions=True)
            for end in (writer, to_writer):
                end.close()
                with contextlib.suppress(OSError):
                    await end.wait_closed()


@contextlib.asynccontextmanager
async def losing(server: Server) -> AsyncIterator[Proxy]:
    """A proxy before `server` until the block ends."""
    proxy = Proxy(server)
    listening = await asyncio.start_unix_server(proxy._serve, proxy._path)
    try:
        yield proxy
    finally:
        listening.close()
        await listening.wait_closed()
        for task in list(proxy._tasks):
            task.cancel()
        await asyncio.gather(*proxy._tasks, return_exceptions=True)
        proxy._path.unlink(missing_ok=True)
