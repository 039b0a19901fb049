"""Owns what a file becomes: a title and its passages, or the reason why it is not searchable.

It must not know how passages are stored or ranked.
"""

import hashlib
import re
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from core.search.folder import Folder
from core.search.markdown import cut_markdown
from core.search.pieces import Outline, cut_text

VERSION = 1
"""Raised when the same file gives other passages, so that indexes made before are rebuilt."""

MARKDOWN_SUFFIXES = frozenset({".md", ".markdown", ".mdx"})
TEXT_SUFFIXES = frozenset({".txt", ".text"})
SUFFIXES = MARKDOWN_SUFFIXES | TEXT_SUFFIXES
MAX_FILE_BYTES = 20_000_000


class Unreadable(Exception):
    """A file cannot be made searchable; the text is the reason, a short phrase for people."""


@dataclass(frozen=True, slots=True)
class Part:
    """A passage before it has an address. `page` is set for paged formats."""

    heading: str
    text: str
    line: int
    page: int | None = None


@dataclass(frozen=True, slots=True)
class Parsed:
    """A document's title, its parts, and the fingerprint of the bytes they came from."""

    title: str
    parts: tuple[Part, ...]
    fingerprint: str


def fingerprint(data: bytes) -> str:
    """Equal for equal content, whatever the file's name and times."""
    return hashlib.blake2b(data, digest_size=16).hexdigest()


def read_bytes(file: Path) -> bytes:
    """A file's content.

    Raises:
        Unreadable: empty, too large, or the system refuses.
    """
    try:
        if file.stat().st_size > MAX_FILE_BYTES:
            raise Unreadable(f"too large (over {MAX_FILE_BYTES // 1_000_000} MB)")
        data = file.read_bytes()
    except OSError as err:
        raise Unreadable(f"cannot be read: {(err.strerror or 'unknown fault').lower()}") from err
    if not data.strip():
        raise Unreadable("empty")
    return data


def decode(data: bytes) -> str:
    """Text of `data`.

    Raises:
        Unreadable: it is not text.
    """
    if b"\x00" in data:
        raise Unreadable("binary")
    return data.decode("utf-8-sig", errors="replace")


def text_of(folder: Folder, path: str, data: bytes) -> str:
    """The whole text of a file, as `read` shows it.

    Raises:
        Unreadable: there is none.
    """
    del folder, path
    return decode(data)


def parse(folder: Folder, path: str, data: bytes) -> Parsed:
    """What the file `path` with the content `data` says.

    Raises:
        Unreadable: nothing that could be searched.
    """
    text = text_of(folder, path, data)
    is_markdown = PurePosixPath(path).suffix.lower() in MARKDOWN_SUFFIXES
    outline: Outline = cut_markdown(text) if is_markdown else cut_text(text)
    title = outline.title or title_of(path)
    parts = tuple(Part(piece.heading, piece.text, piece.line) for piece in outline.pieces)
    if not parts:
        raise Unreadable("empty")
    return Parsed(title, parts, fingerprint(data))


def title_of(path: str) -> str:
    """A title made from a file's name: "reset-password.md" → "Reset password".

    Source and config files, read because they were named, keep their names.
    """
    stem = PurePosixPath(path).stem
    if PurePosixPath(path).suffix.lower() not in SUFFIXES:
        return PurePosixPath(path).name
    words = re.sub(r"[-_]+", " ", stem).strip() or stem
    return words[0].upper() + words[1:] if words.islower() else words
