"""Figures about search: nDCG and misses by hand, the file of questions, groups of gaps."""

import json
import math
from pathlib import Path

import pytest

from core.errors import ConfigError
from core.search import DocIndex
from core.search.evaluate import Question, evaluate, ndcg, read_questions
from core.search.gaps import group_questions
from tests.support_search import RESUME_CENTER, write_files


@pytest.mark.parametrize(
    ("found", "expected", "value"),
    [
        (["a", "b"], ["a"], 1.0),
        (["b", "a"], ["a"], 1 / math.log2(3)),
        (["b", "a", "c"], ["a", "c"], (1 / math.log2(3) + 0.5) / (1 + 1 / math.log2(3))),
        (["b"] * 10 + ["a"], ["a"], 0.0),
        ([], ["a"], 0.0),
    ],
)
def test_ndcg_by_hand(found: list[str], expected: list[str], value: float) -> None:
    assert ndcg(found, expected) == pytest.approx(value)


async def test_a_score_names_its_misses(tmp_path: Path) -> None:
    root = write_files(tmp_path / "docs", RESUME_CENTER)
    async with DocIndex(root, tmp_path / "data", by_words_only=True) as index:
        score = await evaluate(
            index,
            [
                Question("where does the summary go", ("resume-summary.md",)),
                Question("salary range", ("interviews/salary.md", "other.md")),
                Question("tracking system columns", ("privacy.txt",)),
                Question("zyxwv", ("privacy.txt",)),
            ],
        )
    assert (score.questions, score.top3) == (4, 0.5)
    assert score.ndcg == pytest.approx((1 + 1 / (1 + 1 / math.log2(3))) / 4)
    assert [miss.question.text for miss in score.misses] == ["tracking system columns", "zyxwv"]
    assert score.misses[0].found[0] == "ats-parsing.md"
    assert score.misses[1].found == ()


def test_questions_are_read_from_lines(tmp_path: Path) -> None:
    file = tmp_path / "q.jsonl"
    lines = [
        {"question": "One?", "expected": "a.md"},
        {"question": "Two?", "expected": ["./b.md", "c.md"], "note": "x"},
    ]
    file.write_text("\ufeff" + "\n\n".join(json.dumps(line) for line in lines))
    assert read_questions(file) == (
        Question("One?", ("a.md",)),
        Question("Two?", ("b.md", "c.md")),
    )


@pytest.mark.parametrize(
    "line",
    [
        "{",
        "[]",
        '{"question": "x"}',
        '{"question": "", "expected": "a"}',
        '{"question": "x", "expected": []}',
        '{"question": "x", "expected": [1]}',
        '{"question": "x", "expected": 5}',
    ],
)
def test_a_bad_line_is_named(tmp_path: Path, line: str) -> None:
    file = tmp_path / "q.jsonl"
    file.write_text('{"question": "One?", "expected": "a.md"}\n' + line)
    with pytest.raises(ConfigError, match="Line 2"):
        read_questions(file)


def test_a_file_without_questions_is_refused(tmp_path: Path) -> None:
    (tmp_path / "q.jsonl").write_text("\n\n")
    with pytest.raises(ConfigError, match="no questions"):
        read_questions(tmp_path / "q.jsonl")
    with pytest.raises(ConfigError, match="cannot be read"):
        read_questions(tmp_path / "none.jsonl")


def test_the_same_need_is_one_group() -> None:
    groups = group_questions(
        [
            "How do I book a parking space?",
            "booking parking spaces",
            "Where can I book parking?",
            "Is there a gym?",
            "  is there a gym? ",
            "Is there a gym?",
            "Is there a gym?",
            "Who fixes the printer on floor 3?",
            "",
        ]
    )
    assert [(group.title, group.count) for group in groups] == [
        ("Is there a gym?", 4),
        ("How do I book a parking space?", 3),
        ("Who fixes the printer on floor 3?", 1),
    ]
    assert set(groups[1].questions) == {
        "How do I book a parking space?",
        "booking parking spaces",
        "Where can I book parking?",
    }


def test_unlike_questions_are_not_tied_by_a_chain() -> None:
    groups = group_questions(["red door key", "red door paint", "blue wall paint", "???"])
    assert len(groups) == 4
    assert sum(group.count for group in groups) == 4
    assert group_questions([]) == []


def test_thousands_of_questions_are_grouped_quickly() -> None:
    questions = [f"How do I configure module {n % 700} of product {n % 90}?" for n in range(5_000)]
    groups = group_questions(questions)
    assert sum(group.count for group in groups) == 5_000
