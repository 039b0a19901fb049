"""What the operator and the owner of a session can look at and change from the terminal."""

import json
import sys
from dataclasses import asdict

import typer

from bots.console import printable, session_of
from bots.repl import DEFAULT_SESSION, forget_text
from core.backlog import Backlog, workplaces
from core.config import Settings
from core.forget import forget, preview
from core.memory import Memory
from core.search.gaps import group_questions
from core.store import Store
from core.types import Session


def _session(name: str | None) -> Session:
    return session_of(name or DEFAULT_SESSION)


def _memory(store: Store, settings: Settings) -> Memory:
    return Memory(
        store, memory_ttl_days=settings.memory_ttl_days, run_ttl_days=settings.run_ttl_days
    )


async def show_memory(store: Store, settings: Settings, name: str | None) -> None:
    """Prints the facts of a console session."""
    facts = await _memory(store, settings).facts(_session(name))
    for key, fact in facts.items():
        typer.echo(printable(f"{key}: {fact.value}"))
    if not facts:
        typer.echo("Nothing is remembered about you in this session.")


async def export_memory(store: Store, settings: Settings, name: str | None) -> None:
    """Prints all that is kept of this user in a console session as JSON."""
    data = await _memory(store, settings).export(_session(name))
    typer.echo(json.dumps(data, ensure_ascii=False, indent=2))


async def forget_session(store: Store, name: str | None, key: str | None, *, is_sure: bool) -> int:
    """The exit code: 0 when it is complete, 1 when not or when the user said no."""
    session = _session(name)
    counts = await preview(store, session, "channel", key)
    if counts.total and not is_sure:
        if not sys.stdin.isatty():
            typer.echo("Nothing was forgotten: add --yes to confirm.", err=True)
            return 2
        what = f"the fact {key!r}" if key else f"{counts.total} things in this session"
        if not typer.confirm(f"Forget {what}?"):
            return 1
    report = await forget(store, session, "channel", key)
    typer.echo(forget_text(report))
    return 0 if report.is_complete else 1


async def show_inbox(store: Store, settings: Settings) -> None:
    """Prints the stock of every workspace, and each dead letter with its reason."""
    places = await workplaces(store)
    for platform, workspace in places:
        backlog = Backlog(store, platform, workspace, run_ttl_days=settings.run_ttl_days)
        stats = await backlog.stats()
        typer.echo(
            printable(
                f"{platform} {workspace}: {stats.depth} waiting or under way, oldest "
                f"{stats.oldest_age_s:.0f} s, {stats.in_flight} in flight, {stats.dead} dead"
            )
        )
        for letter in await backlog.dead_letters():
            typer.echo(f"  {letter.id}  {letter.reason}  after {letter.attempts} tries")
    if not places:
        typer.echo("The inbox is empty: nobody has asked anything yet.")


async def show_gaps(store: Store, settings: Settings, *, as_json: bool) -> None:
    """Prints what the documents do not answer, the most asked first."""
    questions: list[str] = []
    for platform, workspace in await workplaces(store):
        backlog = Backlog(store, platform, workspace, run_ttl_days=settings.run_ttl_days)
        questions += await backlog.gaps()
    groups = group_questions(questions)
    if as_json:
        typer.echo(json.dumps([asdict(group) for group in groups], ensure_ascii=False))
        return
    for group in groups:
        typer.echo(printable(f"{group.count:>4}  {group.title}"))
        for question in group.questions[1:]:
            typer.echo(printable(f"      {question}"))
    if not groups:
        typer.echo(f"No gaps in the last {settings.run_ttl_days} days.")


async def retry_letter(store: Store, settings: Settings, letter: str) -> int:
    """The exit code: 0 when the dead letter is queued again, 1 when there is none of that id."""
    for platform, workspace in await workplaces(store):
        backlog = Backlog(store, platform, workspace, run_ttl_days=settings.run_ttl_days)
        if await backlog.retry_dead(letter):
            typer.echo(f"{letter} is queued again.")
            return 0
    typer.echo(f"There is no dead letter {letter}. `footnote inbox` lists them.", err=True)
    return 1
