"""Owns the index on disk: passages and the list of files they came from, changed together.

It must not know files' formats, nor how a question is ranked. Everything here blocks.
"""

import json
import shutil
import time
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import tantivy

from core.errors import SearchError
from core.search.locks import try_lock
from core.search.rows import Draft, FileEntry, Row

VERSION = 2
"""Raised when the fields change, so that indexes made before are rebuilt."""

_HEAP_BYTES = 30_000_000
_CREATE_WAIT_S = 10.0
_MAX_FILES = 10_000_000


class Busy(Exception):
    """Another process is writing."""


@dataclass(frozen=True, slots=True)
class Match:
    """A passage's address in one snapshot, with its lexical score (0 when not asked by words)."""

    address: tantivy.DocAddress
    score: float
    key: int


def _schema() -> tantivy.Schema:
    builder = tantivy.SchemaBuilder()
    builder.add_text_field("tokens", tokenizer_name="whitespace", index_option="freq")
    builder.add_text_field("title_tokens", tokenizer_name="whitespace", index_option="freq")
    # `path` stands on passages, `file` on the entry of the file itself.
    builder.add_text_field("path", stored=True, tokenizer_name="raw", index_option="basic")
    builder.add_text_field("file", tokenizer_name="raw", index_option="basic")
    builder.add_unsigned_field("is_file", indexed=True)
    builder.add_unsigned_field("key", indexed=True, fast=True)
    builder.add_bytes_field("data", stored=True)
    return builder.build()


class Snapshot:
    """One consistent state of the index. What it finds, it can also fetch."""

    def __init__(self, searcher: tantivy.Searcher, schema: tantivy.Schema) -> None:
        self._searcher = searcher
        self._schema = schema

    @property
    def size(self) -> int:
        """Passages and files together."""
        return self._searcher.num_docs

    def frequency(self, term: str) -> int:
        """In how many passages `term` occurs."""
        return self._searcher.doc_freq("tokens", term)

    def by_words(self, terms: Mapping[str, float], title_boost: float, limit: int) -> list[Match]:
        """The best `limit` passages that hold at least one of `terms`."""
        if not terms:
            return []
        return self._matches(self._words_query(terms, title_boost), limit)

    def by_keys(
        self, keys: Sequence[int], terms: Mapping[str, float], title_boost: float, limit: int
    ) -> list[Match]:
        """The passages with one of `keys`, scored by `terms` (0 where none occurs)."""
        if not keys:
            return []
        wanted = tantivy.Query.term_set_query(self._schema, "key", list(keys))
        clauses = [(tantivy.Occur.Must, tantivy.Query.const_score_query(wanted, 0.0))]
        if terms:
            clauses.append((tantivy.Occur.Should, self._words_query(terms, title_boost)))
        return self._matches(tantivy.Query.boolean_query(clauses), limit)

    def fetch(self, match: Match) -> Row:
        """The passage at a match of this snapshot."""
        document = self._searcher.doc(match.address)
        fields: dict[str, Any] = json.loads(bytes(document.get_first("data") or b"{}"))
        return Row(path=str(document.get_first("path")), key=match.key, **fields)

    def rows(self, keys: Sequence[int]) -> list[Row]:
        """One passage for each of `keys` that is in this snapshot."""
        found: list[Row] = []
        for key in keys:
            query = tantivy.Query.term_query(self._schema, "key", key)
            found.extend(self.fetch(match) for match in self._matches(query, 1))
        return found

    def entries(self) -> dict[str, FileEntry]:
        """All files by path."""
        found: dict[str, FileEntry] = {}
        query = tantivy.Query.term_query(self._schema, "is_file", 1)
        # The engine makes room for `limit` results at once, so ask for as many as can be.
        limit = max(1, min(self._searcher.num_docs, _MAX_FILES))
        for _, address in self._searcher.search(query, limit, count=False).hits:
            data = self._searcher.doc(address).get_first("data")
            entry = FileEntry(**json.loads(bytes(data or b"{}")))
            found[entry.path] = entry
        return found

    def keys(self) -> list[int]:
        """The content keys of all passages, with repetitions."""
        everything = tantivy.Query.range_query(
            self._schema, "key", tantivy.FieldType.Unsigned, lower_bound=1
        )
        limit = max(1, self._searcher.num_docs)
        hits = self._searcher.search(everything, limit, count=False).hits
        addresses = [address for _, address in hits]
        return [int(key) for key in self._searcher.fast_field_values("key", addresses) if key]

    def _words_query(self, terms: Mapping[str, float], title_boost: float) -> tantivy.Query:
        clauses: list[tuple[tantivy.Occur, tantivy.Query]] = []
        for term, weight in terms.items():
            for field, boost in (("tokens", weight), ("title_tokens", weight * title_boost)):
                query = tantivy.Query.term_query(self._schema, field, term, "freq")
                boosted = tantivy.Query.boost_query(query, boost)
                clauses.append((tantivy.Occur.Should, boosted))
        return tantivy.Query.boolean_query(clauses)

    def _matches(self, query: tantivy.Query, limit: int) -> list[Match]:
        hits = self._searcher.search(query, limit, count=False).hits
        keys = self._searcher.fast_field_values("key", [address for _, address in hits])
        return [
            Match(address, float(score), int(key or 0))
            for (score, address), key in zip(hits, keys, strict=True)
        ]


