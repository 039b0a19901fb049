"""`footnote index` and `footnote search`: the documents seen from the terminal."""

import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, TextColumn
from rich.progress import Progress as Bar
from rich.text import Text

from bots.console import one_line
from core.config import Settings
from core.errors import ConfigError
from core.protocols import Hit
from core.search import DocIndex, IndexReport, Progress
from core.search.evaluate import evaluate, read_questions


def index_of(settings: Settings) -> DocIndex:
    """The index that the settings name, not opened."""
    return DocIndex(
        settings.docs_path,
        settings.data_dir,
        base_url=settings.docs_base_url,
        include=settings.docs_include,
        by_words_only=not settings.search_by_meaning,
    )


async def build_index(settings: Settings) -> None:
    """Brings the index up to date with a progress bar; prints counts and what was skipped.

    Raises:
        SearchError: the folder is missing or holds nothing that can be read.
    """
    library = index_of(settings)
    console = Console(stderr=True)
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
    with Bar(*columns, console=console, transient=True) as bar:
        tasks: dict[str, Any] = {}

        def show(progress: Progress) -> None:
            if progress.stage not in tasks:
                tasks[progress.stage] = bar.add_task(progress.stage.capitalize())
            bar.update(tasks[progress.stage], completed=progress.done, total=progress.total)

        try:
            report = await library.open(show)
            await library.embed(show)
        finally:
            await library.close()
    _print_report(settings, report)


def _print_report(settings: Settings, report: IndexReport) -> None:
    out = Console(highlight=False, soft_wrap=True)
    out.print(Text(f"{settings.docs_path}: {report.passages:,} passages"))
    out.print(
        f"{report.added} added, {report.changed} changed, {report.deleted} deleted, "
        f"{report.unchanged} unchanged, in {report.duration_ms / 1000:.1f} s"
    )
    for skipped in report.skipped:
        out.print(Text(one_line(f"skipped {skipped.path}: {skipped.reason}")))


async def show_score(settings: Settings, file: Path, minimum: float, *, as_json: bool) -> int:
    """The exit code: 1 when nDCG@10 is below `minimum`. Prints figures and misses.

    Raises:
        ConfigError: the questions cannot be read.
    """
    questions = read_questions(file)
    library = index_of(settings)
    await library.open()
    try:
        await library.embed()  # a score without the meanings would be of another search
        score = await evaluate(library, questions)
    finally:
        await library.close()
    if as_json:
        typer.echo(json.dumps(asdict(score), ensure_ascii=False))
    else:
        out = Console(highlight=False, soft_wrap=True)
        out.print(f"{score.questions} questions: nDCG@10 {score.ndcg:.3f}, top 3 {score.top3:.3f}")
        for miss in score.misses:
            place = f"found as number {miss.rank}" if miss.rank else "not among the first ten"
            out.print(Text(one_line(f"missed: {miss.question.text}")), style="bold")
            out.print(
                Text("  " + one_line(f"expected {', '.join(miss.question.expected)}: {place}"))
            )
            out.print(Text("  " + one_line(f"first were {', '.join(miss.found) or 'none'}")))
    return 0 if score.ndcg >= minimum else 1


async def show_search(settings: Settings, query: str, k: int, *, as_json: bool) -> None:
    """Prints the `k` best passages for `query`.

    Raises:
        ConfigError: there is nothing to look for.
    """
    if not query.strip():
        raise ConfigError("There is nothing to search for: give a question or some words.")
    library = index_of(settings)
    await library.open()
    try:
        hits = await library.search(query, k)
    finally:
        await library.close()
    if as_json:
        typer.echo(json.dumps([_hit_json(hit) for hit in hits], ensure_ascii=False))
        return
    out = Console(highlight=False, soft_wrap=True)
    if not hits:
        out.print("Nothing in the documents matches.")
    for place, hit in enumerate(hits, 1):
        item = hit.passage
        mark = "" if hit.is_good else "  (weak match)"
        name = f"{item.title} › {item.heading}" if item.heading else item.title
        out.print(Text(f"{one_line(f'{place}. {name}')}{mark}"), style="bold")
        out.print(Text(f"   {one_line(item.path)}:{item.line}  {hit.score:.3f}"), style="dim")
        out.print(Text(one_line(item.text)[:300]))


def _hit_json(hit: Hit) -> dict[str, Any]:
    item = hit.passage
    return {
        "path": item.path,
        "title": item.title,
        "heading": item.heading,
        "line": item.line,
        "page": item.page,
        "url": item.url,
        "score": hit.score,
        "is_good": hit.is_good,
        "text": item.text,
    }
