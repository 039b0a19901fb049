"""`footnote chat` as a process: asks one question, or talks until /quit.

It must not know how an answer is made; it submits messages and waits for their runs.
"""

import asyncio
import json
import signal
import sys
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import asdict
from pathlib import Path
from typing import IO, Any
from uuid import uuid4

import typer
from rich.text import Text

from bots.console import (
    PLATFORM,
    ConsoleAdapter,
    message_of,
    print_trace,
    printable,
    session_of,
)
from core.app import App
from core.config import Settings
from core.errors import ConfigError
from core.run_state import step_to_json
from core.types import Conversation, Message, Run, Session, StopReason

LOCK_POLL_S = 0.05
EARLIER_TIMEOUT_S = 60.0
DEFAULT_SESSION = "default"
HELP = "/memory  /forget [KEY]  /trace  /quit   Ctrl-C stops an answer, a second one leaves."


async def chat(settings: Settings, question: str | None, name: str | None, as_json: bool) -> int:
    """The exit code: 0 after `done` or a talk, 3 after another stop reason.

    Without `name` the memory is that of the default session and the conversation a new one.
    """
    session = session_of(name or DEFAULT_SESSION)
    thread = "main" if name else uuid4().hex
    adapter = ConsoleAdapter(session, is_quiet=as_json)
    app = await App.open(settings)
    try:
        terminal = Terminal(app, adapter, session, thread)
        greet(terminal, is_talk=question is None)
        await terminal.finish_earlier()
        if question is None:
            await talk(terminal)
            return 0
        run = await terminal.ask(question)
        if as_json:
            facts = await app.chat.facts(session)
            typer.echo(run_json(run, {key: fact.value for key, fact in facts.items()}))
        return 0 if run.stop_reason is StopReason.DONE else 3
    finally:
        await app.close()


class Terminal:
    """One console session of this process; `last` is its newest run."""

    def __init__(self, app: App, adapter: ConsoleAdapter, session: Session, thread: str) -> None:
        self.app = app
        self.adapter = adapter
        self.session = session
        self.conversation = Conversation(PLATFORM, session.workspace, session.channel, thread)
        self.last: Run | None = None
        self.is_leaving = False

    async def ask(self, text: str) -> Run:
        """The run that answers `text`; Ctrl-C cancels it.

        Raises:
            ConfigError: the answer cannot be written where it should go.
        """
        message = message_of(self.session, self.conversation.thread, text)
        if message.is_cut:
            self.adapter.note(f"Only the first {len(message.text):,} characters are read.")
        expected = self.adapter.expect(message)
        async with self._serving(), self._cancel_on_interrupt(message):
            await self.app.chat.submit(message)
            self.last = await expected
        if fault := self.adapter.out.fault:
            raise ConfigError(f"The answer could not be written: {fault.strerror}.")
        return self.last

    async def finish_earlier(self) -> None:
        """Answers what an earlier process of this session had taken and not finished."""
        backlog = self.app.backlog(PLATFORM, self.session.workspace)
        if (await backlog.stats()).depth == 0:
            return
        self.adapter.note("An earlier question is not answered yet; finishing it.")
        try:
            async with self._serving(), asyncio.timeout(EARLIER_TIMEOUT_S):
                while (await backlog.stats()).depth:  # noqa: ASYNC110 - another process may do it
                    await asyncio.sleep(LOCK_POLL_S)
        except TimeoutError:
            self.adapter.note("It takes long, and goes on with the next question.")

    @asynccontextmanager
    async def _serving(self) -> AsyncGenerator[None]:
        """Workers of this session, in one process at a time: the screen belongs to who asks."""
        stop = asyncio.Event()
        async with session_lock(
            self.app.settings.data_dir,
            self.session.workspace,
            lambda: self.adapter.note("Waiting for the same session in another terminal…"),
        ):
            serving = asyncio.create_task(self.app.serve([self.adapter], stop))
            try:
                yield
            finally:
                stop.set()
                await serving

    @asynccontextmanager
    async def _cancel_on_interrupt(self, message: Message) -> AsyncGenerator[None]:
        loop = asyncio.get_running_loop()
        tasks: set[asyncio.Task[Any]] = set()
        asking = asyncio.current_task()

        def interrupted() -> None:
            if tasks and asking is not None:
                self.is_leaving = True
                asking.cancel()
                return
            self.adapter.note("Stopping… (Ctrl-C again leaves)")
            stopping = self.app.chat.cancel(message.conversation, self.session.user)
            tasks.add(loop.create_task(stopping))

        # Windows has no loop handlers; Ctrl-C ends the process there
        with suppress(NotImplementedError):
            loop.add_signal_handler(signal.SIGINT, interrupted)
        try:
            yield
        except asyncio.CancelledError:
            if not self.is_leaving:
                raise
            raise KeyboardInterrupt from None
        finally:
            with suppress(NotImplementedError):
                loop.remove_signal_handler(signal.SIGINT)
            await asyncio.gather(*tasks, return_exceptions=True)


