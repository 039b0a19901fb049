"""Markdown as Discord shows it: tables aligned as code, deep headings bold, links without previews.

It must not know a message or the client; mentions are made harmless here, last of all.
"""

import re
import unicodedata
from collections.abc import Callable

from bots.text import defuse_discord

_FENCE = re.compile(r"[ \t>]*(`{3,}|~{3,})(.*)")
_SPAN = re.compile(r"(`+)(?:(?!\1).)+?\1")
_DELIMITER = re.compile(r"[ \t]*\|?[ \t]*:?-+:?[ \t]*(?:\|[ \t]*:?-+:?[ \t]*)*\|?[ \t]*")
_CELL = re.compile(r"(?<!\\)\|")
_DEEP_HEADING = re.compile(r" {0,3}#{4,6}[ \t]+(.*?)[ \t]*#*")
_LINK = re.compile(
    r"!?\[((?:[^\[\]\n]|\[[^\[\]\n]*\])*)\]\(<?(https?://[^\s<>()]*(?:\([^\s<>()]*\)[^\s<>()]*)*)>?(?:\s+\"[^\"\n]*\")?\)"
)
_BREAK = re.compile(r"<br\s*/?>", re.IGNORECASE)
_TAG = re.compile(
    r"</?(?:a|b|i|p|u|em|hr|li|ol|ul|div|img|kbd|sub|sup|span|strong|details|summary)(?:\s[^<>]*)?/?>",
    re.IGNORECASE,
)
MAX_TABLE_WIDTH = 80


def to_discord(text: str) -> str:
    """`text`, the model's Markdown, as Discord's; code stays as it is, no mention stays live."""
    done: list[str] = []
    lines = text.split("\n")
    mark, at = "", 0
    while at < len(lines):
        line = lines[at]
        fence = _FENCE.match(line)
        if mark:
            if fence and fence[1].startswith(mark) and not fence[2].strip():
                # Discord knows no fence of tildes.
                line, mark = line.replace("~~~", "```"), ""
            done.append(line)
        elif fence and "`" not in fence[2]:
            mark = fence[1]
            done.append(line.replace("~~~", "```"))
        elif "|" in line and at + 1 < len(lines) and _is_delimiter(line, lines[at + 1]):
            end = at + 2
            while end < len(lines) and "|" in lines[end]:
                end += 1
            done.append(_table([line, *lines[at + 2 : end]]))
            at = end
            continue
        else:
            done.append(_outside_code(line, _prose))
        at += 1
    return defuse_discord("\n".join(done))


def _is_delimiter(header: str, line: str) -> bool:
    return bool(_DELIMITER.fullmatch(line)) and len(_cells(header)) == len(_cells(line))


def _prose(text: str) -> str:
    return _TAG.sub("", _BREAK.sub("\n", _LINK.sub(_link, text)))


def _outside_code(line: str, change: Callable[[str], str]) -> str:
    heading = _DEEP_HEADING.fullmatch(line)
    if heading:
        line = f"**{heading[1].replace('**', '')}**"
    done: list[str] = []
    at = 0
    for span in _SPAN.finditer(line):
        done += [change(line[at : span.start()]), span[0]]
        at = span.end()
    return "".join([*done, change(line[at:])])


def _link(match: re.Match[str]) -> str:
    label, url = match[1].strip(), match[2]
    # A label that is itself an address shows literally, brackets and all.
    return f"<{url}>" if not label or "://" in label else f"[{label}](<{url}>)"


def _cells(row: str) -> list[str]:
    inner = row.strip().removeprefix("|")
    inner = inner[:-1] if inner.endswith("|") and not inner.endswith("\\|") else inner
    return [cell.strip().replace("\\|", "|") for cell in _CELL.split(inner)]


def _table(rows: list[str]) -> str:
    """A code block with columns of one width; a list where that would be too wide to read."""
    table = [[_bare(cell) for cell in _cells(row)] for row in rows]
    columns = len(table[0])
    table = [(row + [""] * columns)[:columns] for row in table]
    widths = [max(display_width(row[column]) for row in table) for column in range(columns)]
    if sum(widths) + 3 * (columns - 1) > MAX_TABLE_WIDTH:
        return _list(table)
    lines = [
        " │ ".join(
            cell + " " * (width - display_width(cell))
            for cell, width in zip(row, widths, strict=True)
        ).rstrip()
        for row in table
    ]
    rule = "─┼─".join("─" * width for width in widths)
    return "\n".join(["```", lines[0], rule, *lines[1:], "```"])


def _list(table: list[list[str]]) -> str:
    header, *rows = table
    lines: list[str] = []
    for row in rows:
        lines.append(f"- **{row[0]}**")
        pairs = zip(header[1:], row[1:], strict=True)
        lines += [f"  {name}: {cell}" for name, cell in pairs if cell]
    return "\n".join(lines)


def _bare(cell: str) -> str:
    """A cell's text without what a code block would show literally."""
    cell = re.sub(r"!?\[([^\[\]]*)\]\(([^()\s]*)\)", r"\1", cell)
    return re.sub(r"[*`]|__", "", _BREAK.sub(" ", cell))


def display_width(text: str) -> int:
    """Columns that `text` takes in a monospaced font."""
    return sum(_width(char) for char in text)


def _width(char: str) -> int:
    if unicodedata.combining(char) or unicodedata.category(char) in ("Mn", "Me", "Cf"):
        return 0
    return 2 if unicodedata.east_asian_width(char) in ("W", "F") else 1
