"""Cuts Markdown into messages that stand on their own, in order and complete.

It must not know any platform: the limit and the way to measure it are given.
"""

import re
import unicodedata
from collections.abc import Callable, Iterator
from dataclasses import dataclass

Size = Callable[[str], int]

_FENCE = re.compile(
    r"(?P<indent>(?:[ \t>]|[-*+] |\d{1,3}[.)] )*)(?P<mark>`{3,32}|~{3,32})(?P<info>.*)"
)
_DELIMITER_ROW = re.compile(r"[ \t>]*\|?[ \t]*:?-+:?[ \t]*(?:\|[ \t]*:?-*:?[ \t]*)*\|?[ \t]*")
_HEADING = re.compile(r" {0,3}#{1,6} ")
# Possessive and atomic, so that no input makes the scan quadratic.
_ATOM = re.compile(
    r"`++[^`\n]*+`++"
    r"|!?\[(?>[^\[\]\n]|\[[^\[\]\n]*+\])*+\]\((?>[^()\n]|\([^()\n]*+\))*+\)"
    r"|<[^<>\n]*+>"
    r"|https?://\S++"
    r"|&[a-z]{2,4};"
)
_LOOKAHEAD = 2_000
_MAX_LANGUAGE = 30
_MAX_GRAPHEME = 32

_PARAGRAPH, _LINE, _INSIDE, _HARD = 3, 2, 1, 0


@dataclass(frozen=True, slots=True)
class Part:
    """The first message of a text, and what is left.

    `rest` is "" when nothing is left; else its first `carried` characters repeat what the part
    was in the middle of (a fence's opening line, a table's header).
    """

    text: str
    rest: str
    carried: int


@dataclass(frozen=True, slots=True)
class _Cut:
    at: int
    rank: int
    closer: str
    opener: str


@dataclass(slots=True)
class _State:
    """What is open at the start of a line."""

    mark: str = ""
    indent: str = ""
    language: str = ""
    header: str = ""

    @property
    def closer(self) -> str:
        return self.indent + self.mark if self.mark else ""

    @property
    def opener(self) -> str:
        return f"{self.indent}{self.mark}{self.language}\n" if self.mark else self.header

    def read(self, line: str, before: str) -> None:
        """Take in one whole line, `before` being the line above it."""
        fence = _FENCE.match(line)
        if self.mark:
            closes = fence and fence["mark"].startswith(self.mark) and not fence["info"].strip()
            if closes:
                self.mark = ""
        elif fence and "`" not in fence["info"]:
            self.mark = fence["mark"]
            self.indent = ">" if ">" in fence["indent"] else ""
            language = fence["info"].split()
            self.language = language[0][:_MAX_LANGUAGE] if language else ""
            self.header = ""
        elif "|" not in line:
            self.header = ""
        elif not self.header and "|" in before and _DELIMITER_ROW.fullmatch(line):
            self.header = f"{before}\n{line}\n"


def utf8_bytes(text: str) -> int:
    """The length of `text` in UTF-8 bytes, as Slack counts."""
    return len(text.encode("utf-8", "surrogatepass"))


def split_markdown(text: str, limit: int, size: Size = len) -> list[str]:
    """`text` as messages of at most `limit` by `size`, none of them blank.

    Fences are closed and reopened with their language, a table's header is repeated, and no
    link, `<…>` or inline code is cut unless it alone is over the limit. At a cut only blank
    space is dropped. `size` must grow with the text, by at least one for each character.
    `limit` is at least 200.
    """
    parts: list[str] = []
    carried = 0
    while text.strip():
        part = take_part(text, limit, size, carried)
        if part.text.strip():
            parts.append(part.text)
        text, carried = part.rest, part.carried
    return parts


def take_part(text: str, limit: int, size: Size = len, minimum: int = 0) -> Part:
    """The first message of `text`, cut after more than `minimum` characters."""
    if len(text) <= limit and size(text) <= limit:
        closed = close_fence(text)
        if size(closed) <= limit:
            return Part(closed, "", 0)
    end = _longest(text, limit, size)
    cut = next(
        cut
        for cut in _choices(text, end, minimum, limit, size)
        if cut.at > minimum and size(_head(text, cut)) <= limit
    )
    rest = text[cut.at :]
    if not cut.opener:
        rest = rest.lstrip("\n") if cut.rank >= _LINE else rest.removeprefix(" ")
    is_left = bool(rest.strip()) and not (cut.closer and rest.strip() == cut.closer.lstrip(">"))
    # A table's header is a luxury: where it would fill the next message, go without.
    opener = cut.opener if cut.closer or size(cut.opener) <= limit // 4 else ""
    return Part(_head(text, cut), opener + rest if is_left else "", len(opener) if is_left else 0)


def cut_part(text: str, at: int) -> Part:
    """`text` cut exactly at `at`, whatever stands there; an open fence is closed and reopened."""
    state = _state_at(text[:at])
    cut = _Cut(at, _HARD, state.closer, state.opener if state.mark else "")
    return Part(_head(text, cut), cut.opener + text[at:], len(cut.opener))


