"""Owns what a file becomes: a title and its passages, or the reason why it is not searchable.

It must not know how passages are stored or ranked.
"""

import hashlib
import re
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from core.search import formats
from core.search.formats import Content, Unreadable
from core.search.language import language_of
from core.search.markdown import cut_markdown
from core.search.pieces import Outline, cut_text

VERSION = 4
"""Raised when the same file gives other passages, so that indexes made before are rebuilt."""

MARKDOWN_SUFFIXES = frozenset({".md", ".markdown", ".mdx"})
TEXT_SUFFIXES = frozenset({".txt", ".text"})
HTML_SUFFIXES = frozenset({".html", ".htm", ".xhtml"})
SUFFIXES = MARKDOWN_SUFFIXES | TEXT_SUFFIXES | HTML_SUFFIXES | {".pdf", ".docx"}
MAX_FILE_BYTES = 50_000_000
MAX_TEXT_BYTES = 10_000_000
_SAMPLE_PARTS = 3


@dataclass(frozen=True, slots=True)
class Part:
    """A passage before it has an address. `page` is set for paged formats."""

    heading: str
    text: str
    line: int
    page: int | None = None


@dataclass(frozen=True, slots=True)
class Parsed:
    """A document's title, its parts, and its language where that can be told."""

    title: str
    parts: tuple[Part, ...]
    language: str | None


def fingerprint(data: bytes) -> str:
    """Equal for equal content, whatever the file's name and times."""
    return hashlib.blake2b(data, digest_size=16).hexdigest()


def read_bytes(file: Path) -> bytes:
    """A file's content.

    Raises:
        Unreadable: empty, too large, or the system refuses.
    """
    is_binary = file.suffix.lower() in (".pdf", ".docx")
    limit = MAX_FILE_BYTES if is_binary else MAX_TEXT_BYTES
    try:
        with file.open("rb") as opened:
            # One byte more than allowed, so that a file that grows meanwhile is noticed too.
            data = opened.read(limit + 1)
    except OSError as err:
        raise Unreadable(f"cannot be read: {(err.strerror or 'unknown fault').lower()}") from err
    if len(data) > limit:
        raise Unreadable(f"too large (over {limit // 1_000_000} MB)")
    if not data.strip(b" \t\r\n\xef\xbb\xbf"):
        raise Unreadable("empty")
    return data


def content_of(path: str, data: bytes) -> Content:
    """The whole text of a file of this name.

    Raises:
        Unreadable: there is none.
    """
    suffix = PurePosixPath(path).suffix.lower()
    if suffix == ".pdf":
        return formats.from_pdf(data)
    if suffix == ".docx":
        return formats.from_docx(data)
    if suffix in HTML_SUFFIXES:
        return formats.from_html(data)
    return Content(formats.decode(data), is_markdown=suffix in MARKDOWN_SUFFIXES)


def parse(path: str, data: bytes) -> Parsed:
    """What the file `path` with the content `data` says.

    Raises:
        Unreadable: nothing that could be searched.
    """
    content = content_of(path, data)
    title = content.title
    parts: list[Part] = []
    if content.pages:
        for page in content.pages:
            pieces = cut_text(page.text, page.line).pieces
            parts += [Part("", piece.text, piece.line, page.number) for piece in pieces]
    else:
        outline: Outline = (
            cut_markdown(content.text) if content.is_markdown else cut_text(content.text)
        )
        # A web page's own heading is better than its window title, which names the site too.
        title = outline.title or title
        parts += [Part(piece.heading, piece.text, piece.line) for piece in outline.pieces]
    if not parts:
        raise Unreadable("empty")
    sample = " ".join(part.text for part in parts[:_SAMPLE_PARTS])
    return Parsed(title or title_of(path), tuple(parts), language_of(sample))


def title_of(path: str) -> str:
    """A title made from a file's name: "reset-password.md" → "Reset password".

    Source and config files, read because they were named, keep their names.
    """
    stem = PurePosixPath(path).stem
    if PurePosixPath(path).suffix.lower() not in SUFFIXES:
        return PurePosixPath(path).name
    words = re.sub(r"[-_]+", " ", stem).strip() or stem
    return words[0].upper() + words[1:] if words.islower() else words
