"""Owns how candidates become hits: their scores between 0 and 1, and the floor of `is_good`.

It must not know the engine, files or models.
"""

import math
from collections.abc import Collection, Mapping, Sequence

GOOD_WORDS = 0.45
"""The share of a question's words from which a passage found by words alone is good.

Source: measured on four sets, with questions of the other sets as those off the topic: 9 of 10
right passages are above it, and 1 of 50 of the others.
"""


def rarity(frequency: int, size: int) -> float:
    """How much a term tells, by the number of passages it is in; never negative, smoothed."""
    return math.log(1 + (size - frequency + 0.5) / (frequency + 0.5))


def coverage(telling: Mapping[str, float], tokens: Collection[str]) -> float:
    """The share of a question that a passage holds, 0 to 1; `telling` weighs its terms."""
    total = sum(telling.values())
    held = sum(weight for term, weight in telling.items() if term in tokens)
    return held / total if total else 0.0


def fuse(lexical: Sequence[float], cosines: Sequence[float | None], weight: float) -> list[float]:
    """One score from 0 to 1 for each candidate: `weight` on its meaning, the rest on its words.

    Each side is first stretched over the candidates. A passage that has no vector yet is judged
    by its words alone.
    """
    top = max(lexical, default=0.0)
    known = [cosine for cosine in cosines if cosine is not None]
    low, high = min(known, default=0.0), max(known, default=0.0)
    scores: list[float] = []
    for words, cosine in zip(lexical, cosines, strict=True):
        by_words = words / top if top else 0.0
        by_meaning = by_words if cosine is None else (cosine - low) / ((high - low) or 1.0)
        scores.append((1 - weight) * by_words + weight * by_meaning)
    return scores


def is_good(share: float, cosine: float | None, good: float) -> bool:
    """Whether a passage really matches: by `share` of the question's words, and by its sense.

    `good` is the floor of the model that made the cosine.
    """
    return share >= GOOD_WORDS if cosine is None else cosine + share / 2 >= good
