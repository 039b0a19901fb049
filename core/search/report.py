"""Owns what a refresh tells: counts, what was skipped and why, how far it is.

It must not know how files are found or read.
"""

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True)
class Skipped:
    """A file that is not searchable. `reason` is a short phrase for people."""

    path: str
    reason: str


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a refresh is. `done` and `total` count files, or passages when embedding."""

    stage: Literal["reading", "embedding"]
    done: int
    total: int


@dataclass(frozen=True, slots=True)
class IndexReport:
    """What one refresh did. `passages` counts all that are searchable afterwards.

    `is_follower` says that another process was writing, so this one only took over its work.
    """

    added: int
    changed: int
    deleted: int
    unchanged: int
    passages: int
    skipped: tuple[Skipped, ...]
    duration_ms: int
    is_follower: bool = False
