"""Owns the values that go into the index and come out of it.

It must not know the engine.
"""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class FileEntry:
    """A file as indexed. `reason` is why it has no passages; None when it has some.

    `language` is a two-letter code, or None when it cannot be told.
    """

    path: str
    size: int
    stamp: int
    fingerprint: str
    title: str
    passages: int
    language: str | None = None
    reason: str | None = None


@dataclass(frozen=True, slots=True)
class Row:
    """A passage as stored. `key` names its content for the cache of vectors."""

    path: str
    title: str
    heading: str
    text: str
    line: int
    page: int | None
    key: int


@dataclass(frozen=True, slots=True)
class Draft:
    """A passage on its way in, with the text of its tokens joined by spaces."""

    row: Row
    tokens: str
    title_tokens: str
