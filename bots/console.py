"""The terminal adapter: renders runs as they happen, one question at a time.

Progress goes to stderr, the answer with its sources, footer and trace to stdout. It holds no
business rule; what people can type beside questions is in bots/repl.py.
"""

import asyncio
import getpass
import os
import re
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from typing import Any
from uuid import uuid4

from rich.console import Console
from rich.markdown import Markdown
from rich.text import Text

from bots.text import footer, source_lines, trace_line, trace_title
from core.protocols import Ref
from core.types import MAX_MESSAGE_CHARS, Author, Conversation, Message, Run, Session, Step

PLATFORM = "console"
CHANNEL = "terminal"

# Control characters move the cursor or colour the screen; bidi marks reorder what is read.
_UNPRINTABLE = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")
_FENCE = re.compile(r"^\s*(?:```|~~~)", re.MULTILINE)


def printable(text: str) -> str:
    """`text` without what a terminal would obey."""
    return _UNPRINTABLE.sub("", text)


def one_line(text: str) -> str:
    """`text` without what a terminal would obey, on one line: a file's name may hold anything."""
    return " ".join(printable(text).split())


def user_name() -> str:
    """Who sits at the terminal, so that two users of one Redis are two."""
    with suppress(OSError, KeyError):
        return getpass.getuser()
    return "user"


def session_of(name: str) -> Session:
    """The memory of a named console session of this user."""
    user = user_name()
    return Session(PLATFORM, f"{user}/{name}", CHANNEL, user)


def message_of(session: Session, thread: str, text: str) -> Message:
    """What was typed, as the message that it is; longer text is cut, and says so."""
    return Message(
        id=uuid4().hex,
        conversation=Conversation(PLATFORM, session.workspace, CHANNEL, thread),
        session=session,
        author=Author(session.user, session.user),
        text=text[:MAX_MESSAGE_CHARS],
        sent_at=time.time(),
        is_cut=len(text) > MAX_MESSAGE_CHARS,
    )


class Screen(Console):
    """A console that falls silent when its output takes no more, as `| head` does or a full disk.

    `fault` is why, unless the reader simply left.
    """

    fault: OSError | None = None

    def print(self, *objects: Any, **options: Any) -> None:
        """As `Console.print`, but never raises for the output's sake."""
        try:
            super().print(*objects, **options)
        except OSError as err:
            self.fault = err
            self.on_broken_pipe()

    def on_broken_pipe(self) -> None:
        """Writes nothing more, nor what is left in the buffer when the process ends."""
        self.quiet = True
        with suppress(OSError), open(os.devnull, "w") as nowhere:
            os.dup2(nowhere.fileno(), self.file.fileno())


class ConsoleAdapter:
    """Answers the messages of one console session; `runs` gives them by message id."""

    platform = PLATFORM

    def __init__(self, session: Session, *, is_quiet: bool = False) -> None:
        self.workspaces: Sequence[str] = (session.workspace,)
        self.expected: str | None = None
        self._is_quiet = is_quiet
        self._runs: dict[str, asyncio.Future[Run]] = {}
        self.out = Screen(highlight=False, soft_wrap=not sys.stdout.isatty())
        self.err = Screen(stderr=True, highlight=False)

    def expect(self, message: Message) -> asyncio.Future[Run]:
        """The run that will answer `message`."""
        self.expected = message.id
        return self._runs.setdefault(message.id, asyncio.get_running_loop().create_future())

    async def enrich(self, message: Message) -> Message:
        """The message as it is: all that a terminal has is in it."""
        return message

    async def open_reply(self, message: Message, ref: Ref | None) -> "ConsoleReply":
        """A reply on the screen. What an earlier process had shown went with it."""
        is_other = message.id != self.expected
        if is_other:
            self.note(f"An earlier question is answered first: {message.text}")
        return ConsoleReply(self, message, is_quiet=self._is_quiet)

    def note(self, text: str) -> None:
        """A line about what is going on, beside the answer."""
        self.err.print(Text(printable(text)), style="dim", soft_wrap=True)

    def finished(self, message: Message, run: Run) -> None:
        """Hands the run to whoever waits for it."""
        waiting = self._runs.pop(message.id, None)
        if waiting is not None and not waiting.done():
            waiting.set_result(run)


