"""Slack's text, both ways: what people wrote as plain text, the model's Markdown made safe.

It must not know what is posted where.
"""

import html
import re

from bots.text import defuse_slack, utf8_bytes

MAX_PART_BYTES = 9_000
"""A streamed message holds 10.6 KB at least. Source: CopilotKit#6063, measured."""
MAX_PART_TABLES = 20
MAX_TABLE_ROWS = 90
MAX_TABLE_COLUMNS = 20
MAX_HELD_CHARS = 500

_TOKEN = re.compile(r"<([^<>]*)>")
_DELIMITER_ROW = re.compile(r"[ \t>]*\|?[ \t]*:?-+:?[ \t]*(?:\|[ \t]*:?-*:?[ \t]*)*\|?[ \t]*")
_CODE_SPAN = re.compile(r"(?<!`)(`++)(?:[^`\n]++|(?!\1(?!`))`++)*+\1(?!`)")
_LAST_WORD = re.compile(r"\S*\Z")
_UNSETTLED_LINE = re.compile(r"[\s>|:\-*+.)\d]*+(?:[`~#]|$)")


def plain_text(text: str, bot_user: str) -> str:
    """What a person wrote: the bot's mention dropped, tokens spelled out, entities decoded once.

    `<@U2>` becomes `@U2`, `<#C1|general>` `#general`, `<https://a|b>` `b (https://a)`.
    """

    def spelled(match: re.Match[str]) -> str:
        target, _, label = match[1].partition("|")
        if target == f"@{bot_user}":
            return " "
        if target.startswith(("@", "#")):
            return target[0] + (label.lstrip("@#") or target[1:])
        if target.startswith("!"):
            name = target[1:].split("^")[0]
            return label or f"@{name}"
        if label and label != target and not target.endswith(label):
            return f"{label} ({target})"
        return target.removeprefix("mailto:")

    text = _TOKEN.sub(spelled, text)
    for entity, char in (("&lt;", "<"), ("&gt;", ">"), ("&amp;", "&")):
        text = text.replace(entity, char)
    return re.sub(r"[ \t]{2,}", " ", text).strip()


def is_mentioned(text: str, bot_user: str) -> bool:
    """Whether the bot itself is mentioned, not a channel or everyone."""
    return re.search(rf"<@{re.escape(bot_user)}(?:\|[^<>]*)?>", text) is not None


def mentions_others(text: str) -> bool:
    """Whether any user or group is mentioned."""
    return re.search(r"<(?:@[UW]|!subteam\^)", text) is not None


def prepare(markdown: str) -> str:
    """The model's Markdown as Slack may be sent it: nothing live, no table too wide to render."""
    lines = defuse_slack(markdown).split("\n")
    return "\n".join(
        line.replace("-", "–")
        if line.count("|") > MAX_TABLE_COLUMNS and _DELIMITER_ROW.fullmatch(line)
        else line
        for line in lines
    )


def slack_size(text: str) -> int:
    """The bytes of `text`, or more where its tables use up a message sooner than its bytes do.

    Slack makes a block of each table: 50 blocks a message, 100 rows a table.
    """
    if "|" not in text:
        return utf8_bytes(text)
    tables = rows = longest = 0
    for line in text.split("\n"):
        rows = rows + 1 if "|" in line else 0
        longest = max(longest, rows)
        tables += "-" in line and _DELIMITER_ROW.fullmatch(line) is not None
    return max(
        utf8_bytes(text),
        tables * MAX_PART_BYTES // MAX_PART_TABLES,
        longest * MAX_PART_BYTES // MAX_TABLE_ROWS,
    )


def settled_length(markdown: str) -> int:
    """How much of a text under way can be sent: what follows will not change how it is prepared.

    Held back are the last word, an open code span or `<`, and a line that may become a fence or
    a table. What has been held for long is sent all the same.
    """
    start = markdown.rfind("\n") + 1
    line = markdown[start:]
    if len(line) > MAX_HELD_CHARS * 2:
        return len(markdown)
    if _UNSETTLED_LINE.match(line):
        return start
    kept = line[: len(line) - len(_LAST_WORD.findall(line)[0])]
    # What is held back cannot close what stands before it.
    open_code = _CODE_SPAN.sub(lambda match: "x" * len(match[0]), kept).find("`")
    kept = kept if open_code < 0 else kept[:open_code]
    open_angle = kept.rfind("<")
    kept = kept if open_angle < 0 or ">" in kept[open_angle:] else kept[:open_angle]
    return start + len(kept)


def fallback_text(markdown: str) -> str:
    """A short form for notifications, where blocks are not shown."""
    text = " ".join(html.unescape(re.sub(r"[`*_~#>|]", " ", markdown)).split())
    return defuse_slack(text if len(text) <= 150 else text[:149] + "…") or "Answer"
