"""Owns which model is asked for the meaning of a question, and how far it is trusted.

It must not know how passages are stored or ranked. Everything here blocks.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from core.search.embedder import Embedder
from core.search.embedding import Embeddings
from core.search.finder import Meaning
from core.search.language import language_of
from core.search.report import Progress
from core.search.rows import FileEntry
from core.search.store import Snapshot

ENGLISH_WEIGHT = 0.65
"""Chosen on one half of the questions of four sets; bench/search.py reports the other half."""

FOREIGN_WEIGHT = 0.85
"""For a question in a language that no document is in: its words find names alone."""

OWN_WEIGHT = 0.5
"""For a question in a language other than English that documents are in, by the extra."""

GUESS_WEIGHT = 0.4
"""The same by the English model, which knows something of other Latin languages."""

_SPOKEN_SHARE = 0.1
_MIN_EMBEDDED = 0.5
"""Share of passages with a vector from which meaning is asked."""


@dataclass(frozen=True, slots=True)
class Languages:
    """What a library is written in: each language's share of its passages, and their number."""

    shares: Mapping[str, float]
    passages: int

    @classmethod
    def of(cls, entries: Iterable[FileEntry]) -> "Languages":
        """The languages of these files; those that cannot be told count for none."""
        counts: Counter[str] = Counter()
        passages = 0
        for entry in entries:
            passages += entry.passages
            if entry.language:
                counts[entry.language] += entry.passages
        told = sum(counts.values()) or 1
        return cls({name: count / told for name, count in counts.items()}, passages)

    @property
    def main(self) -> str:
        """The commonest; English where nothing can be told."""
        return max(self.shares, key=lambda name: self.shares[name], default="en")

    def has(self, language: str) -> bool:
        """Whether a part worth the name is in `language`."""
        return self.shares.get(language, 0.0) >= _SPOKEN_SHARE or language == self.main


class Meanings:
    """The models of one index: the English one, and the multilingual one where it is installed."""

    def __init__(self, home: Path, english: Embedder, multilingual: Embedder | None) -> None:
        self._english = english
        self._multilingual = multilingual
        self._embeddings = {
            embedder.id: Embeddings(home, embedder)
            for embedder in (english, multilingual)
            if embedder is not None
        }

    @property
    def is_down(self) -> bool:
        """Whether a model failed the last time it was asked."""
        return any(embeddings.is_down for embeddings in self._embeddings.values())

    def fill(
        self,
        snapshot: Snapshot,
        should_stop: Callable[[], bool],
        on_progress: Callable[[Progress], None],
    ) -> bool:
        """Embed what is missing; whether nothing is missing then. See `Embeddings.fill`."""
        done = [
            embeddings.fill(snapshot, should_stop, on_progress)
            for embeddings in self._embeddings.values()
        ]
        return all(done)

    def ask(self, query: str, languages: Languages) -> Meaning | None:
        """The dense side of a question; None when its words must do."""
        embedder, weight = self._route(query, languages)
        embeddings = self._embeddings[embedder.id]
        table = embeddings.table()
        if not len(table) or len(table) < _MIN_EMBEDDED * languages.passages:
            return None
        vector = embeddings.query(query)
        if vector is None:
            return None
        return Meaning(vector, table, weight, embedder.good, embedder.least)

    def _route(self, query: str, languages: Languages) -> tuple[Embedder, float]:
        """The model for a question, and its weight."""
        asked = language_of(query) or languages.main
        is_spoken = languages.has(asked)
        if asked == "en" and is_spoken:
            return self._english, ENGLISH_WEIGHT
        if self._multilingual is not None:
            return self._multilingual, OWN_WEIGHT if is_spoken else FOREIGN_WEIGHT
        return self._english, GUESS_WEIGHT if is_spoken else ENGLISH_WEIGHT