class Writer:
    """Changes that become visible together when the block that opened it ends well."""

    def __init__(self, writer: tantivy.IndexWriter) -> None:
        self._writer = writer
        self.is_dirty = False

    def delete(self, path: str) -> None:
        """Forget a file and its passages."""
        self._writer.delete_documents_by_term("path", path)
        self._writer.delete_documents_by_term("file", path)
        self.is_dirty = True

    def add(self, entry: FileEntry, drafts: Iterable[Draft]) -> None:
        """Put in a file's passages, in place of those it had."""
        self.delete(entry.path)
        for draft in drafts:
            document = tantivy.Document()
            document.add_text("tokens", draft.tokens)
            document.add_text("title_tokens", draft.title_tokens)
            document.add_text("path", draft.row.path)
            document.add_unsigned("key", draft.row.key)
            document.add_bytes("data", _json(draft.row, "title", "heading", "text", "line", "page"))
            self._writer.add_document(document)
        self._add_entry(entry)

    def touch(self, entry: FileEntry) -> None:
        """Note a file's new size and times; its passages stay."""
        self._writer.delete_documents_by_term("file", entry.path)
        self._add_entry(entry)
        self.is_dirty = True

    def _add_entry(self, entry: FileEntry) -> None:
        document = tantivy.Document()
        document.add_text("file", entry.path)
        document.add_unsigned("is_file", 1)
        document.add_bytes("data", _json(entry, *FileEntry.__slots__))
        self._writer.add_document(document)


def _json(value: object, *names: str) -> bytes:
    """The named fields. Not `asdict`, which copies each value first."""
    fields = {name: getattr(value, name) for name in names}
    return json.dumps(fields, ensure_ascii=False).encode()


class Store:
    """The index of one folder. Any process may read; one at a time writes."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._seen = (0, 0, 0)
        self._index = self._open()
        self._schema = self._index.schema
        self._seen = self._mark()

    @property
    def folder(self) -> Path:
        """Where it is on disk."""
        return self._folder

    def snapshot(self) -> tuple[Snapshot, bool]:
        """The newest state, and whether it differs from that of the last call.

        Other processes' writes are seen through the time and number of the engine's list of
        segments, which it replaces as a whole.
        """
        mark = self._mark()
        is_new = mark != self._seen
        if is_new:
            self._index.reload()
            self._seen = mark
        return Snapshot(self._index.searcher(), self._schema), is_new

    @contextmanager
    def write(self, should_stop: Callable[[], bool]) -> Generator[Writer]:
        """A writer; its changes are committed at the end, or none of them on an exception.

        Raises:
            Busy: another process is writing.
        """
        try:
            engine = self._index.writer(heap_size=_HEAP_BYTES, num_threads=1)
        except ValueError as err:
            raise Busy from err
        writer = Writer(engine)
        try:
            yield writer
            if should_stop() or not writer.is_dirty:
                engine.rollback()
            else:
                engine.commit()
        except BaseException:
            engine.rollback()
            raise
        finally:
            # Waits until segments are merged, and gives the lock back.
            engine.wait_merging_threads()

    def _mark(self) -> tuple[int, int, int]:
        try:
            status = (self._folder / "meta.json").stat()
        except FileNotFoundError:
            # Somebody cleared the data: what is open goes on answering.
            return self._seen
        return status.st_mtime_ns, status.st_ino, status.st_size

    def _open(self) -> tantivy.Index:
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
            return self._open_or_create()
        except OSError as err:
            why = (err.strerror or "unknown fault").lower()
            raise SearchError(f"The index cannot be kept in {self._folder}: {why}") from err

    def _open_or_create(self) -> tantivy.Index:
        deadline = time.monotonic() + _CREATE_WAIT_S
        while True:
            # Two processes that create at once would each start a list of segments.
            with try_lock(self._folder.with_name(f"{self._folder.name}.lock")) as is_mine:
                if is_mine or time.monotonic() > deadline:
                    try:
                        index = tantivy.Index(_schema(), str(self._folder), reuse=True)
                    except ValueError:
                        # Not an index, or of other fields, or damaged: it can be made again.
                        shutil.rmtree(self._folder)
                        self._folder.mkdir(parents=True)
                        index = tantivy.Index(_schema(), str(self._folder), reuse=True)
                    index.config_reader("manual")
                    index.reload()
                    return index
            time.sleep(0.02)
