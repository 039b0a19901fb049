"""The words that every chat platform shows alike: footer, trace lines, sources, commands.

It must not know a platform's client; splitting itself is in bots/split.py and offered from here.
"""

import re
from collections.abc import Callable, Sequence
from typing import Literal, cast, get_args

from bots.split import Part, close_fence, cut_part, split_markdown, take_part, utf8_bytes
from core.types import Run, Source, Step, StopReason

__all__ = [
    "Command",
    "Part",
    "close_fence",
    "cut_part",
    "defuse_discord",
    "defuse_slack",
    "footer",
    "parse_command",
    "public_line",
    "source_lines",
    "split_markdown",
    "take_part",
    "trace_line",
    "trace_title",
    "utf8_bytes",
]

Command = Literal["mute", "unmute", "forget", "memory"]

_Change = Callable[[str], str]

ZERO_WIDTH_SPACE = "\u200b"
MAX_ARGUMENT_CHARS = 80

_SEARCH = "search_docs"
_COMMAND_TAILS: dict[Command, str] = {
    "mute": r"(?: (?:yourself|this thread))?",
    "unmute": r"(?: (?:yourself|this thread))?",
    "forget": r"(?: (?:me|everything|this thread|about me|all|what you know about me))?",
    "memory": "",
}
_CODE = re.compile(r"(?<!`)(`++)(?:[^`\n]++|(?!\1(?!`))`++)*+\1(?!`)")
_FENCE = re.compile(r"(?:[ \t>]|[-*+] |\d{1,3}[.)] )*(`{3,32}|~{3,32})(.*)")
_AUTOLINK = re.compile(r"<((?:https?://|mailto:)[^<>|\s]+)>")
_ENTITY = re.compile(r"&(?=(?:lt|gt|amp);)")
_LIVE_IN_CODE = re.compile(r"<(?=[!@#]|[a-z]+:[^<>\s]*\|)", re.IGNORECASE)
# An address such as jobs@group.example stays whole: broken, nobody could copy it. Those of here
# and everyone do not, as Discord finds these words anywhere.
_EVERYONE = re.compile(
    r"@(?=(?:everyone|here)\b)|(?<!\w)@(?=(?:channel|group)\b)|@(?=(?:channel|group)\b(?!\.\w))",
    re.IGNORECASE,
)
_DISCORD_EVERYONE = re.compile(r"@(?=everyone|here\b)", re.IGNORECASE)
_DISCORD_TOKEN = re.compile(r"<(?=@[!&]?\d|#\d|a?:\w+:\d|/[^<>\n]*:\d|id:\w|t:-?\d)")


def footer(run: Run) -> str:
    """Why the run stopped and what it used, in one line of plain text.

    `Stopped: done · 2 model calls · 1 search · 1,482 tokens · $0.0004 · 3.1 s`; any reason but
    done has its plain sentence in front, unless the text says it, and the run's id at the end.
    The cost is left out when it is not known.
    """
    searches = sum(step.tool == _SEARCH for step in run.trace)
    others = len(run.trace) - searches
    items = [f"Stopped: {run.stop_reason.value}", _count(run.turns, "model call")]
    items += [_count(searches, "search", "searches")] if searches else []
    items += [_count(others, "tool")] if others else []
    items.append(_count(run.usage.total, "token"))
    items += [_cost(run.cost_usd)] if run.cost_usd is not None else []
    items.append(f"{run.duration_ms / 1000:.1f} s")
    line = " · ".join(items)
    if run.stop_reason is StopReason.DONE:
        return line
    if run.stop_reason.sentence in run.text:
        return f"{line} · run {run.id}"
    return f"{run.stop_reason.sentence} {line} · run {run.id}"


def trace_title(run: Run) -> str:
    """The heading of a trace: `Trace · 3 tool calls · 4.2 s · done`."""
    calls = _count(len(run.trace), "tool call")
    return f"Trace · {calls} · {run.duration_ms / 1000:.1f} s · {run.stop_reason.value}"


def trace_line(step: Step) -> str:
    """One step for everyone to read: turn, tool, what it was about, outcome, time.

    Never what a tool was given beside `Step.summary`, and never what it gave back. The text is
    plain and holds no Markdown or live mention.
    """
    items = [str(step.turn), _plain(step.tool, 40)]
    if step.summary.strip():
        items.append(_plain(step.summary, MAX_ARGUMENT_CHARS))
    items += ["error" if step.is_error else "ok", f"{step.ms:,} ms"]
    return " · ".join(items)