def greet(terminal: Terminal, *, is_talk: bool) -> None:
    """Says which model answers, about which documents, and how to change that."""
    settings = terminal.app.settings
    say = terminal.adapter.note
    if settings.is_offline:
        say(
            "Offline model: answers are sentences picked from the documents. For written answers "
            "set ANTHROPIC_API_KEY (export it, or put ANTHROPIC_API_KEY=… into .env)."
        )
    else:
        say(f"Model: {terminal.app.model.id}")
    say(f"Documents: {settings.docs_path} (DOCS_PATH=… to use your own)")
    if is_talk:
        say(HELP)


async def talk(terminal: Terminal) -> None:
    """Reads lines until /quit, the end of input, or Ctrl-C at the prompt."""
    read = _line_reader()
    while True:
        try:
            line = (await read()).strip()
        except (EOFError, KeyboardInterrupt):
            return
        if line in ("/quit", "/exit"):
            return
        if line.startswith("/"):
            await command(terminal, line)
        elif line:
            await terminal.ask(line)


def _line_reader() -> Callable[[], Any]:
    if not sys.stdin.isatty():

        async def read_line() -> str:
            line = await asyncio.to_thread(sys.stdin.readline)
            if not line:
                raise EOFError
            return line

        return read_line
    from prompt_toolkit import PromptSession

    prompt: PromptSession[str] = PromptSession()
    return lambda: prompt.prompt_async("you › ")


async def command(terminal: Terminal, line: str) -> None:
    """Runs one of the / commands."""
    out = terminal.adapter.out
    name, _, rest = line.partition(" ")
    key = rest.strip()
    if name == "/memory":
        facts = await terminal.app.chat.facts(terminal.session)
        for known, fact in facts.items():
            out.print(Text(printable(f"{known}: {fact.value}")))
        if not facts:
            out.print("I remember nothing about you in this session.")
    elif name == "/forget":
        report = await terminal.app.chat.forget(terminal.session, "channel", key or None)
        out.print(forget_text(report))
    elif name == "/trace":
        if terminal.last is None:
            out.print("There is no answer yet.")
        else:
            print_trace(out, terminal.last)
    else:
        out.print(Text(f"I do not know {name}. {HELP}"))


def forget_text(report: Any) -> str:
    """What was forgotten, by kind, in one sentence."""
    kinds = {name: count for name, count in asdict(report).items() if name != "is_complete"}
    names = {name: name.replace("_", " ") for name in kinds}
    counted = [
        f"{count} {names[name].removesuffix('s') if count == 1 else names[name]}"
        for name, count in kinds.items()
        if count
    ]
    said = f"Forgotten: {', '.join(counted)}." if counted else "There was nothing to forget."
    if report.is_complete:
        return said
    return f"{said} It is not complete, because the memory failed half-way; please do it again."


def run_json(run: Run, facts: dict[str, str]) -> str:
    """The object that `footnote chat --json` prints."""
    return json.dumps(
        {
            "run_id": run.id,
            "text": run.text,
            "sources": [asdict(source) for source in run.sources],
            "trace": [step_to_json(step) for step in run.trace],
            "turns": run.turns,
            "stop_reason": run.stop_reason.value,
            "usage": asdict(run.usage),
            "cost_usd": run.cost_usd,
            "facts": facts,
            "model": run.model,
        },
        ensure_ascii=False,
    )


@asynccontextmanager
async def session_lock(
    data_dir: Path, name: str, on_wait: Callable[[], None]
) -> AsyncGenerator[None]:
    """One process at a time answers a console session. Freed by the system when it dies.

    Raises:
        ConfigError: the data folder cannot be written.
    """
    from urllib.parse import quote

    try:
        data_dir.mkdir(parents=True, exist_ok=True)
        file = (data_dir / f"console-{quote(name, safe='')[:150]}.lock").open("w")
    except OSError as err:
        raise ConfigError(f"DATA_DIR {data_dir} cannot be written: {err.strerror}.") from err
    with file:
        await _locked(file, on_wait)
        yield


async def _locked(file: IO[str], on_wait: Callable[[], None]) -> None:
    try:
        import fcntl
    except ImportError:  # Windows: two terminals of one session may mix their answers
        return
    is_first = True
    while True:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return
        except BlockingIOError:
            if is_first:
                on_wait()
            is_first = False
            await asyncio.sleep(LOCK_POLL_S)
