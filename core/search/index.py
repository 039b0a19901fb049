"""Owns the library of one folder: keeps its index fresh, finds passages, reads documents.

It must not know who asks, nor where answers go. Blocking work runs in threads.
"""

import asyncio
import difflib
import hashlib
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

from core.errors import SearchError, ToolError
from core.search import analyzer, documents, ranking, store
from core.search.analyzer import Analyzer
from core.search.documents import Unreadable
from core.search.folder import Folder, require_root
from core.search.markdown import plain
from core.search.refresh import Refresher
from core.search.report import IndexReport, Progress
from core.search.store import FileEntry, Row, Snapshot, Store
from core.types import Document, Hit, Passage

CANDIDATES = 100
TITLE_BOOST = 0.25
MAX_TERMS = 64
_NEAR = 3


class DocIndex:
    """A folder's documents, searchable. Implements `core.types.Library`.

    `root` is the folder of documents, `data_dir` where indexes are kept, `base_url` a template
    for public links, `include` glob patterns of further files to read as text.
    """

    def __init__(
        self, root: Path, data_dir: Path, *, base_url: str | None = None, include: str = ""
    ) -> None:
        self._given_root = root
        self._data_dir = data_dir
        self._base_url = base_url
        self._include = include
        self._analyzer = Analyzer()
        self._stopping = threading.Event()
        self._refreshing = asyncio.Lock()
        self._folder: Folder | None = None
        self._store: Store | None = None
        self._entries: dict[str, FileEntry] = {}

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

    async def open(self) -> None:
        """Open the index of this folder, building or refreshing it where files changed.

        Raises:
            SearchError: no such folder, nothing readable in it, or no place for the index.
        """
        await asyncio.to_thread(self._open)
        report = await self.refresh()
        if not report.passages and not report.is_follower:
            raise SearchError(self._nothing_found(report))

    async def refresh(self, on_progress: Callable[[Progress], None] | None = None) -> IndexReport:
        """Take in what was added, changed or deleted since the last time.

        `on_progress` is called in the event loop. Searches meanwhile see the old state.

        Raises:
            SearchError: the folder is gone.
        """
        loop = asyncio.get_running_loop()

        def tell(progress: Progress) -> None:
            if on_progress:
                loop.call_soon_threadsafe(on_progress, progress)

        async with self._refreshing:
            folder, opened = self._parts()
            refresher = Refresher(folder, opened, self._analyzer)
            require_root(folder.root)
            report = await asyncio.to_thread(refresher.run, self._stopping.is_set, tell)
            await asyncio.to_thread(self._snapshot)
            return report

    async def search(self, query: str, k: int) -> Sequence[Hit]:
        """At most `k` passages, best first; empty when nothing matches."""
        return await asyncio.to_thread(self._search, query, k)

    async def read(self, path: str, start_line: int, max_chars: int) -> Document:
        """A document from `start_line` (1-based) on, at most `max_chars` of it.

        Raises:
            ToolError: no such document, or a path outside the root; the text is for the model.
        """
        return await asyncio.to_thread(self._read, path, start_line, max_chars)

    async def close(self) -> None:
        """Stop what is under way and let go of the index."""
        self._stopping.set()
        async with self._refreshing:
            self._store = None

    def _parts(self) -> tuple[Folder, Store]:
        if self._folder is None or self._store is None:
            raise SearchError("The index is not open.")
        return self._folder, self._store

    def _open(self) -> None:
        root = require_root(self._given_root)
        self._folder = Folder(root, documents.SUFFIXES, self._include)
        versions = f"{store.VERSION}.{documents.VERSION}.{analyzer.VERSION}"
        mark = hashlib.blake2b(str(root).encode(errors="surrogateescape"), digest_size=8)
        self._store = Store(self._data_dir / "search" / f"{mark.hexdigest()}-{versions}")
        self._entries = self._store.snapshot()[0].entries()

    def _snapshot(self) -> Snapshot:
        _, opened = self._parts()
        snapshot, is_new = opened.snapshot()
        if is_new:
            self._entries = snapshot.entries()
        return snapshot

    def _search(self, query: str, k: int) -> list[Hit]:
        snapshot = self._snapshot()
        terms = self._analyzer.terms(query)[:MAX_TERMS]
        matches = snapshot.by_words(terms, TITLE_BOOST, max(k, CANDIDATES))[: max(k, 0)]
        rarities = {term: ranking.rarity(snapshot.frequency(term), snapshot.size) for term in terms}
        hits: list[Hit] = []
        for match in matches:
            row = snapshot.fetch(match)
            tokens = set(self._analyzer.tokens(f"{row.title}\n{row.heading}\n{plain(row.text)}"))
            share = ranking.coverage(terms, rarities, tokens)
            is_good = share >= ranking.GOOD_COVERAGE
            hits.append(Hit(self._passage(row), match.score / matches[0].score, is_good))
        return hits

    def _passage(self, row: Row) -> Passage:
        return Passage(row.path, row.title, row.heading, row.text, row.line, row.page, None)

    def _read(self, path: str, start_line: int, max_chars: int) -> Document:
        folder, _ = self._parts()
        self._snapshot()
        name = path.strip().removeprefix("./")
        entry = self._entries.get(name)
        target = folder.resolve(name) if entry else None
        if entry is None or target is None:
            raise ToolError(self._no_such_document(folder, name))
        if entry.reason:
            raise ToolError(f"{name} cannot be read: it is {entry.reason}.")
        try:
            text = documents.text_of(folder, name, documents.read_bytes(target))
        except Unreadable as err:
            raise ToolError(f"{name} cannot be read: it is {err}.") from err
        return _cut(name, entry.title, text, start_line, max_chars)

    def _no_such_document(self, folder: Folder, path: str) -> str:
        """Words for the model: what is wrong with `path`, and which documents are like it."""
        outside = path.startswith(("/", "~", "\\")) or ".." in path.split("/")
        if not outside and not folder.has_readable_type(path) and folder.resolve(path):
            return f"{path} is of a type that is not read here. Types read: {folder.types()}."
        base = path.rsplit("/", 1)[-1].lower()
        by_name = {known.rsplit("/", 1)[-1].lower(): known for known in sorted(self._entries)}
        close = difflib.get_close_matches(base, by_name, n=_NEAR, cutoff=0.5)
        near = [by_name[name] for name in close]
        text = (
            f"{path!r} is outside the documents' folder; only documents in it can be read."
            if outside
            else f"There is no document {path!r}."
        )
        if near:
            return f"{text} Did you mean: {', '.join(near)}?"
        some = ", ".join(sorted(self._entries)[:_NEAR])
        return f"{text} Use a path that search_docs gave, such as: {some}."

    def _nothing_found(self, report: IndexReport) -> str:
        folder, _ = self._parts()
        text = f"DOCS_PATH has no readable documents: {self._given_root}. Types read: "
        text += f"{folder.types()}."
        if report.skipped:
            first = "; ".join(f"{item.path}: {item.reason}" for item in report.skipped[:_NEAR])
            text += f" Skipped: {first}."
        return text


def _cut(path: str, title: str, text: str, start_line: int, max_chars: int) -> Document:
    """The part of `text` from `start_line` that fits, whole lines where at least one fits."""
    lines = text.splitlines()
    if start_line > max(len(lines), 1):
        raise ToolError(f"{path} has {len(lines)} lines; start_line {start_line} is after its end.")
    first = max(start_line, 1)
    taken: list[str] = []
    size = 0
    for line in lines[first - 1 :]:
        if size + len(line) + 1 > max_chars:
            if not taken:
                taken.append(line[:max_chars])
            break
        taken.append(line)
        size += len(line) + 1
    shown = "\n".join(taken)
    is_cut = first - 1 + len(taken) < len(lines) or (
        len(taken) == 1 and len(taken[0]) < len(lines[first - 1])
    )
    return Document(path, title, shown, first, len(lines), is_cut)
