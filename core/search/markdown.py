"""Owns how Markdown and plain text are cut: text → sections with heading paths → pieces.

It must not know where the text came from, nor how pieces are stored.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

TARGET_WORDS = 100
MAX_WORDS = 150
MAX_CODE_CHARS = 4_000
_MIN_WORDS = 25

_HEADING = re.compile(r" {0,3}(#{1,6})(?:[ \t]+(.*?))?(?:[ \t]+#+)?[ \t]*$")
_UNDERLINE = re.compile(r" {0,3}(=+|-+)[ \t]*$")
_FENCE = re.compile(r" *(?:[-*+]|\d+[.)])? *(`{3,}|~{3,})(.*)$")
_REFERENCE = re.compile(r" {0,3}\[([^\]^][^\]]*)\]:[ \t]*<?(\S+?)>?(?:[ \t]+[\"'(].*)?[ \t]*$")
_REFERENCE_USE = re.compile(r"(?<!\\)\[([^\[\]]+)\](?:\[([^\[\]]*)\])?(?![(:\[])")
_ANCHOR = re.compile(
    r"<a\s+(?:name|id)\s*=\s*[^>]*>\s*(?:</a>)?|<!--.*?-->", re.IGNORECASE | re.DOTALL
)
_ESCAPE = re.compile(r"\\([!-/:-@\[-`{-~])")
_CODE_SPAN = re.compile(r"(`+)(?!`)(?:.|\n)+?(?<!`)\1(?!`)")
_WIKI_LINK = re.compile(r"!?\[\[([^\]|]+)(?:\|([^\]]+))?\]\]")
_IMAGE = re.compile(r"!\[([^\]]*)\]\([^)\s]*(?:\s+\"[^\"]*\")?\)")
_LINK = re.compile(r"\[([^\]]*)\]\([^)\s]*(?:\s+\"[^\"]*\")?\)")
_TAG = re.compile(r"</?[A-Za-z][^<>]{0,200}>")
_SENTENCE_END = re.compile(r"(?<=[.!?])[\"')\]]*\s+(?=\S)|(?<=[。！？])")
_SETTING = re.compile(r"(title|description)\s*[:=]\s*(.+?)\s*$", re.IGNORECASE)


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
class _Block:
    text: str
    line: int
    is_code: bool = False

    @property
    def words(self) -> int:
        return count_words(self.text)


@dataclass(slots=True)
class _Section:
    path: tuple[str, ...]
    line: int
    blocks: list[_Block]


def count_words(text: str) -> int:
    """Words as spaces part them; a text without spaces counts two characters a word."""
    words = len(text.split())
    return max(words, sum(char > "\u2e7f" for char in text) // 2) if not text.isascii() else words


def plain(text: str) -> str:
    """Markdown as it reads: without link targets, images' addresses and tags."""
    text = _IMAGE.sub(r"\1", text)
    text = _LINK.sub(r"\1", text)
    return _TAG.sub(" ", text)


def cut_markdown(text: str) -> Outline:
    """`text` in pieces, each under its heading path; fenced code is kept whole."""
    lines = text.splitlines()
    start, title, description = _front_matter(lines)
    sections = list(_sections(lines, start))
    if not title:
        title = next((section.path[0] for section in sections if section.path), "")
    if description:
        sections.insert(0, _Section((), 1, [_Block(description, 1)]))
    pieces = [piece for section in sections for piece in _pieces(section, title)]
    if not pieces:
        # A text of headings alone is still found by them.
        headings = [section for section in sections if section.path]
        pieces = [Piece("", section.path[-1], section.line) for section in headings]
    return Outline(title, tuple(pieces))


def cut_text(text: str, first_line: int = 1) -> Outline:
    """Plain `text` in pieces along its paragraphs, without headings."""
    section = _Section((), first_line, [])
    paragraph: list[str] = []
    for number, line in enumerate([*text.splitlines(), ""], first_line):
        if line.strip():
            paragraph.append(line.rstrip())
        elif paragraph:
            section.blocks.append(_Block("\n".join(paragraph), number - len(paragraph)))
            paragraph = []
    return Outline("", tuple(_pieces(section, "")))


def _front_matter(lines: Sequence[str]) -> tuple[int, str, str]:
    """Where the text proper begins, and the title and description that the preamble names."""
    if not lines or lines[0].strip() not in ("---", "+++"):
        return 0, "", ""
    fence = lines[0].strip()
    end = next((at for at in range(1, min(len(lines), 200)) if lines[at].strip() == fence), None)
    if end is None:
        return 0, "", ""
    found: dict[str, str] = {}
    for line in lines[1:end]:
        if match := _SETTING.match(line):
            found.setdefault(match[1].lower(), match[2].strip("\"'"))
    description = found.get("description", "")
    return (
        end + 1,
        found.get("title", ""),
        "" if description in ("|", ">", ">-", "|-") else description,
    )


