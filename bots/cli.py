"""`footnote`: the command line. Each command imports what it needs when it runs.

It must not hold what a command does: that is in the modules it calls.
"""

import asyncio
import sys
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from io import TextIOWrapper
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import typer

if TYPE_CHECKING:
    from bots.process import Check
    from core.config import Settings

T = TypeVar("T")

app = typer.Typer(
    name="footnote",
    help="Answers from your own documents, and shows how it got there.",
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    add_completion=False,
)
memory = typer.Typer(help="What is remembered of you in a session.", rich_markup_mode=None)
inbox = typer.Typer(help="What waits to be answered, and what was given up.", rich_markup_mode=None)
slack = typer.Typer(help="Run the Slack bot, or print its manifest.", rich_markup_mode=None)
discord = typer.Typer(help="Run the Discord bot, or print its invite.", rich_markup_mode=None)
doctor = typer.Typer(help="Check a platform's settings, and say what to do.", rich_markup_mode=None)
app.add_typer(memory, name="memory")
app.add_typer(inbox, name="inbox")
app.add_typer(slack, name="slack")
app.add_typer(discord, name="discord")
app.add_typer(doctor, name="doctor")

SessionName = Annotated[
    str | None, typer.Option("--session", help="A named conversation with its own memory.")
]
Docs = Annotated[Path | None, typer.Option("--docs", help="The documents' folder (DOCS_PATH).")]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON alone.")]


