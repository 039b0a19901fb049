"""Owns how a text is cut into pieces of about 100 words that stay whole where a reader would.

It must not know any markup but tables and fences, nor where the text came from.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

TARGET_WORDS = 100
MAX_WORDS = 150
MAX_CODE_CHARS = 4_000
_MIN_WORDS = 25

_WIDE = re.compile("[\u2e80-\uffff\U00010000-\U0010ffff]")
_SENTENCE_END = re.compile(r"(?<=[.!?])[\"')\]]*\s+(?=\S)|(?<=[。！？])")


@dataclass(frozen=True, slots=True)
class Piece:
    """A part of a text of about 100 words. `line` is 1-based; `heading` the path, "A > B"."""

    heading: str
    text: str
    line: int


@dataclass(frozen=True, slots=True)
class Outline:
    """A whole text, cut. `title` is empty when the text names none."""

    title: str
    pieces: tuple[Piece, ...]


@dataclass(slots=True)
class Block:
    """A paragraph, list, table or fenced code; `line` is where it begins."""

    text: str
    line: int
    is_code: bool = False


@dataclass(slots=True)
class Section:
    """What stands under one heading; `path` is the headings above it and its own."""

    path: tuple[str, ...]
    line: int
    blocks: list[Block]


def count_words(text: str) -> int:
    """Words as spaces part them; a text without spaces counts two characters a word."""
    words = len(text.split())
    return words if text.isascii() else max(words, len(_WIDE.findall(text)) // 2)


def cut_text(text: str, first_line: int = 1) -> Outline:
    """Plain `text` in pieces along its paragraphs, without headings."""
    section = Section((), first_line, [])
    paragraph: list[str] = []
    for number, line in enumerate([*text.splitlines(), ""], first_line):
        if line.strip():
            paragraph.append(line.rstrip())
        elif paragraph:
            section.blocks.append(Block("\n".join(paragraph), number - len(paragraph)))
            paragraph = []
    return Outline("", tuple(pieces_of(section, "")))


def pieces_of(section: Section, title: str) -> Iterator[Piece]:
    """A section's blocks, packed to about TARGET_WORDS and never above MAX_WORDS but for code."""
    path = section.path[1:] if section.path[:1] == (title,) else section.path
    heading = " > ".join(path)
    packs: list[list[Block]] = []
    words = 0
    before = 0
    for block in (part for whole in section.blocks for part in _split(whole)):
        size = count_words(block.text)
        if packs and (words + size <= TARGET_WORDS or _belongs(packs[-1], words, size)):
            packs[-1].append(block)
            words += size
        else:
            packs.append([block])
            before, words = words, size
    if len(packs) > 1 and words < _MIN_WORDS and before + words <= MAX_WORDS:
        tail = packs.pop()
        packs[-1] += tail
    for pack in packs:
        yield Piece(heading, "\n\n".join(block.text for block in pack), pack[0].line)


def _belongs(pack: Sequence[Block], words: int, size: int) -> bool:
    """Whether a block stays with what leads to it: "Run this:" and its code, a short opening."""
    return (pack[-1].text.rstrip().endswith(":") or words < _MIN_WORDS) and (
        words + size <= MAX_WORDS
    )


def _split(block: Block) -> Iterator[Block]:
    """The block itself, or parts of it along lines, then sentences, then words."""
    limit = MAX_CODE_CHARS if block.is_code else None
    if (limit and len(block.text) <= limit) or (not limit and count_words(block.text) <= MAX_WORDS):
        yield block
        return
    lines = block.text.split("\n")
    is_table = len(lines) > 2 and lines[0].lstrip().startswith("|") and "---" in lines[1]
    head = lines[:2] if is_table else []
    opening = lines[0] if block.is_code else None
    units: list[tuple[str, int]] = []
    for offset, line in enumerate(lines[len(head) :], len(head)):
        units.extend((part, block.line + offset) for part in _split_line(line, block.is_code))
    gathered: list[str] = []
    first_line = block.line
    size = 0
    for text, line in units:
        step = len(text) + 1 if block.is_code else count_words(text)
        if gathered and size + step > (MAX_CODE_CHARS if block.is_code else TARGET_WORDS):
            yield Block(_joined(head, gathered, opening), first_line, block.is_code)
            gathered, size = [], 0
        if not gathered:
            first_line = line
        gathered.append(text)
        size += step
    if gathered:
        yield Block(_joined(head, gathered, opening), first_line, block.is_code)


def _joined(head: Sequence[str], gathered: Sequence[str], opening: str | None) -> str:
    """Each part of a table repeats its header, each part of a code block its fences."""
    text = "\n".join([*head, *gathered])
    if opening is None:
        return text
    mark = re.sub(r"[^`~].*$", "", opening.strip()) or "```"
    if not gathered[0].startswith(opening):
        text = f"{opening}\n{text}"
    return text if gathered[-1].strip().startswith(mark) else f"{text}\n{mark}"


def _split_line(line: str, is_code: bool) -> list[str]:
    if is_code:
        return [line[at : at + MAX_CODE_CHARS] for at in range(0, len(line), MAX_CODE_CHARS)] or [
            ""
        ]
    if count_words(line) <= MAX_WORDS:
        return [line]
    parts: list[str] = []
    for sentence in _SENTENCE_END.split(line):
        if count_words(sentence) <= MAX_WORDS:
            parts.append(sentence)
            continue
        words = sentence.split()
        if len(words) > MAX_WORDS:
            cuts = [words[at : at + TARGET_WORDS] for at in range(0, len(words), TARGET_WORDS)]
            parts += [" ".join(cut) for cut in cuts]
        else:
            parts += [sentence[at : at + 200] for at in range(0, len(sentence), 200)]
    return parts
