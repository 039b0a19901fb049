"""Picks the sentences of passages that answer a question, by the words they share.

It must not know who asks: the offline model does. Works on search_result blocks.
"""

import re
from collections.abc import Sequence
from functools import cache
from math import log1p

from core.protocols import Block
from core.search.analyzer import Analyzer

MAX_PASSAGES = 3
MAX_CHARS = 480
MIN_COVERAGE = 0.34
"""Share of the question's content words, weighted by rarity, that a passage must hold."""

_END = re.compile(r"(?<=[.!?])([\"”’)*_]*)\s+(?=[\"“‘(*_\[]*[A-Z0-9À-Þ])")
_ITEM = re.compile(r"^\s*(?:[-*+]|\d+[.)])\s+")
_SKIP = re.compile(r"^\s*(?:#{1,6}\s|```|~~~|<|!\[)")


@cache
def _analyzer() -> Analyzer:
    return Analyzer()


def content_terms(text: str) -> list[str]:
    """The distinct content words of a question, as the index sees them."""
    return list(_analyzer().terms(text))


def sentences(text: str) -> list[str]:
    """The sentences of a passage's Markdown, and table rows; no headings and no code."""
    found: list[str] = []
    is_code = False
    for paragraph in re.split(r"\n\s*\n|\n(?=\s*(?:[-*+]|\d+[.)])\s)", text):
        if re.match(r"\s*(?:```|~~~)", paragraph):
            is_code = not is_code or paragraph.rstrip().endswith(("```", "~~~"))
            continue
        if paragraph.lstrip().startswith("|"):
            found += _table_rows(paragraph)
            continue
        if _SKIP.match(paragraph):
            continue
        line = " ".join(_ITEM.sub("", paragraph).replace("\n>", "\n").lstrip("> ").split())
        found += [part for part in _END.sub("\\1\n", line).split("\n") if part]
    return found


def _table_rows(table: str) -> list[str]:
    """Each row of a Markdown table as "head: cell; head: cell"."""
    rows = [
        [cell.strip() for cell in line.strip().strip("|").split("|")]
        for line in table.strip().splitlines()
        if not re.fullmatch(r"[\s|:-]+", line)
    ]
    heads = rows[0] if rows else []
    return [
        "; ".join(
            f"{head}: {cell}" if head else cell for head, cell in zip(heads, row, strict=False)
        )
        for row in rows[1:]
    ]


def best_passages(
    question: str, passages: Sequence[Block], floor: float = MIN_COVERAGE
) -> list[tuple[str, Block]]:
    """At most MAX_PASSAGES extracts, best first, each with the search_result it stands in.

    A passage is left out when it holds less than `floor` of the question, or nothing of it.
    """
    asked = content_terms(question)
    bodies = [str(block["content"][0]["text"]) for block in passages]
    tokens = [
        set(_analyzer().tokens(f"{block['title']}\n{body}"))
        for block, body in zip(passages, bodies, strict=True)
    ]
    weight = {
        term: log1p(len(passages) / (1 + sum(term in words for words in tokens)))
        + (0.5 if any(term in words for words in tokens) else 1.0)
        for term in asked
    }
    whole = sum(weight.values())
    chosen: list[tuple[float, int, str]] = []
    for index, (block, body) in enumerate(zip(passages, bodies, strict=True)):
        coverage = sum(weight[term] for term in asked if term in tokens[index])
        if not coverage or coverage / whole < floor:
            continue
        text = _extract(asked, weight, str(block["title"]), body)
        if text and text not in (other for _, _, other in chosen):
            # the index's own order counts too: it has seen all documents
            chosen.append((coverage / whole - 0.05 * index, index, text))
    chosen.sort(key=lambda item: (-item[0], item[1]))
    return [(text, passages[index]) for _, index, text in chosen[:MAX_PASSAGES]]


def _extract(asked: Sequence[str], weight: dict[str, float], title: str, body: str) -> str:
    """The best run of sentences of one passage, at most MAX_CHARS long."""
    parts = sentences(body)
    if not parts:
        return ""
    in_title = set(_analyzer().tokens(title))

    def score(part: str) -> float:
        words = set(_analyzer().tokens(part))
        # a word that the title has already says less about one sentence
        found = sum(
            weight[term] * (0.6 if term in in_title else 1) for term in asked if term in words
        )
        return found - (0.3 if len(part) < 40 else 0)

    best = max(range(len(parts)), key=lambda place: (score(parts[place]), -place))
    text = parts[best]
    for following in parts[best + 1 : best + 3]:
        if len(text) + len(following) + 1 > MAX_CHARS:
            break
        text = f"{text} {following}"
    return text[:MAX_CHARS]