class ConsoleReply:
    """One answer on the screen: paragraph by paragraph on a terminal, as it comes elsewhere."""

    def __init__(self, adapter: ConsoleAdapter, message: Message, *, is_quiet: bool) -> None:
        self._adapter = adapter
        self._message = message
        self._is_quiet = is_quiet
        self._is_markdown = adapter.out.is_terminal
        self._waiting = ""
        self._shown = ""
        self._status = ""

    @property
    def ref(self) -> Ref | None:
        """Nothing: a screen cannot be finished by another process."""
        return None

    async def status(self, text: str) -> None:
        """A dim line for each round and tool."""
        if text and text != self._status and not self._is_quiet:
            self._adapter.note(f"  · {text}")
        self._status = text

    async def append(self, delta: str) -> None:
        """Shows what is complete of the text."""
        if self._is_quiet:
            return
        self._waiting += printable(delta)
        self._shown += delta
        if not self._is_markdown:
            self._print_raw(self._waiting)
            self._waiting = ""
            return
        ready, _, rest = self._waiting.rpartition("\n\n")
        if ready and len(_FENCE.findall(ready)) % 2 == 0:
            self._adapter.out.print(Markdown(ready), end="\n")
            self._waiting = rest

    async def reset(self, text: str) -> None:
        """Says that the text starts again: a screen cannot be taken back."""
        if not self._is_quiet and self._shown.strip() and self._shown.strip() != text.strip():
            self._adapter.note("  · The answer starts again.")
            self._waiting = ""
            await self._repeat(text)

    async def close(self, run: Run) -> None:
        """The rest of the text, the sources, the footer, the folded trace."""
        if not self._is_quiet:
            if self._shown.strip() != run.text.strip():
                self._waiting = ""
                if run.text.startswith(self._shown):
                    await self.append(run.text[len(self._shown) :])
                else:
                    await self._repeat(run.text)
            if self._is_markdown and self._waiting.strip():
                self._adapter.out.print(Markdown(self._waiting))
            elif not self._is_markdown:
                self._print_raw("\n")
            self._print_end(run)
        self._adapter.finished(self._message, run)

    async def _repeat(self, text: str) -> None:
        self._shown = ""
        await self.append(text)

    def _print_raw(self, text: str) -> None:
        self._adapter.out.print(Text(text), end="")

    def _print_end(self, run: Run) -> None:
        out = self._adapter.out
        if run.sources:
            out.print()
            for line in source_lines(run.sources):
                out.print(Markdown(printable(line)) if self._is_markdown else Text(printable(line)))
        out.print()
        for change in run.facts_saved:
            before = f" (before: {change.old})" if change.old is not None else ""
            saved = f"Remembered: {change.key} = {change.value}{before}"
            out.print(Text(printable(saved)), style="green")
        if run.note:
            out.print(Text(printable(run.note)), style="yellow")
        out.print(Text(printable(footer(run))), style="dim")
        if run.trace:
            out.print(Text(printable(trace_title(run))), style="dim")
            for step in run.trace:
                out.print(Text(printable(f"  {trace_line(step)}")), style="dim")


def print_trace(out: Console, run: Run) -> None:
    """The whole trace: each step with what went in and what came back."""
    if not run.trace:
        out.print("This run called no tool.")
    for step in run.trace:
        _print_step(out, step)


def _print_step(out: Console, step: Step) -> None:
    import json

    out.print(Text(printable(trace_line(step))), style="bold")
    out.print(Text(printable(f"  in:  {json.dumps(dict(step.input), ensure_ascii=False)}")))
    body = printable(step.output).replace("\n", "\n       ")
    out.print(Text(f"  out: {body}"), style="dim")
