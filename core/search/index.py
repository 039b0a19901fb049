"""Owns the library of one folder: keeps its index fresh, finds passages, reads documents.

It must not know who asks, nor where answers go. Blocking work runs in threads.
"""

import asyncio
import contextlib
import hashlib
import logging
import os
import threading
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Self, TypeVar

from core.errors import SearchError
from core.protocols import Document, Hit, Passage
from core.search import analyzer, documents, finder, reader, store
from core.search.analyzer import Analyzer
from core.search.embedder import Embedder, MiniLM
from core.search.embedder import multilingual as installed_multilingual
from core.search.finder import Meaning
from core.search.folder import Folder, require_root
from core.search.links import Links
from core.search.meaning import Languages, Meanings
from core.search.refresh import Refresher
from core.search.report import IndexReport, Progress
from core.search.rows import FileEntry
from core.search.store import Snapshot, Store
from core.search.watcher import changes

log = logging.getLogger(__name__)
T = TypeVar("T")
OnProgress = Callable[[Progress], None]

EMBED_DELAY_S = 4.0
"""Embedding starts this long after opening: a process that answers one question has left."""

_EMBED_AGAIN_S = 5.0
_FOLLOW_S = 0.5


class DocIndex:
    """A folder's documents, searchable. Implements `core.protocols.Library`.

    `root` is the folder of documents, `data_dir` where indexes are kept, `base_url` a template
    for public links, `include` glob patterns of further files to read as text. `embedder` makes
    the vectors, `multilingual` those for questions in other languages (default: the models that
    are installed); `by_words_only` does without.
    """

    def __init__(
        self,
        root: Path,
        data_dir: Path,
        *,
        base_url: str | None = None,
        include: str = "",
        embedder: Embedder | None = None,
        multilingual: Embedder | None = None,
        by_words_only: bool = False,
    ) -> None:
        self._given_root = root.expanduser()
        self._data_dir = data_dir
        self._links = Links(base_url)
        self._include = include
        self._by_words_only = by_words_only
        self._english = embedder or MiniLM(data_dir / "models")
        self._multilingual = multilingual or (None if embedder else installed_multilingual())
        self._analyzer = Analyzer()
        self._refreshing = asyncio.Lock()
        self._stopping = threading.Event()
        self._closing = asyncio.Event()
        self._changed = asyncio.Event()
        self._embedding: asyncio.Task[None] | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._folder: Folder | None = None
        self._store: Store | None = None
        self._meanings: Meanings | None = None
        self._take(())

    async def __aenter__(self) -> Self:
        await self.open()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        err: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.close()

    async def open(self, on_progress: OnProgress | None = None) -> IndexReport:
        """Open the index of this folder, building or refreshing it where files changed.

        Passages get their vectors in the background; until then they are found by their words.

        Raises:
            SearchError: no such folder, nothing readable in it, or no place for the index.
        """
        self._loop = asyncio.get_running_loop()
        await asyncio.to_thread(self._open)
        report = await self.refresh(on_progress)
        if not report.passages and not report.is_follower:
            text = self._nothing_found(report)
            await self.close()
            raise SearchError(text)
        if self._meanings:
            self._embedding = asyncio.create_task(self._keep_embedded())
        return report

    async def close(self) -> None:
        """Stop what is under way and let go of the index."""
        self._stopping.set()
        self._closing.set()
        self._changed.set()
        if self._embedding:
            await self._embedding
        async with self._refreshing:
            self._store = None

    async def refresh(self, on_progress: OnProgress | None = None) -> IndexReport:
        """Take in what was added, changed or deleted since the last time.

        `on_progress` is called in the event loop. Searches meanwhile see the old state.

        Raises:
            SearchError: the folder is gone.
        """
        async with self._refreshing:
            _, opened = self._parts()
            # A link to the folder may lead to another one by now, as deployments do it.
            root = await asyncio.to_thread(require_root, self._given_root)
            self._folder = Folder(root, documents.SUFFIXES, self._include)
            refresher = Refresher(self._folder, opened, self._analyzer)
            report = await self._in_thread(refresher.run, on_progress)
            await asyncio.to_thread(self._snapshot)
            return report

    async def embed(self, on_progress: OnProgress | None = None) -> bool:
        """Give every passage its vector now; whether all have one afterwards.

        When another process is at it, this one waits for it. Progress as in `refresh`.
        """
        while self._meanings and not self._stopping.is_set():
            snapshot = await asyncio.to_thread(self._snapshot)
            if await self._in_thread(partial(self._meanings.fill, snapshot), on_progress):
                return True
            if self._meanings.is_down:
                return False
            await asyncio.sleep(_FOLLOW_S)
        return False

    async def watch(self) -> None:
        """Follow the folder until cancelled: changes are searchable within two seconds."""
        async with contextlib.aclosing(changes(self._given_root)) as seen:
            async for _ in seen:
                try:
                    await self.refresh()
                except (SearchError, OSError) as err:
                    log.warning("the documents could not be refreshed: %s", err)

    async def search(self, query: str, k: int) -> Sequence[Hit]:
        """At most `k` passages, best first; empty when nothing matches."""
        return await asyncio.to_thread(self._search, query, k)

    async def read(self, path: str, start_line: int, max_chars: int) -> Document:
        """A document from `start_line` (1-based) on, at most `max_chars` of it.

        Raises:
            ToolError: no such document, or a path outside the root; the text is for the model.
        """
        folder, _ = self._parts()
        await asyncio.to_thread(self._snapshot)
        return await asyncio.to_thread(
            reader.read, folder, self._entries, path, start_line, max_chars
        )

    async def _in_thread(
        self,
        work: Callable[[Callable[[], bool], OnProgress], T],
        on_progress: OnProgress | None,
    ) -> T:
        """`work` in a thread, which stops at a safe point when this task is cancelled."""
        loop = asyncio.get_running_loop()
        cancelled = threading.Event()

        def tell(progress: Progress) -> None:
            if on_progress:
                loop.call_soon_threadsafe(on_progress, progress)

        def should_stop() -> bool:
            return cancelled.is_set() or self._stopping.is_set()

        running = asyncio.ensure_future(asyncio.to_thread(work, should_stop, tell))
        try:
            return await asyncio.shield(running)
        except asyncio.CancelledError:
            cancelled.set()
            # The writer's lock is given back before anyone else is let in.
            await asyncio.wait([running])
            raise

    async def _keep_embedded(self) -> None:
        """Embed what is missing, now and after every change, until the index is closed."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(EMBED_DELAY_S):
                await self._closing.wait()
        while self._meanings and not self._closing.is_set():
            self._changed.clear()
            snapshot = await asyncio.to_thread(self._snapshot)
            is_done = await self._in_thread(partial(self._meanings.fill, snapshot), None)
            # Not done: another process is at it, or the model is down; either may change.
            wait_s = None if is_done else _EMBED_AGAIN_S
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(wait_s):
                    await self._changed.wait()

    def _parts(self) -> tuple[Folder, Store]:
        if self._folder is None or self._store is None:
            raise SearchError("The index is not open.")
        return self._folder, self._store

    def _open(self) -> None:
        root = require_root(self._given_root)
        name = os.fsencode(self._given_root.absolute())
        mark = hashlib.blake2b(name, digest_size=8)
        home = self._data_dir / "search" / mark.hexdigest()
        versions = f"{store.VERSION}.{documents.VERSION}.{analyzer.VERSION}"
        self._folder = Folder(root, documents.SUFFIXES, self._include)
        self._store = Store(home / f"index-{versions}")
        self._take(self._store.snapshot()[0].entries().values())
        if not self._by_words_only:
            self._meanings = Meanings(home, self._english, self._multilingual)

    def _snapshot(self) -> Snapshot:
        _, opened = self._parts()
        snapshot, is_new = opened.snapshot()
        if is_new:
            self._take(snapshot.entries().values())
            if self._loop:
                self._loop.call_soon_threadsafe(self._changed.set)
        return snapshot

    def _search(self, query: str, k: int) -> list[Hit]:
        snapshot = self._snapshot()
        found = finder.find(query, k, snapshot, self._analyzer, lambda: self._meaning(query))
        return [
            Hit(
                Passage(
                    row.path,
                    row.title,
                    row.heading,
                    row.text,
                    row.line,
                    row.page,
                    self._links.url(row.path, row.heading, row.line, row.page),
                ),
                item.score,
                item.is_good,
            )
            for item in found
            for row in (item.row,)
        ]

    def _take(self, entries: Iterable[FileEntry]) -> None:
        self._entries = {entry.path: entry for entry in entries}
        self._languages = Languages.of(self._entries.values())

    def _meaning(self, query: str) -> Meaning | None:
        return self._meanings.ask(query, self._languages) if self._meanings else None

    def _nothing_found(self, report: IndexReport) -> str:
        folder, _ = self._parts()
        text = f"DOCS_PATH has no readable documents: {self._given_root}. "
        text += f"Types read: {folder.types()}."
        if report.skipped:
            first = "; ".join(f"{item.path}: {item.reason}" for item in report.skipped[:3])
            text += f" Skipped: {first}."
        return text
