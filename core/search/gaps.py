"""Owns the grouping of questions that found nothing: the same need, asked in other words, once.

It must not know where questions are kept, nor who asked them.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from core.search import ranking
from core.search.analyzer import Analyzer

SAME = 0.5
"""From which share of common words, by rarity, two questions are about the same."""


@dataclass(frozen=True, slots=True)
class Group:
    """Questions about the same, most asked first; `title` is the one that stands for them."""

    title: str
    count: int
    questions: tuple[str, ...]


def group_questions(questions: Sequence[str]) -> list[Group]:
    """`questions` in groups, the largest first; repetitions count, empty ones are left out.

    Two belong together when their words are mostly the same, a rare word telling more. Each goes
    to the group that it is most like, judged by the group's first question, so that a chain of
    small changes does not tie unlike questions together.
    """
    counts = Counter(" ".join(question.split()) for question in questions if question.strip())
    analyzer = Analyzer()
    words = {text: frozenset(analyzer.terms(text)) for text in counts}
    frequency = Counter(word for terms in words.values() for word in terms)
    weights = {word: ranking.rarity(number, len(counts)) for word, number in frequency.items()}
    groups: list[list[str]] = []
    by_word: dict[str, list[int]] = {}
    # The most asked first, so that each group is named by it; then in the order of asking.
    for text in sorted(counts, key=lambda text: -counts[text]):
        near = {
            number for word in _needed(words[text], weights) for number in by_word.get(word, ())
        }
        likeness = {
            number: _likeness(words[text], words[groups[number][0]], weights)
            for number in sorted(near)
        }
        best = max(likeness, key=lambda number: likeness[number], default=None)
        if best is not None and likeness[best] >= SAME:
            groups[best].append(text)
            continue
        for word in words[text]:
            by_word.setdefault(word, []).append(len(groups))
        groups.append([text])
    made = [Group(group[0], sum(counts[text] for text in group), tuple(group)) for group in groups]
    return sorted(made, key=lambda group: -group.count)


def _needed(words: frozenset[str], weights: Mapping[str, float]) -> list[str]:
    """The rarest words, without any of which the rest is less than SAME of the whole."""
    left = total = sum(weights[word] for word in words)
    needed: list[str] = []
    for word in sorted(words, key=lambda word: -weights[word]):
        if left < SAME * total:
            break
        needed.append(word)
        left -= weights[word]
    return needed


def _likeness(one: frozenset[str], other: frozenset[str], weights: Mapping[str, float]) -> float:
    """The common words' share of all words of both, by rarity: 0 to 1."""
    common = sum(weights[word] for word in one & other)
    return common / (sum(weights[word] for word in one | other) or 1.0)
