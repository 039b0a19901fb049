"""What an answer looks like in Discord: parts, sources, footer, buttons, the trace's text.

It must not call Discord; it makes `Wanted` messages from text and runs.
"""

import re
from collections.abc import Sequence
from dataclasses import replace

from bots.discord.ingress import WITHOUT_TEXT
from bots.discord.markup import to_discord
from bots.discord.posts import Wanted
from bots.text import (
    defuse_discord,
    footer,
    public_line,
    source_lines,
    split_markdown,
    trace_line,
    trace_title,
)
from core.types import Message, Run, Source

LIMIT = 2_000
MAX_PARTS = 4
MAX_TAIL = 1_500
MAX_SOURCE_LINE = 400
THREAD_NAME = 80
NAMELESS = "Footnote"
_REST_IN_FILE = "-# … the whole answer is in the attached file"


def streamed(text: str, status: str) -> list[Wanted]:
    """The messages of an answer that still grows, with what is going on below."""
    parts = split_markdown(to_discord(text), LIMIT)
    if len(parts) > MAX_PARTS:
        parts = [*parts[: MAX_PARTS - 1], "-# … the answer goes on; it will be attached as a file"]
    line = f"\n-# ⏳ {defuse_discord(_one_line(status, 120))}"
    if status and parts and len(parts[-1]) + len(line) <= LIMIT:
        parts[-1] += line
    return [Wanted(part) for part in parts]


def finished(
    run: Run, *, hint: str = "", buttons: Sequence[tuple[str, str]] = (), limit: int = LIMIT
) -> list[Wanted]:
    """The messages of a finished answer: footer and buttons on the last, a file when it is long."""
    tail = _tail(run, hint)
    parts = split_markdown(to_discord(run.text), limit) if run.text.strip() else []
    file = None
    if len(parts) > MAX_PARTS:
        file = ("answer.md", run.text.encode())
        parts = [*parts[: MAX_PARTS - 1], _REST_IN_FILE]
    if parts and len(parts[-1]) + len(tail) + 2 > limit:
        # A footer alone would be one more message that says nothing.
        parts[-1:] = split_markdown(parts[-1], limit - len(tail) - 2)
    parts = [*parts[:-1], f"{parts[-1]}\n\n{tail}"] if parts else [tail]
    last = Wanted(parts[-1], tuple(buttons), file)
    return [*(Wanted(part) for part in parts[:-1]), last]


def _tail(run: Run, hint: str) -> str:
    """What stands under the answer; everything on its own line, small."""
    lines = [_source_line(source) for source in run.sources]
    total = len(lines)
    while sum(map(len, lines)) > MAX_TAIL - 600:
        lines.pop()
    if len(lines) < total:
        lines.append(f"-# … and {total - len(lines)} more sources")
    if run.note:
        lines.append(f"-# ⚠️ {defuse_discord(_one_line(run.note, 200))}")
    if run.facts_saved:
        keys = ", ".join(_one_line(change.key, 40) for change in run.facts_saved)
        lines.append(f"-# 📌 Remembered: {defuse_discord(_one_line(keys, 300))}")
    lines += [f"-# {hint}"] if hint else []
    lines.append(f"-# {footer(run)}")
    return "\n".join(lines)


def _source_line(source: Source) -> str:
    """A source, small; by its path where its address is too long, for half a link leads nowhere."""
    [line] = source_lines([source])
    if len(line) > MAX_SOURCE_LINE:
        [line] = source_lines([replace(source, url=None)])
    return f"-# {to_discord(line)}"


def facts_button(run: Run) -> list[tuple[str, str]]:
    """The button to what a run saved, when it saved something."""
    return [(f"facts:{run.id}", "📌 What I saved")] if run.facts_saved else []


def trace_button(run: Run) -> list[tuple[str, str]]:
    """The button to a run's full trace, when there is one."""
    return [(f"trace:{run.id}", "🔍 Trace")] if run.trace else []


def trace_post(run: Run) -> Wanted:
    """The trace as everyone in a thread may read it; the button gives the asker all of it."""
    lines = [f"**{trace_title(run)}**"]
    for number, step in enumerate(run.trace):
        line = f"-# {defuse_discord(trace_line(step))}"
        if sum(len(each) + 1 for each in lines) + len(line) > LIMIT - 40:
            lines.append(f"-# … and {len(run.trace) - number} more")
            break
        lines.append(line)
    return Wanted("\n".join(lines), tuple(trace_button(run)))


def full_trace(run: Run) -> str:
    """Every step with its input and output, as Markdown, for the asker alone."""
    blocks = [f"# {trace_title(run)}", f"Run {run.id} · {run.model}"]
    for step in run.trace:
        outcome = "error" if step.is_error else "ok"
        inputs = "\n".join(f"{name}: {value}" for name, value in step.input.items())
        blocks.append(f"## {step.turn} · {step.tool} · {outcome} · {step.ms} ms")
        blocks.append(f"{_fenced(inputs)}\n{_fenced(step.output)}")
    return "\n\n".join(blocks)


def thread_name(message: Message) -> str:
    """A thread's name from its question, 1 to 80 characters, on one line."""
    if message.text == WITHOUT_TEXT:
        return NAMELESS
    return " ".join(public_line(message.text, THREAD_NAME).split()) or NAMELESS


def _fenced(text: str) -> str:
    longest = max((len(ticks) for ticks in re.findall(r"`{3,}", text)), default=2)
    mark = "`" * (longest + 1)
    return f"{mark}\n{text}\n{mark}"


def _one_line(text: str, limit: int) -> str:
    text = " ".join("".join(c if c.isprintable() else " " for c in text).split())
    return text if len(text) <= limit else text[: limit - 1].rstrip() + "…"
