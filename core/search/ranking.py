"""Owns how candidates become hits: their scores between 0 and 1, and the floor of `is_good`.

It must not know the engine, files or models.
"""

import math
from collections.abc import Collection, Mapping, Sequence

GOOD_COVERAGE = 0.5


def rarity(frequency: int, size: int) -> float:
    """How much a term tells, by the number of passages it is in; never negative, smoothed."""
    return math.log(1 + (size - frequency + 0.5) / (frequency + 0.5))


def coverage(terms: Sequence[str], rarities: Mapping[str, float], tokens: Collection[str]) -> float:
    """The share, by rarity, of a question's terms that a passage holds: 0 to 1."""
    total = sum(rarities[term] for term in terms)
    held = sum(rarities[term] for term in terms if term in tokens)
    return held / total if total else 0.0