def close_fence(text: str) -> str:
    """`text`, with a line that closes its last fence where that is open."""
    state = _state_at(text)
    if not state.mark:
        return text
    return text + ("" if text.endswith("\n") else "\n") + state.closer


def _state_at(text: str) -> _State:
    state = _State()
    before = ""
    for line in text.split("\n"):
        state.read(line, before)
        before = line
    return state


def _head(text: str, cut: _Cut) -> str:
    head = text[: cut.at]
    if not cut.closer:
        return head.rstrip() if cut.rank >= _LINE else head.rstrip("\n")
    return head + ("" if head.endswith("\n") else "\n") + cut.closer


def _longest(text: str, limit: int, size: Size) -> int:
    """The length of the longest beginning of `text` that measures at most `limit`."""
    low, high = 0, min(len(text), limit)
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if size(text[:middle]) <= limit else (low, middle - 1)
    return low


def _choices(text: str, end: int, minimum: int, limit: int, size: Size) -> Iterator[_Cut]:
    """Places to cut, the best first; one of the last always fits."""
    lines, last, state = _line_cuts(text, end)
    floor = max(minimum, end // 2)
    late = [cut for cut in lines if cut.at > floor]
    yield from sorted(late, key=lambda cut: (cut.rank, cut.at), reverse=True)
    closer, opener = state.closer, state.opener if state.mark else ""
    # Inside a fence the closing line needs room too.
    room = _longest(text[:end], limit - size("\n" + closer), size) if closer else end
    places = _inline_places(text, last, room, is_code=bool(state.mark))
    yield from (_Cut(at, _HARD, closer, opener) for at in places if at > floor)
    yield from reversed([cut for cut in lines if cut.at <= floor])
    yield from (_Cut(at, _HARD, closer, opener) for at in places)
    yield _Cut(room, _HARD, closer, opener)
    # Even a grapheme or a repeated opening that fills the whole limit must not stop us.
    yield _Cut(max(minimum + 1, room), _HARD, "", "")


def _line_cuts(text: str, end: int) -> tuple[list[_Cut], int, _State]:
    """Cuts at line starts up to `end`; the start of the line that holds `end`; what is open."""
    state = _State()
    cuts: list[_Cut] = []
    at, before = 0, ""
    while True:
        stop = text.find("\n", at)
        if stop < 0 or stop + 1 > end:
            return cuts, at, state
        line = text[at:stop]
        was_open = bool(state.mark)
        state.read(line, before)
        at = stop + 1
        if state.mark:
            if was_open:
                cuts.append(_Cut(at, _INSIDE, state.closer, state.opener))
        elif state.header:
            if not _DELIMITER_ROW.fullmatch(line):
                cuts.append(_Cut(at, _INSIDE, "", state.header))
        elif not line.strip() or text.startswith("\n", at):
            cuts.append(_Cut(at, _PARAGRAPH, "", ""))
        elif not _HEADING.match(line) and not _opens_table(text, at, line):
            cuts.append(_Cut(at, _LINE, "", ""))
        before = line


def _opens_table(text: str, at: int, line: str) -> bool:
    """Whether the line that starts at `at` makes `line` a table's header."""
    stop = text.find("\n", at)
    below = text[at : stop if stop >= 0 else at + _LOOKAHEAD]
    return "|" in line and _DELIMITER_ROW.fullmatch(below) is not None


def _inline_places(text: str, start: int, end: int, *, is_code: bool) -> list[int]:
    """Where the line from `start` can be cut: the last space, the last place outside a link."""
    line = text[start : end + _LOOKAHEAD].split("\n", 1)[0]
    atoms = [] if is_code else [match.span() for match in _ATOM.finditer(line)]
    space = next(
        (
            at + 1
            for at in range(min(end - start, len(line)) - 1, 0, -1)
            if line[at] == " " and not any(a < at + 1 < b for a, b in atoms)
        ),
        0,
    )
    place = min(end - start, len(line))
    for a, b in reversed(atoms):
        if a < place < b:
            place = a
    place = _grapheme_start(line, place)
    hard = _grapheme_start(text, end)
    return [at for at in (start + space if space else 0, start + place, hard) if at > 0]


def _grapheme_start(text: str, at: int) -> int:
    """`at`, or a little before it, so that no accent or joined emoji is torn from its base."""
    for place in range(at, max(at - _MAX_GRAPHEME, 0), -1):
        if place >= len(text) or not _is_joined(text[place - 1], text[place]):
            return place
    return at


def _is_joined(left: str, right: str) -> bool:
    is_mark = unicodedata.combining(right) > 0 or unicodedata.category(right) in ("Mn", "Me", "Mc")
    is_tone = "\U0001f3fb" <= right <= "\U0001f3ff"
    is_flag = all("\U0001f1e6" <= char <= "\U0001f1ff" for char in (left, right))
    return is_mark or is_tone or is_flag or "\u200d" in (left, right)
