"""The evaluation sets: documents cut as the index cuts them, questions, and what answers them.

Each set is a folder of `corpus*.jsonl` (_id, title, text), `queries*.jsonl` (_id, text) and
`qrels.tsv` (query-id, corpus-id, score).
"""

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from core.search.documents import Part, parse

DATA_VARIABLE = "FOOTNOTE_EVAL_DATA"
BESIDE = Path(__file__).resolve().parents[2] / "shared" / "eval"

MISSING = f"""The evaluation sets are not here, so quality cannot be measured.
Give their folder with --data PATH or in {DATA_VARIABLE}. It holds, each in its own folder:
  awsdocs   help articles and customers' questions (github.com/siagholami/aws-documentation)
  stackfaq  answers of web-app help threads and paraphrased questions (StackFAQ)
  xquad     Wikipedia paragraphs and questions in five languages (github.com/google-deepmind/xquad)
as corpus*.jsonl (_id, title, text), queries*.jsonl (_id, text), qrels.tsv."""


@dataclass(frozen=True, slots=True)
class Query:
    """A question and the ids that answer it."""

    text: str
    relevant: frozenset[str]


@dataclass(frozen=True, slots=True)
class EvalSet:
    """`documents` are (id, title, parts). `has_long_documents`: top 3 counts documents."""

    name: str
    documents: Sequence[tuple[str, str, tuple[Part, ...]]]
    queries: Sequence[Query]
    has_long_documents: bool = False


def data_folder(option: Path | None) -> Path | None:
    """Where the sets are; None when nowhere."""
    named = option or (Path(os.environ[DATA_VARIABLE]) if DATA_VARIABLE in os.environ else BESIDE)
    return named if (named / "awsdocs" / "qrels.tsv").is_file() else None


def articles(data: Path) -> Iterator[tuple[str, str]]:
    """(path, Markdown) of the articles of awsdocs."""
    for item in lines(data / "awsdocs", "corpus*.jsonl"):
        yield item["_id"], item["text"]


def awsdocs(data: Path) -> EvalSet:
    """Whole help articles, cut by the index."""
    documents: list[tuple[str, str, tuple[Part, ...]]] = []
    for path, text in articles(data):
        parsed = parse(path, text.encode())
        documents.append((path, parsed.title, parsed.parts))
    return EvalSet("awsdocs", documents, queries(data / "awsdocs"), has_long_documents=True)


def stackfaq(data: Path, *, with_title: bool) -> EvalSet:
    """Answers as passages; every answer of the question's thread counts, so the id is its."""
    documents = [
        (item["thread"], item["question"] if with_title else "", (Part("", item["text"], 1),))
        for item in lines(data / "stackfaq", "corpus*.jsonl")
    ]
    threads = [
        Query(query.text, frozenset(name.split("a")[0] for name in query.relevant))
        for query in queries(data / "stackfaq")
    ]
    return EvalSet("stackfaq+title" if with_title else "stackfaq", documents, threads)


def xquad(data: Path, language: str = "") -> EvalSet:
    """English paragraphs, questions in `language` (a code; English by default)."""
    documents = [
        (item["_id"], item["title"], (Part("", item["text"], 1),))
        for item in lines(data / "xquad", "corpus*.jsonl")
    ]
    name = f"queries.{language}.jsonl" if language else "queries.jsonl"
    return EvalSet(f"xquad {language or 'en'}", documents, queries(data / "xquad", name))


def queries(folder: Path, name: str = "queries.jsonl") -> list[Query]:
    """The questions of a set, in the file's order."""
    relevant: dict[str, set[str]] = {}
    for line in (folder / "qrels.tsv").read_text().splitlines()[1:]:
        query, document, _ = line.split("\t")
        relevant.setdefault(query, set()).add(document)
    items = lines(folder, name)
    return [Query(item["text"], frozenset(relevant[item["_id"]])) for item in items]


def lines(folder: Path, pattern: str) -> Iterator[Mapping[str, Any]]:
    """The objects of all JSONL files that match, in the order of their names."""
    for file in sorted(folder.glob(pattern)):
        with file.open(encoding="utf-8") as opened:
            yield from (json.loads(line) for line in opened)
