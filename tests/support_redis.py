"""Real servers for tests, single or a cluster of one node; messages; a look at every key."""

import contextlib
import itertools
import os
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Callable, Generator
from pathlib import Path
from typing import Any

from core import keys
from core.embedded import find_binary
from core.history import Turn, trim, turn_from_json
from core.store import Store
from core.types import Author, Conversation, Message, Session

_numbers = itertools.count(1)


class Server:
    """A server process of the tests' own; `url` is what a Store opens."""

    def __init__(
        self, folder: Path, *flags: str, cluster: bool = False, binary: str | None = None
    ) -> None:
        self.folder = folder
        self._binary = binary or find_binary()
        self.port = _free_port() if cluster else 0
        self._flags = flags
        self._cluster = cluster
        self.process = self._start()

    @property
    def url(self) -> str:
        return f"redis://127.0.0.1:{self.port}/0" if self._cluster else f"unix://{self.folder}/s"

    def _start(self) -> subprocess.Popen[bytes]:
        flags = ["--dir", str(self.folder), "--save", "", "--port", str(self.port), *self._flags]
        if self._cluster:
            # The bus would take port + 10000, which may be above the highest port there is.
            flags += ["--cluster-enabled", "yes", "--cluster-port", str(_free_port())]
        else:
            flags += ["--unixsocket", f"{self.folder}/s"]
        with (self.folder / "log").open("ab") as log:
            process = subprocess.Popen([self._binary, *flags], stdout=log, stderr=log)
        wait_for(lambda: self.ask("PING").startswith(("+PONG", "-NOAUTH")))
        if self._cluster:
            self.ask("CLUSTER ADDSLOTSRANGE 0 16383")
            wait_for(lambda: "cluster_state:ok" in self.ask("CLUSTER INFO"))
        return process

    def ask(self, command: str) -> str:
        """The raw reply to one inline command; "" when the server does not answer."""
        with contextlib.suppress(OSError), contextlib.closing(self._connect()) as link:
            link.sendall(command.encode() + b"\r\n")
            return link.recv(1_000_000).decode().strip()
        return ""

    def _connect(self) -> socket.socket:
        if self._cluster:
            return socket.create_connection(("127.0.0.1", self.port), 5)
        link = socket.socket(socket.AF_UNIX)
        try:
            link.settimeout(5)
            link.connect(f"{self.folder}/s")
        except OSError:
            link.close()
            raise
        return link

    def restart(self) -> None:
        self.stop()
        self.process = self._start()

    def stop(self) -> None:
        self.process.kill()
        self.process.wait()


@contextlib.contextmanager
def serve(*flags: str, cluster: bool = False, binary: str | None = None) -> Generator[Server]:
    """A server until the block ends; of the embedded kind unless another `binary` is named."""
    folder = Path(tempfile.mkdtemp(prefix="fn-"))
    server = Server(folder, *flags, cluster=cluster, binary=binary)
    try:
        yield server
    finally:
        server.stop()
        shutil.rmtree(folder, ignore_errors=True)


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def wait_for(check: Callable[[], Any], timeout_s: float = 10.0) -> None:
    """Returns once `check` holds; for what is not on an event loop."""
    deadline = time.monotonic() + timeout_s
    while not check():
        assert time.monotonic() < deadline, "it never came true"
        time.sleep(0.01)


async def dump(store: Store) -> dict[bytes, bytes]:
    """Every key with its whole value, serialised by the server: equal dumps are equal data."""
    keys = [key async for key in store.client.scan_iter(count=1000)]
    return {key: await store.client.dump(key) for key in keys}


async def texts(store: Store) -> dict[str, str]:
    """Every key with all that it holds, as readable text."""
    found: dict[str, str] = {}
    async for key in store.client.scan_iter(count=1000):
        kind = (await store.client.type(key)).decode()
        if kind == "none":  # a bot that runs beside us has deleted it meanwhile
            continue
        readers: dict[str, Callable[[], Any]] = {
            "string": lambda key=key: store.client.get(key),
            "hash": lambda key=key: store.client.hgetall(key),
            "list": lambda key=key: store.client.lrange(key, 0, -1),
            "set": lambda key=key: store.client.smembers(key),
            "zset": lambda key=key: store.client.zrange(key, 0, -1, withscores=True),
            "stream": lambda key=key: store.client.xrange(key),
        }
        found[key.decode()] = str(await readers[kind]())
    return found


def a_session(user: str = "U1", channel: str = "C1", workspace: str = "W1") -> Session:
    return Session("test", workspace, channel, user)


def a_message(
    text: str = "hello",
    *,
    user: str = "U1",
    channel: str = "C1",
    thread: str = "T1",
    workspace: str = "W1",
    message_id: str | None = None,
    reply_to: str | None = None,
    needs_engaged: bool = False,
) -> Message:
    """A message with an id of its own."""
    return Message(
        id=message_id or f"m{os.getpid()}-{next(_numbers)}",
        conversation=Conversation("test", workspace, channel, thread),
        session=a_session(user, channel, workspace),
        author=Author(user, f"name of {user}"),
        text=text,
        sent_at=1_700_000_000.25,
        reply_to=reply_to,
        needs_engaged=needs_engaged,
    )


class History:
    """Reads transcripts as they are kept, for a look beside the inbox."""

    def __init__(self, store: Store) -> None:
        self._store = store

    async def read(self, conversation: Conversation, max_tokens: int) -> list[Turn]:
        """The newest turns within `max_tokens`; `conversation` may be named by an alias."""
        client = self._store.client
        known = await client.get(keys.alias(conversation))
        name = known.decode() if known else conversation.key
        items = await client.lrange(f"{keys.root(conversation.tag)}:hist:{name}", 0, -1)
        return trim([turn_from_json(item) for item in items], max_tokens)
