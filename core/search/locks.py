"""Owns a lock between processes that dies with its holder: one file, locked by the system.

It must not know what is being guarded.
"""

import os
import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def try_lock(path: Path) -> Generator[bool]:
    """Whether this process got the lock at `path`, held until the block ends. Never waits."""
    file = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
    try:
        yield _acquire(file)
    finally:
        # Closing releases; the file stays, since deleting it would let two processes in.
        os.close(file)


if sys.platform == "win32":
    import msvcrt

    def _acquire(file: int) -> bool:
        try:
            msvcrt.locking(file, msvcrt.LK_NBLCK, 1)
        except OSError:
            return False
        return True
else:
    import fcntl

    def _acquire(file: int) -> bool:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True