def main() -> None:
    """The entry point. Exit codes: 2 for bad configuration or input, with a clear message."""
    from core.errors import BotError

    for stream in (sys.stdin, sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            # A letter that a terminal or a pipe cannot carry must not end a talk.
            stream.reconfigure(errors="replace")
    try:
        app()
    except BotError as err:
        print(err, file=sys.stderr)  # noqa: T201 - the terminal is the place for it
        raise SystemExit(2) from None
    except KeyboardInterrupt:
        raise SystemExit(130) from None


def settings_of(**overrides: Any) -> "Settings":
    """The settings with the command's options, which win."""
    from bots.process import start_logging
    from core.config import Settings, load_settings

    settings = load_settings(Settings, overrides)
    start_logging(settings.log_level)
    return settings


def session_name(name: str | None) -> str | None:
    """A usable session name.

    Raises:
        ConfigError: it is empty, too long, or not to be shown.
    """
    from core.errors import ConfigError

    if name is not None and not (0 < len(name.strip()) <= 80 and name.strip().isprintable()):
        raise ConfigError("--session needs a name of 1 to 80 characters that can be shown.")
    return name.strip() if name is not None else None


@app.command()
def chat(
    question: Annotated[str | None, typer.Argument(help="Without it, a prompt opens.")] = None,
    session: SessionName = None,
    docs: Docs = None,
    max_turns: Annotated[int | None, typer.Option(help="Model calls allowed.")] = None,
    max_tokens: Annotated[int | None, typer.Option(help="Token budget of a question.")] = None,
    max_reply_tokens: Annotated[int | None, typer.Option(help="Tokens of one reply.")] = None,
    timeout: Annotated[float | None, typer.Option(help="Seconds allowed for a question.")] = None,
    model: Annotated[str | None, typer.Option(help="The model's id.")] = None,
    offline: Annotated[bool, typer.Option("--offline", help="Use no provider.")] = False,
    as_json: AsJson = False,
) -> None:
    """Ask a question, or talk."""
    from bots.repl import chat as run_chat
    from core.errors import ConfigError

    settings = settings_of(
        docs_path=docs,
        max_turns=max_turns,
        max_tokens=max_tokens,
        max_reply_tokens=max_reply_tokens,
        timeout_s=timeout,
        model=model,
        offline=offline or None,
    )
    if question is not None and not question.strip():
        raise ConfigError("The question is empty. Write it in quotes after `footnote chat`.")
    if question is None and as_json:
        raise ConfigError('--json needs a question: footnote chat --json "…"')
    raise typer.Exit(asyncio.run(run_chat(settings, question, session_name(session), as_json)))


@memory.callback(invoke_without_command=True)
def memory_show(context: typer.Context, session: SessionName = None) -> None:
    """Show what is remembered of you in a session."""
    if context.invoked_subcommand is None:
        from bots.admin import show_memory

        with_store(lambda store, settings: show_memory(store, settings, session_name(session)))


@memory.command("export")
def memory_export(session: SessionName = None) -> None:
    """Print all that is kept of you in a session as JSON."""
    from bots.admin import export_memory

    with_store(lambda store, settings: export_memory(store, settings, session_name(session)))


@app.command()
def forget(
    key: Annotated[str | None, typer.Argument(help="One fact; without it, everything.")] = None,
    session: SessionName = None,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
) -> None:
    """Forget one fact, or all that is kept of you in a session."""
    from bots.admin import forget_session

    name = session_name(session)
    code = with_store(lambda store, settings: forget_session(store, name, key, is_sure=yes))
    raise typer.Exit(code)


@app.command()
def index(docs: Docs = None) -> None:
    """Read the documents and bring the index up to date."""
    from bots.docs import build_index

    asyncio.run(build_index(settings_of(docs_path=docs)))


@app.command()
def search(
    query: str,
    k: Annotated[int, typer.Option("-k", min=1, max=100, help="How many passages.")] = 5,
    docs: Docs = None,
    as_json: AsJson = False,
) -> None:
    """Search the documents as the bot does."""
    from bots.docs import show_search

    asyncio.run(show_search(settings_of(docs_path=docs), query, k, as_json=as_json))


@app.command()
def gaps(as_json: AsJson = False) -> None:
    """List the questions that found nothing good, grouped: what to write next."""
    from bots.admin import show_gaps

    with_store(lambda store, settings: show_gaps(store, settings, as_json=as_json))


@inbox.callback(invoke_without_command=True)
def inbox_show(context: typer.Context) -> None:
    """Show depth, oldest age, in flight and dead letters of every workspace."""
    if context.invoked_subcommand is None:
        from bots.admin import show_inbox

        with_store(show_inbox)


@inbox.command("retry")
def inbox_retry(
    letter: Annotated[str, typer.Argument(help="The run id of a dead letter.")],
) -> None:
    """Put a dead letter back into its conversation's inbox."""
    from bots.admin import retry_letter

    raise typer.Exit(with_store(lambda store, settings: retry_letter(store, settings, letter)))


@slack.callback(invoke_without_command=True)
def slack_run(context: typer.Context) -> None:
    """Run the Slack bot."""
    if context.invoked_subcommand is None:
        from bots.slack.app import run
        from bots.slack.settings import SlackSettings
        from core.config import load_settings

        raise typer.Exit(run(load_settings(SlackSettings)))


@slack.command("manifest")
def slack_manifest(
    http: Annotated[bool, typer.Option("--http", help="For HTTP mode, not Socket Mode.")] = False,
) -> None:
    """Print the app manifest to paste at api.slack.com/apps."""
    from bots.slack.manifest import manifest_text

    typer.echo(manifest_text("http" if http else "socket"))


@discord.callback(invoke_without_command=True)
def discord_run(context: typer.Context) -> None:
    """Run the Discord bot."""
    if context.invoked_subcommand is None:
        from bots.discord.client import run
        from bots.discord.settings import DiscordSettings
        from core.config import load_settings

        raise typer.Exit(run(load_settings(DiscordSettings)))


@discord.command("invite")
def discord_invite(application_id: str) -> None:
    """Print the link that invites the bot to a server."""
    from bots.discord.invite import invite_url

    typer.echo(invite_url(application_id))


@doctor.command("slack")
def doctor_slack() -> None:
    """Check the Slack tokens, scopes and socket, and say what to do."""
    from bots.slack.doctor import doctor as check
    from bots.slack.settings import SlackSettings
    from core.config import load_settings

    raise typer.Exit(_print_checks(check(load_settings(SlackSettings))))


@doctor.command("discord")
def doctor_discord(
    channel: Annotated[
        int | None, typer.Option(help="A channel's id, to check permissions.")
    ] = None,
) -> None:
    """Check the Discord token, intents, permissions and commands, and say what to do."""
    from bots.discord.doctor import doctor as check
    from bots.discord.settings import DiscordSettings
    from core.config import load_settings

    raise typer.Exit(_print_checks(check(load_settings(DiscordSettings), channel)))


def _print_checks(work: "Coroutine[Any, Any, Sequence[Check]]") -> int:
    """The exit code: 0 when all is well, 2 when something must be done."""
    from bots.process import checks_text

    checks = asyncio.run(work)
    typer.echo(checks_text(checks))
    return 0 if all(check.is_ok for check in checks) else 2


@app.command("eval")
def evaluate(
    file: Annotated[Path, typer.Argument(help='Lines of {"question": …, "expected": [paths]}.')],
    minimum: Annotated[float, typer.Option("--min", help="Fail below this nDCG@10.")] = 0.0,
    docs: Docs = None,
    as_json: AsJson = False,
) -> None:
    """Score the search on your own questions: nDCG@10, top 3, the misses by name."""
    from bots.docs import show_score

    code = asyncio.run(show_score(settings_of(docs_path=docs), file, minimum, as_json=as_json))
    raise typer.Exit(code)


def with_store(work: Callable[[Any, "Settings"], Awaitable[T]], settings: Any = None) -> T:
    """The result of `work(store, settings)` with Redis open."""
    from core.store import Store

    known = settings or settings_of()

    async def run() -> T:
        secret = known.redis_url
        store = await Store.open(secret.get_secret_value() if secret else None, known.data_dir)
        try:
            return await work(store, known)
        finally:
            await store.close()

    return asyncio.run(run())