def _sections(lines: Sequence[str], start: int) -> Iterator[_Section]:
    """The text's sections in order; link references are resolved, anchors and escapes removed."""
    references: dict[str, str] = {}
    raw: list[_Section] = []
    section = _Section((), start + 1, [])
    stack: list[tuple[int, str]] = []
    paragraph: list[str] = []
    paragraph_line = start + 1

    def flush() -> None:
        nonlocal paragraph
        if paragraph:
            section.blocks.append(_Block("\n".join(paragraph), paragraph_line))
            paragraph = []

    def enter(level: int, heading: str, line: int) -> None:
        nonlocal section
        flush()
        raw.append(section)
        while stack and stack[-1][0] >= level:
            stack.pop()
        heading = " ".join(plain(_clean(heading, {})).replace("*", "").replace("`", "").split())
        if heading:
            stack.append((level, heading))
        section = _Section(tuple(name for _, name in stack), line, [])

    at = start
    while at < len(lines):
        line = lines[at].rstrip()
        number = at + 1
        if fence := _FENCE.match(line):
            end = _fence_end(lines, at, fence[1])
            flush()
            section.blocks.append(_Block("\n".join(lines[at:end]), number, is_code=True))
            at = end
            continue
        if heading := _HEADING.match(line):
            enter(len(heading[1]), heading[2] or "", number)
        elif len(paragraph) == 1 and _UNDERLINE.match(line) and not paragraph[0].startswith("|"):
            text, paragraph = paragraph[0], []
            enter(1 if line.lstrip()[0] == "=" else 2, text, paragraph_line)
        elif not paragraph and (reference := _REFERENCE.match(line)):
            references.setdefault(reference[1].casefold(), reference[2])
        elif line.strip():
            if not paragraph:
                paragraph_line = number
            paragraph.append(line)
        else:
            flush()
        at += 1
    flush()
    raw.append(section)
    for section in raw:
        for block in section.blocks:
            if not block.is_code:
                block.text = _clean(block.text, references)
        section.blocks = [block for block in section.blocks if block.text.strip()]
        yield section


def _fence_end(lines: Sequence[str], start: int, mark: str) -> int:
    """The index after the closing fence; an unclosed one runs to the end of the text."""
    closing = re.compile(rf" *{re.escape(mark[0])}{{{len(mark)},}} *$")
    for at in range(start + 1, len(lines)):
        if closing.match(lines[at].rstrip()):
            return at + 1
    return len(lines)


def _clean(text: str, references: Mapping[str, str]) -> str:
    """A paragraph without invisible marks; code spans stay as they are."""

    def link(match: re.Match[str]) -> str:
        target = references.get((match[2] or match[1]).casefold())
        return f"[{match[1]}]({target})" if target else match[0]

    def tidy(part: str) -> str:
        part = _ANCHOR.sub("", part)
        part = _WIKI_LINK.sub(lambda match: match[2] or match[1], part)
        if references:
            part = _REFERENCE_USE.sub(link, part)
        return _ESCAPE.sub(r"\1", part)

    parts: list[str] = []
    end = 0
    for span in _CODE_SPAN.finditer(text):
        parts += [tidy(text[end : span.start()]), span[0]]
        end = span.end()
    parts.append(tidy(text[end:]))
    return "\n".join(line.rstrip() for line in "".join(parts).splitlines() if line.strip())


def _pieces(section: _Section, title: str) -> Iterator[Piece]:
    """A section's blocks, packed to about TARGET_WORDS and never above MAX_WORDS but for code."""
    path = section.path[1:] if section.path[:1] == (title,) else section.path
    heading = " > ".join(path)
    packs: list[list[_Block]] = []
    words = 0
    for block in (part for whole in section.blocks for part in _split(whole)):
        if packs and (words + block.words <= TARGET_WORDS or _belongs(packs[-1], block, words)):
            packs[-1].append(block)
            words += block.words
        else:
            packs.append([block])
            words = block.words
    if len(packs) > 1:
        last = sum(block.words for block in packs[-1])
        if last < _MIN_WORDS and last + sum(block.words for block in packs[-2]) <= MAX_WORDS:
            tail = packs.pop()
            packs[-1] += tail
    for pack in packs:
        yield Piece(heading, "\n\n".join(block.text for block in pack), pack[0].line)


def _belongs(pack: Sequence[_Block], block: _Block, words: int) -> bool:
    """Whether a block stays with what leads to it: "Run this:" and its code, a short opening."""
    return (pack[-1].text.rstrip().endswith(":") or words < _MIN_WORDS) and (
        words + block.words <= MAX_WORDS
    )


def _split(block: _Block) -> Iterator[_Block]:
    """The block itself, or parts of it along lines, then sentences, then words."""
    limit = MAX_CODE_CHARS if block.is_code else None
    if (limit and len(block.text) <= limit) or (not limit and block.words <= MAX_WORDS):
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
            yield _Block(_joined(head, gathered, opening), first_line, block.is_code)
            gathered, size = [], 0
        if not gathered:
            first_line = line
        gathered.append(text)
        size += step
    if gathered:
        yield _Block(_joined(head, gathered, opening), first_line, block.is_code)


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