def public_line(text: str, limit: int) -> str:
    """A user's words as one plain line that everyone may read: no secret, number or mention."""
    from core.guard import public_text

    return _plain(public_text(text), limit)


def source_lines(sources: Sequence[Source]) -> list[str]:
    """Each source as one line of Markdown: `[1] [Title › Heading](url)`, or its path."""
    lines: list[str] = []
    for source in sources:
        heading = source.heading.split(" > ")[-1].strip()
        title = source.title.strip() or source.path
        label = title if heading in ("", title) else f"{title} › {heading}"
        label = re.sub(r"[\[\]`*_~<>|\\]", " ", _plain(label, 120))
        url = source.url
        if url and re.fullmatch(r"https?://[^\s<>|]+", url):
            url = url.replace("(", "%28").replace(")", "%29")
            lines.append(f"[{source.n}] [{label}]({url})")
        else:
            path = re.sub(r"[`<>|]", " ", _plain(source.path, 200))
            lines.append(f"[{source.n}] {label} (`{path}`)")
    return lines


def parse_command(text: str) -> Command | None:
    """The command that `text`, without its mention, is; None when it is a question.

    Only the bare word, or a set phrase such as "forget me", counts: "forget about ATS, what
    else matters?" stays a question.
    """
    words = " ".join(text.casefold().split()).strip(" .!/:,")
    for command in cast("tuple[Command, ...]", get_args(Command)):
        if re.fullmatch(command + _COMMAND_TAILS[command], words):
            return command
    return None


def defuse_slack(text: str) -> str:
    """Markdown in which Slack finds no mention, channel or disguised link.

    `<` is escaped outside code; in code, where an escape would show, a zero-width space breaks
    what Slack would parse. Lines stay lines.
    """
    return _by_code(text, _defuse_slack_prose, _defuse_slack_code)


def defuse_discord(text: str) -> str:
    """Markdown in which Discord shows no mention of anyone and no live token.

    Nothing else is touched: in code `</div>`, `<#` and `@group` are ordinary.
    """
    text = _DISCORD_EVERYONE.sub("@" + ZERO_WIDTH_SPACE, text)
    return _DISCORD_TOKEN.sub("<" + ZERO_WIDTH_SPACE, text)


def _defuse_slack_prose(text: str) -> str:
    text = _AUTOLINK.sub(r"\1", text)
    text = _ENTITY.sub("&amp;", text).replace("<", "&lt;")
    return _EVERYONE.sub("@" + ZERO_WIDTH_SPACE, text)


def _defuse_slack_code(text: str) -> str:
    return _EVERYONE.sub("@" + ZERO_WIDTH_SPACE, _LIVE_IN_CODE.sub("<" + ZERO_WIDTH_SPACE, text))


def _by_code(text: str, prose: _Change, code: _Change) -> str:
    """`text` with `code` applied to code spans and fences, and `prose` to everything else."""
    mark = ""
    lines: list[str] = []
    for line in text.split("\n"):
        fence = _FENCE.match(line)
        if mark:
            lines.append(code(line))
            if fence and fence[1].startswith(mark) and not fence[2].strip():
                mark = ""
        elif fence and "`" not in fence[2]:
            mark = fence[1]
            lines.append(code(line))
        else:
            lines.append(_by_span(line, prose, code))
    return "\n".join(lines)


def _by_span(line: str, prose: _Change, code: _Change) -> str:
    done: list[str] = []
    at = 0
    for match in _CODE.finditer(line):
        done += [prose(line[at : match.start()]), code(match[0])]
        at = match.end()
    return "".join([*done, prose(line[at:])])


def _plain(text: str, limit: int) -> str:
    """`text` on one line without control characters or anything live, cut with a mark."""
    text = " ".join("".join(c if c.isprintable() else " " for c in text).split())
    text = text if len(text) <= limit else text[: limit - 1].rstrip() + "…"
    return re.sub(r"[<>`*~|\\]", " ", _EVERYONE.sub("@" + ZERO_WIDTH_SPACE, text))


def _count(number: int, one: str, many: str = "") -> str:
    return f"{number:,} {one if number == 1 else many or one + 's'}"


def _cost(cost_usd: float) -> str:
    if 0 < cost_usd < 0.0001:
        return "<$0.0001"
    return f"${cost_usd:.4f}" if cost_usd < 1 else f"${cost_usd:.2f}"
