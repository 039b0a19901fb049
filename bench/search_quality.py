"""How well search finds: by words, by meaning, by both, on sets with known answers.

Weights of the fusion are tried on every second question, and the one chosen is reported on the
others beside the weight that the product uses.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from bench.search_sets import EvalSet
from core.search.analyzer import Analyzer
from core.search.embedder import Embedder, Vectors
from core.search.embedding import Embeddings
from core.search.evaluate import TOP, ndcg
from core.search.finder import CANDIDATES, Meaning, rank, terms_of
from core.search.refresh import draft
from core.search.report import Progress
from core.search.rows import FileEntry
from core.search.store import Snapshot, Store

WEIGHTS = (0.5, 0.55, 0.6, 0.65, 0.7, 0.8)
_DEPTH = 3 * CANDIDATES

Scores = tuple[float, float]
"""nDCG@10 and the share of questions with a right passage in the top 3."""


@dataclass(frozen=True, slots=True)
class Judged:
    """A set in an index of its own, with the vector of every question."""

    given: EvalSet
    snapshot: Snapshot
    analyzer: Analyzer
    embedder: Embedder
    embeddings: Embeddings

    def scores(self, weight: float, every_second: int | None = None) -> Scores:
        """`weight` 0 asks for words alone, 1 for meaning alone; `every_second`: 0 even, 1 odd."""
        gain = top = count = 0.0
        for at, query in enumerate(self.given.queries):
            if every_second is not None and at % 2 != every_second:
                continue
            meaning = self._meaning(query.text, weight) if weight else None
            terms = terms_of(query.text, self.analyzer)
            ranked = rank(terms, CANDIDATES, self.snapshot, meaning)[:_DEPTH]
            ids = [self.snapshot.fetch(item.match).path.split("#")[0] for item in ranked[:60]]
            distinct = list(dict.fromkeys(ids))
            gain += ndcg(distinct, query.relevant)
            first = distinct if self.given.has_long_documents else ids
            top += bool(set(first[:TOP]) & query.relevant)
            count += 1
        return gain / count, top / count

    def _meaning(self, text: str, weight: float) -> Meaning | None:
        vector = self.embeddings.query(text)
        if vector is None:
            return None
        table = self.embeddings.table()
        return Meaning(vector, table, weight, self.embedder.good, self.embedder.least)


def judge(
    given: EvalSet, home: Path, embedder: Embedder, on_progress: Callable[[Progress], None]
) -> Judged:
    """`given` indexed under `home`; vectors that are there already are used again."""
    folder = home / given.name.replace(" ", "-").replace("+", "-")
    analyzer = Analyzer()
    store = Store(folder / "index")
    if not store.snapshot()[0].size:
        with store.write(lambda: False) as writer:
            for number, (name, title, parts) in enumerate(given.documents):
                # One id may have several passages of its own, which are entries to the store.
                path = f"{name}#{number}"
                entry = FileEntry(path, 0, 1, "", title, len(parts))
                writer.add(entry, [draft(analyzer, path, title, part) for part in parts])
    snapshot = store.snapshot()[0]
    embeddings = Embeddings(folder, Remembering(embedder))
    embeddings.fill(snapshot, lambda: False, on_progress)
    return Judged(given, snapshot, analyzer, embedder, embeddings)


class Remembering:
    """An embedder that asks for each single text once: weights are tried many times."""

    def __init__(self, embedder: Embedder) -> None:
        self._embedder = embedder
        self._known: dict[str, Vectors] = {}
        self.id, self.dims, self.step = embedder.id, embedder.dims, embedder.step
        self.good, self.least = embedder.good, embedder.least
        self.understands = embedder.understands

    def embed(self, texts: Sequence[str]) -> Vectors:
        """One row of length 1 for each text."""
        if len(texts) != 1:
            return self._embedder.embed(texts)
        if texts[0] not in self._known:
            self._known[texts[0]] = self._embedder.embed(texts)
        return self._known[texts[0]]


def chosen_weight(
    judged: Sequence[Judged], goals: Mapping[str, Scores]
) -> tuple[float, list[Scores]]:
    """The weight that is furthest above all goals of nDCG on even questions; scores on the odd.

    Furthest at the set where it is nearest to its goal, so that no set pays for another.
    """

    def margin(weight: float) -> float:
        return min(
            item.scores(weight, 0)[0] - goals[item.given.name][0]
            for item in judged
            if item.given.name in goals
        )

    best = max(WEIGHTS, key=margin)
    return best, [item.scores(best, 1) for item in judged]
