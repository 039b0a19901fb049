"""Owns how good a search is, in figures: questions with expected documents → nDCG, top 3, misses.

It must not know how anything is found: it asks a `Library` and compares.
"""

import json
import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from core.errors import ConfigError
from core.protocols import Library

DEPTH = 10
TOP = 3
_PASSAGES = 60
"""Passages asked for, so that ten documents are among them though one fills many places."""


@dataclass(frozen=True, slots=True)
class Question:
    """A question and the paths of the documents that answer it, any of them."""

    text: str
    expected: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Miss:
    """A question without an expected document in the top 3, and what was there instead.

    `rank` is where the first expected document came, 1-based; None when not in the first ten.
    """

    question: Question
    found: tuple[str, ...]
    rank: int | None


@dataclass(frozen=True, slots=True)
class Score:
    """`ndcg` is nDCG@10 over documents, `top3` the share of questions with one in the top 3."""

    questions: int
    ndcg: float
    top3: float
    misses: tuple[Miss, ...]


def read_questions(file: Path) -> tuple[Question, ...]:
    """The questions of a JSONL file: {"question": …, "expected": path or [paths]} a line.

    Raises:
        ConfigError: no such file, or a line that is no such object; the text names the line.
    """
    try:
        lines = file.read_text(encoding="utf-8-sig").splitlines()
    except (OSError, UnicodeDecodeError) as err:
        raise ConfigError(f"The questions cannot be read: {file}") from err
    questions = [_question(line, number) for number, line in enumerate(lines, 1) if line.strip()]
    if not questions:
        raise ConfigError(f"There are no questions in {file}")
    return tuple(questions)


def _question(line: str, number: int) -> Question:
    wanted = '{"question": "...", "expected": ["path.md"]}'
    problem = ConfigError(f"Line {number} of the questions must be like {wanted}")
    try:
        value: Any = json.loads(line)
    except ValueError as err:
        raise problem from err
    if not isinstance(value, dict):
        raise problem
    fields = cast("dict[str, Any]", value)
    text, expected = fields.get("question"), fields.get("expected")
    listed: Any = [expected] if isinstance(expected, str) else expected
    if not isinstance(text, str) or not text.strip() or not isinstance(listed, list) or not listed:
        raise problem
    paths = cast("list[Any]", listed)
    if not all(isinstance(path, str) for path in paths):
        raise problem
    return Question(text, tuple(path.removeprefix("./") for path in paths))


async def evaluate(library: Library, questions: Sequence[Question]) -> Score:
    """How well `library` answers `questions`. A document's place is that of its best passage."""
    total = 0.0
    misses: list[Miss] = []
    for question in questions:
        hits = await library.search(question.text, _PASSAGES)
        found = list(dict.fromkeys(hit.passage.path for hit in hits))[:DEPTH]
        total += ndcg(found, question.expected)
        if not set(found[:TOP]) & set(question.expected):
            ranks = [at for at, path in enumerate(found, 1) if path in question.expected]
            misses.append(Miss(question, tuple(found[:TOP]), min(ranks, default=None)))
    count = max(len(questions), 1)
    return Score(len(questions), total / count, 1 - len(misses) / count, tuple(misses))


def ndcg(found: Sequence[str], expected: Collection[str]) -> float:
    """nDCG of the first ten of `found`: 1 when all expected come first, 0 when none is there."""
    gain = sum(1 / math.log2(at + 2) for at, path in enumerate(found[:DEPTH]) if path in expected)
    best = sum(1 / math.log2(at + 2) for at in range(min(DEPTH, len(set(expected)))))
    return gain / best if best else 0.0
