"""Owns how one question is answered from one state of the index: by words, by meaning, by both.

It must not know files, nor how the index came about. Everything here blocks.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import islice

from core.search import ranking
from core.search.analyzer import Analyzer
from core.search.markdown import plain
from core.search.rows import Row
from core.search.store import Match, Snapshot
from core.search.vectors import Vector, VectorTable

CANDIDATES = 100
"""How many passages each side puts forward."""

TITLE_BOOST = 0.25
MAX_TERMS = 64
"""Of a pasted log or letter, the first terms alone are searched for."""


@dataclass(frozen=True, slots=True)
class Found:
    """A passage with its score, 0 to 1, and whether it clears the floor."""

    row: Row
    score: float
    is_good: bool


@dataclass(frozen=True, slots=True)
class Meaning:
    """The dense side: the question's vector, the passages' vectors, and how far to trust them.

    `good` and `least` are the model's floors, see `core.search.embedder.Embedder`.
    """

    vector: Vector
    table: VectorTable
    weight: float
    good: float
    least: float


@dataclass(frozen=True, slots=True)
class Ranked:
    """A candidate with its score, 0 to 1, and its cosine where it has one."""

    match: Match
    score: float
    cosine: float | None


def find(
    query: str,
    k: int,
    snapshot: Snapshot,
    analyzer: Analyzer,
    get_meaning: Callable[[], Meaning | None],
) -> list[Found]:
    """At most `k` passages, best first; none that has neither a word nor the sense in common."""
    terms = terms_of(query, analyzer)
    if not terms:
        return []
    meaning = get_meaning()
    good = meaning.good if meaning else 0.0
    telling = {
        term: weight * ranking.rarity(snapshot.frequency(term), snapshot.size)
        for term, weight in terms.items()
    }
    found: list[Found] = []
    seen: set[int] = set()
    for item in rank(terms, max(k, CANDIDATES), snapshot, meaning):
        if len(found) >= k:
            break
        # A copy of a document says nothing new.
        if item.match.key in seen:
            continue
        seen.add(item.match.key)
        row = snapshot.fetch(item.match)
        words = set(analyzer.tokens(f"{row.title}\n{row.heading}\n{plain(row.text)}"))
        share = ranking.coverage(telling, words)
        found.append(Found(row, item.score, ranking.is_good(share, item.cosine, good)))
    return found


def terms_of(query: str, analyzer: Analyzer) -> dict[str, float]:
    """The terms searched for, weighed."""
    return dict(islice(analyzer.terms(query).items(), MAX_TERMS))


def rank(
    terms: Mapping[str, float], limit: int, snapshot: Snapshot, meaning: Meaning | None
) -> list[Ranked]:
    """The candidates, best first: at most `limit` by words, and as many by meaning."""
    matches = snapshot.by_words(terms, TITLE_BOOST, limit)
    cosines: list[float | None] = [None] * len(matches)
    if meaning is not None and len(meaning.table):
        keys = meaning.table.nearest(meaning.vector, limit, meaning.least)
        known = {_place(match) for match in matches}
        nearest = snapshot.by_keys(keys, terms, TITLE_BOOST, 2 * limit)
        matches += [match for match in nearest if _place(match) not in known]
        cosines = meaning.table.cosines([match.key for match in matches], meaning.vector)
    weight = meaning.weight if meaning else 0.0
    scores = ranking.fuse([match.score for match in matches], cosines, weight)
    ranked = [
        Ranked(match, score, cosine)
        for match, score, cosine in zip(matches, scores, cosines, strict=True)
    ]
    return sorted(ranked, key=lambda item: -item.score)


def _place(match: Match) -> tuple[int, int]:
    return match.address.segment_ord, match.address.doc
