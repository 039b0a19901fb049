"""Owns the walk over the documents' folder: which files there are, and that none is outside it.

It must not know what is inside a file.
"""

import fnmatch
import os
import re
import stat
import time
from dataclasses import dataclass
from pathlib import Path

from core.errors import SearchError
from core.search.report import Skipped

IGNORED_FOLDERS = frozenset({"node_modules", "__pycache__", "site-packages"})
ARCHIVES = frozenset(
    {".zip", ".tar", ".gz", ".tgz", ".bz2", ".xz", ".7z", ".rar", ".zst", ".jar", ".whl", ".iso"}
)
_RACY_S = 0.1


@dataclass(frozen=True, slots=True)
class FileStamp:
    """A file as the walk saw it. `stamp` changes when its content may have; 0: look inside."""

    path: str
    size: int
    stamp: int


def require_root(root: Path) -> Path:
    """`root` with its links resolved.

    Raises:
        SearchError: it does not exist or is no folder; the text names the setting.
    """
    if not root.exists():
        raise SearchError(f"DOCS_PATH names a folder that does not exist: {root}")
    if not root.is_dir():
        raise SearchError(f"DOCS_PATH must name a folder, but this is a file: {root}")
    return root.resolve()


class Folder:
    """The files under a root that have a readable type. Symlinks never lead outside.

    `suffixes` are those read by default; `include` adds glob patterns, separated by commas or
    spaces, of files to read as text.
    """

    def __init__(self, root: Path, suffixes: frozenset[str], include: str = "") -> None:
        self.root = root
        self._suffixes = suffixes
        self._patterns = tuple(pattern for pattern in re.split(r"[,\s]+", include) if pattern)

    def has_readable_type(self, path: str) -> bool:
        """Whether a file of this name is read: by its suffix, or by an included pattern."""
        return Path(path).suffix.lower() in self._suffixes or self.is_included(path)

    def is_included(self, path: str) -> bool:
        """Whether `include` names this file."""
        name = path.rsplit("/", 1)[-1]
        return any(
            fnmatch.fnmatchcase(name, pattern) or fnmatch.fnmatchcase(path, pattern)
            for pattern in self._patterns
        )

    def types(self) -> str:
        """The readable types, as a phrase for people."""
        return ", ".join([*sorted(self._suffixes), *self._patterns])

    def scan(self) -> tuple[dict[str, FileStamp], tuple[Skipped, ...]]:
        """All readable files by path, and what was refused for where it leads or what it is.

        Files of other types are not named: a folder of code holds thousands.
        """
        files: dict[str, FileStamp] = {}
        links: list[tuple[str, Path]] = []
        skipped: list[Skipped] = []
        real_files: set[tuple[int, int]] = set()
        seen_folders: set[tuple[int, int]] = set()
        now_ns = time.time_ns()

        def add(path: str, status: os.stat_result) -> None:
            # A file written a moment ago may be written again within one tick of its clock.
            is_racy = now_ns - status.st_mtime_ns < _RACY_S * 1e9
            stamp = 0 if is_racy else status.st_mtime_ns
            files[path] = FileStamp(path, status.st_size, stamp)

        def walk(folder: Path, prefix: str) -> None:
            try:
                status = folder.stat()
                if (status.st_dev, status.st_ino) in seen_folders:
                    return
                seen_folders.add((status.st_dev, status.st_ino))
                entries = sorted(os.scandir(folder), key=lambda entry: entry.name)
            except OSError as err:
                skipped.append(Skipped(prefix.rstrip("/") or ".", f"cannot be read: {_why(err)}"))
                return
            for entry in entries:
                if entry.name.startswith(".") or entry.name in IGNORED_FOLDERS:
                    continue
                path = prefix + entry.name
                if not _is_utf8(path):
                    shown = path.encode(errors="replace").decode()
                    skipped.append(Skipped(shown, "a name that is not UTF-8"))
                    continue
                try:
                    if entry.is_symlink():
                        links.append((path, Path(entry.path)))
                    elif entry.is_dir(follow_symlinks=False):
                        walk(Path(entry.path), f"{path}/")
                    elif entry.is_file(follow_symlinks=False):
                        if self.has_readable_type(path):
                            status = entry.stat(follow_symlinks=False)
                            real_files.add((status.st_dev, status.st_ino))
                            add(path, status)
                        elif Path(path).suffix.lower() in ARCHIVES:
                            skipped.append(Skipped(path, "an archive, which is not opened"))
                except OSError as err:
                    skipped.append(Skipped(path, f"cannot be read: {_why(err)}"))

        walk(self.root, "")
        # After the real files, so that a link to one of them adds no second copy.
        while links:
            path, link = links.pop(0)
            try:
                target = link.resolve(strict=True)
                status = target.stat()
            except (OSError, RuntimeError):
                skipped.append(Skipped(path, "a link that leads nowhere"))
                continue
            if not target.is_relative_to(self.root):
                skipped.append(Skipped(path, "a link that leads outside the documents' folder"))
            elif stat.S_ISDIR(status.st_mode):
                walk(target, f"{path}/")
            elif (
                stat.S_ISREG(status.st_mode)
                and self.has_readable_type(path)
                and (status.st_dev, status.st_ino) not in real_files
            ):
                real_files.add((status.st_dev, status.st_ino))
                add(path, status)
        return files, tuple(skipped)

    def resolve(self, path: str) -> Path | None:
        """The real file of a relative `path`; None when there is none, or it is outside."""
        if not path or "\x00" in path:
            return None
        try:
            target = (self.root / path).resolve(strict=True)
        except (OSError, RuntimeError, ValueError):
            return None
        return target if target.is_relative_to(self.root) and target.is_file() else None


def _is_utf8(path: str) -> bool:
    try:
        path.encode()
    except UnicodeEncodeError:
        return False
    return True


def _why(err: OSError) -> str:
    return (err.strerror or "unknown fault").lower()
