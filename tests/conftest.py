"""What every test stands on: nothing leaves the machine, settings come from the test alone."""

import os
import socket
from collections.abc import Iterator
from typing import Any

import pytest

_REAL_CONNECT = socket.socket.connect
_REAL_CONNECT_EX = socket.socket.connect_ex
_LOOPBACK = ("127.", "::1", "localhost", "0.0.0.0", "::ffff:127.")


def _is_local(sock: socket.socket, address: Any) -> bool:
    return sock.family not in (socket.AF_INET, socket.AF_INET6) or str(address[0]).startswith(
        _LOOPBACK
    )


def _connect(sock: socket.socket, address: Any) -> None:
    if not _is_local(sock, address):
        raise AssertionError(f"a test tried to reach {address}")
    _REAL_CONNECT(sock, address)


def _connect_ex(sock: socket.socket, address: Any) -> int:
    if not _is_local(sock, address):
        raise AssertionError(f"a test tried to reach {address}")
    return _REAL_CONNECT_EX(sock, address)


@pytest.fixture(autouse=True, scope="session")
def _stay_on_loopback() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(socket.socket, "connect", _connect)
        patch.setattr(socket.socket, "connect_ex", _connect_ex)
        yield


@pytest.fixture(autouse=True)
def _clean_settings(
    monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """No test sees the developer's keys, `.env` or data."""
    prefixes = (
        "ANTHROPIC_",
        "SLACK_",
        "DISCORD_",
        "REDIS_",
        "DOCS_",
        "MAX_",
        "MEMORY_",
        "HISTORY_",
    )
    for name in list(os.environ):
        if name.startswith(prefixes) or name in ("MODEL", "OFFLINE", "DATA_DIR", "CITATIONS"):
            monkeypatch.delenv(name)
    from core.config import Settings

    monkeypatch.setitem(Settings.model_config, "env_file", None)
