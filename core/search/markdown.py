"""Owns how Markdown is read: text → sections with heading paths, free of invisible marks.

It must not know where the text came from, nor how pieces are stored.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import takewhile

from core.search.pieces import Block, Outline, Piece, Section, pieces_of

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
_FOLDED = re.compile(r"[|>][-+]?")
_SETTING = re.compile(r"(title|description)\s*[:=]\s*(.+?)\s*$", re.IGNORECASE)


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
        sections.insert(0, Section((), 1, [Block(description, 1)]))
    pieces = [piece for section in sections for piece in pieces_of(section, title)]
    if not pieces:
        # A text of headings alone is still found by them.
        headings = [section for section in sections if section.path]
        pieces = [Piece("", section.path[-1], section.line) for section in headings]
    return Outline(title, tuple(pieces))


def _front_matter(lines: Sequence[str]) -> tuple[int, str, str]:
    """Where the text proper begins, and the title and description that the preamble names."""
    if not lines or lines[0].strip() not in ("---", "+++"):
        return 0, "", ""
    fence = lines[0].strip()
    end = next((at for at in range(1, min(len(lines), 200)) if lines[at].strip() == fence), None)
    if end is None:
        return 0, "", ""
    found: dict[str, str] = {}
    for at, line in enumerate(lines[1:end], 1):
        if match := _SETTING.match(line):
            value = match[2].strip("\"'")
            if _FOLDED.fullmatch(value):
                value = " ".join(takewhile(_is_indented, lines[at + 1 : end]))
            found.setdefault(match[1].lower(), " ".join(value.split()))
    return end + 1, found.get("title", ""), found.get("description", "")


def _is_indented(line: str) -> bool:
    return line[:1].isspace() or not line


def _sections(lines: Sequence[str], start: int) -> Iterator[Section]:
    """The text's sections in order; link references are resolved, anchors and escapes removed."""
    references: dict[str, str] = {}
    raw: list[Section] = []
    section = Section((), start + 1, [])
    stack: list[tuple[int, str]] = []
    paragraph: list[str] = []
    paragraph_line = start + 1

    def flush() -> None:
        nonlocal paragraph
        if paragraph:
            section.blocks.append(Block("\n".join(paragraph), paragraph_line))
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
        section = Section(tuple(name for _, name in stack), line, [])

    at = start
    while at < len(lines):
        line = lines[at].rstrip()
        number = at + 1
        if fence := _FENCE.match(line):
            end = _fence_end(lines, at, fence[1])
            flush()
            section.blocks.append(Block("\n".join(lines[at:end]), number, is_code=True))
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
