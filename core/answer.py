"""The answer's text as it is put together: turns, citation marks, the sources behind them.

It must not know the model's wire format nor how a platform shows the text.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any

from core.protocols import Citation, Hit, Passage
from core.types import Source

MAX_QUOTE_CHARS = 300
_MARK = re.compile(r"([ \t]?)\[(\d{1,3})\]")
_MAYBE_MARK = re.compile(r"\[\d{0,3}$")
_FENCE = re.compile(r"^\s{0,3}(```+|~~~+)", re.MULTILINE)


def passage_ref(passage: Passage) -> str:
    """What names a passage in a search_result and in a citation."""
    return f"{passage.path}#L{passage.line}"


def passage_title(passage: Passage) -> str:
    """The document's title and the heading path, once each."""
    if not passage.heading or passage.heading == passage.title:
        return passage.title
    if passage.heading.startswith(passage.title + " > "):
        return passage.heading
    return f"{passage.title} > {passage.heading}"


@dataclass(slots=True)
class SourceBook:
    """The passages found in a run and the numbers of those that the answer cites."""

    found: dict[str, Hit] = field(default_factory=dict[str, Hit])
    numbers: dict[str, int] = field(default_factory=dict[str, int])
    quotes: dict[str, str] = field(default_factory=dict[str, str])

    def add(self, hits: Iterable[Hit]) -> None:
        """Remember passages that the model was shown."""
        for hit in hits:
            self.found.setdefault(passage_ref(hit.passage), hit)

    def position(self, ref: str) -> int:
        """The 1-based place in which a passage was found: what a model without citations uses."""
        return list(self.found).index(ref) + 1

    def cite(self, ref: str, quote: str = "") -> int | None:
        """The number of a cited passage, given at its first citation; None when it is unknown."""
        if ref not in self.found:
            return None
        self.quotes.setdefault(ref, quote)
        return self.numbers.setdefault(ref, len(self.numbers) + 1)

    def cite_position(self, position: int) -> int | None:
        """As `cite`, for the `position`-th passage found."""
        refs = list(self.found)
        return self.cite(refs[position - 1]) if 0 < position <= len(refs) else None

    def closest(self, count: int) -> list[Hit]:
        """The best passages found that really match, at most `count`."""
        good = [hit for hit in self.found.values() if hit.is_good]
        return sorted(good, key=lambda hit: -hit.score)[:count]

    def sources(self) -> tuple[Source, ...]:
        """The cited passages in the order of their numbers."""
        sources: list[Source] = []
        for ref, number in self.numbers.items():
            passage = self.found[ref].passage
            quote = self.quotes.get(ref) or passage.text
            sources.append(
                Source(
                    n=number,
                    title=passage.title,
                    path=passage.path,
                    heading=passage.heading,
                    url=passage.url,
                    quote=shorten(quote, MAX_QUOTE_CHARS),
                )
            )
        return tuple(sources)

    def to_json(self) -> dict[str, Any]:
        """JSON-safe form, for a checkpoint."""
        return {
            "found": [_hit_to_json(hit) for hit in self.found.values()],
            "numbers": self.numbers,
            "quotes": self.quotes,
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> "SourceBook":
        """The inverse of `to_json`."""
        book = cls(numbers=dict(data["numbers"]), quotes=dict(data["quotes"]))
        book.add(
            Hit(Passage(**hit["passage"]), hit["score"], hit["is_good"]) for hit in data["found"]
        )
        return book


def _hit_to_json(hit: Hit) -> dict[str, Any]:
    # `asdict` copies deeply and takes twenty times as long, at every checkpoint
    passage = {field.name: getattr(hit.passage, field.name) for field in fields(Passage)}
    return {"passage": passage, "score": hit.score, "is_good": hit.is_good}


def shorten(text: str, limit: int) -> str:
    """`text` on one line, cut at a word to at most `limit` characters."""
    flat = " ".join(text.split())
    if len(flat) <= limit:
        return flat
    head = flat[: limit - 1]
    return (head.rsplit(" ", 1)[0] if " " in head else head) + "…"


class AnswerText:
    """The text of a run while it streams.

    What `feed`, `end_block` and `end_turn` return is what to show next. White space at the end
    of a block is held back, so that a citation mark comes before it; without native citations
    the model's own `[n]` are checked and renumbered as they pass.
    """

    def __init__(self, book: SourceBook, *, has_citations: bool, text: str = "") -> None:
        self._book = book
        self._has_citations = has_citations
        self._finished = text
        self._turn = ""
        self._held = ""
        self._is_after_mark = False

    @property
    def text(self) -> str:
        """All that was shown so far."""
        return self._finished + self._turn

    @property
    def turn_text(self) -> str:
        """What the turn under way has shown."""
        return self._turn.strip()

    def feed(self, delta: str) -> str:
        """Text of the model's; returns what may be shown now."""
        pending = self._held + delta
        if not self._has_citations:
            pending, tail = self._split_marks(pending)
        else:
            tail = ""
        body = pending.rstrip()
        if not body:
            self._held = pending + tail
            return ""
        self._held = pending[len(body) :] + tail
        return self._show(body)

    def end_block(self, citations: Sequence[Citation]) -> str:
        """A block is complete: returns its citation marks, such as " [1][3]"."""
        marks: list[str] = []
        for citation in citations:
            number = self._book.cite(citation.source, citation.quote)
            if number is not None and f"[{number}]" not in marks:
                marks.append(f"[{number}]")
        if not marks or not self._turn:
            return ""
        last_line = self._turn.rsplit("\n", 1)[-1]
        # a mark on the line that closes a fence would open it again
        gap = "\n" if _FENCE.match(last_line) else " "
        shown = gap + "".join(marks)
        self._turn += shown
        self._is_after_mark = True
        return shown

    def end_turn(self) -> str:
        """The turn's reply is complete: keeps its text; returns what was still held back."""
        tail = self._held.rstrip()
        self._held = ""
        shown = self._show(tail) if tail else ""
        self._finished += self._turn
        self._turn = ""
        return shown

    def reset_turn(self) -> str:
        """Drops the text of the turn under way; returns what remains."""
        self._turn = ""
        self._held = ""
        return self._finished

    def add(self, text: str) -> str:
        """A paragraph of our own after everything else; returns what to show."""
        shown = self.end_turn()
        gap = "\n\n" if self._finished else ""
        marks = _FENCE.findall(self._finished)
        if len(marks) % 2 == 1:
            # the model was cut off inside code, which must not swallow what we say
            gap = f"\n{marks[-1]}{gap}"
        self._finished += gap + text
        return shown + gap + text

    def _show(self, body: str) -> str:
        if not self._turn:
            body = body.lstrip("\n")
            if self._finished:
                body = "\n\n" + body
        elif self._is_after_mark and body[0].isalnum():
            body = " " + body  # the next block begins where the cited one ended
        self._is_after_mark = False
        self._turn += body
        return body

    def _split_marks(self, pending: str) -> tuple[str, str]:
        """`pending` with its marks renumbered, and a tail that may still become a mark."""
        cut = _MAYBE_MARK.search(pending)
        tail = pending[cut.start() :] if cut else ""
        ready = pending[: len(pending) - len(tail)]

        def renumber(found: re.Match[str]) -> str:
            before = self._turn + ready[: found.start()]
            is_index = not found[1] and (before[-1:].isalnum() or before[-1:] in ("_", ")", "`"))
            if is_index or len(_FENCE.findall(before)) % 2 == 1:
                return found[0]  # code, such as row[0]
            number = self._book.cite_position(int(found[2]))
            return f"{found[1]}[{number}]" if number is not None else ""

        return _MARK.sub(renumber, ready), tail
