"""Owns that passages get their vectors: what is missing is embedded, once, by one process.

It must not know ranking. Everything here blocks and runs in a thread.
"""

import logging
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

from core.search.embedder import Embedder, Vectors
from core.search.locks import try_lock
from core.search.markdown import plain
from core.search.report import Progress
from core.search.rows import Row
from core.search.store import Snapshot
from core.search.vectors import Vector, VectorCache, VectorTable
from core.search.weights import EmbedderDown

log = logging.getLogger(__name__)


class Embeddings:
    """The vectors of one index by one model."""

    def __init__(self, folder: Path, embedder: Embedder) -> None:
        self._embedder = embedder
        self._cache = VectorCache(folder / f"{embedder.id}.vec", embedder.dims)
        self._lock = folder / f"{embedder.id}.lock"
        self._is_down = False

    def table(self) -> VectorTable:
        """The vectors there are now."""
        return self._cache.table()

    def missing(self, snapshot: Snapshot) -> list[int]:
        """The content keys of passages without a vector, each once."""
        keys = list(dict.fromkeys(snapshot.keys()))
        rows = self.table().find(keys)
        return [key for key, row in zip(keys, rows, strict=True) if row < 0]

    def query(self, text: str) -> Vector | None:
        """The vector of a question; None in a language that the model does not know.

        Also None when the model is down, which is logged once.
        """
        if not self._embedder.understands(text):
            return None
        try:
            return self._embed([text])[0]
        except EmbedderDown as err:
            self._note(err)
            return None

    def fill(
        self,
        snapshot: Snapshot,
        should_stop: Callable[[], bool],
        on_progress: Callable[[Progress], None],
    ) -> bool:
        """Embed what `snapshot` has and the cache has not; whether nothing is missing then.

        Does nothing while another process is at it.
        """
        with try_lock(self._lock) as is_mine:
            if not is_mine:
                return False
            missing = self.missing(snapshot)
            if not missing:
                self._cache.compact(snapshot.keys())
                return True
            on_progress(Progress("embedding", 0, len(missing)))
            # What is between two writes to disk is what a crash or a wish to stop costs.
            step = self._embedder.step
            for first in range(0, len(missing), step):
                if should_stop():
                    return False
                rows = snapshot.rows(missing[first : first + step])
                try:
                    vectors = self._passages([embedded_text(row) for row in rows])
                except EmbedderDown as err:
                    self._note(err)
                    return False
                self._cache.append([row.key for row in rows], vectors)
                done = min(first + step, len(missing))
                on_progress(Progress("embedding", done, len(missing)))
            return True

    @property
    def is_down(self) -> bool:
        """Whether the model failed the last time it was asked."""
        return self._is_down

    def _embed(self, texts: Sequence[str]) -> Vectors:
        vectors = self._embedder.embed(texts)
        self._is_down = False
        return vectors

    def _passages(self, texts: Sequence[str]) -> Vectors:
        """Rows for `texts`, of zeros where the model does not know the language."""
        known = [at for at, text in enumerate(texts) if self._embedder.understands(text)]
        vectors = np.zeros((len(texts), self._embedder.dims), np.float32)
        if known:
            vectors[known] = self._embed([texts[at] for at in known])
        return vectors

    def _note(self, err: EmbedderDown) -> None:
        if not self._is_down:
            log.warning("searching by words alone: %s", err)
        self._is_down = True


def embedded_text(row: Row) -> str:
    """What stands for a passage: its title, its heading path and its text as it reads."""
    return "\n".join(part for part in (row.title, row.heading, plain(row.text)) if part)
