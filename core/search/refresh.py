"""Owns how the index follows the folder: what changed is read again, the rest is left alone.

It must not know ranking or who waits for it. Everything here blocks and runs in a thread.
"""

import hashlib
import logging
import time
from collections.abc import Callable, Mapping
from dataclasses import replace

from core.search import documents
from core.search.analyzer import Analyzer
from core.search.folder import FileStamp, Folder
from core.search.formats import Unreadable
from core.search.markdown import plain
from core.search.report import IndexReport, Progress, Skipped
from core.search.rows import Draft, FileEntry, Row
from core.search.store import Busy, Store, Writer

log = logging.getLogger(__name__)

BUSY_WAIT_S = 5.0
"""How long a refresh waits for another process to finish writing before it only follows."""


class Refresher:
    """Brings a store up to date with a folder."""

    def __init__(self, folder: Folder, store: Store, analyzer: Analyzer) -> None:
        self._folder = folder
        self._store = store
        self._analyzer = analyzer

    def run(
        self, should_stop: Callable[[], bool], on_progress: Callable[[Progress], None]
    ) -> IndexReport:
        """Read what changed and commit it at once; a search before that sees the old state."""
        started = time.monotonic()
        deadline = started + BUSY_WAIT_S
        while True:
            files, refused = self._folder.scan()
            known = self._store.snapshot()[0].entries()
            try:
                entries, counts = self._apply(files, known, should_stop, on_progress)
                is_follower = False
                break
            except Busy:
                if time.monotonic() > deadline or should_stop():
                    log.info("another process is writing the index; following it")
                    entries, counts, is_follower = known, (0, 0, 0), True
                    break
            # In a thread: the writer's end is not announced to other processes.
            time.sleep(0.05)
        skipped = [Skipped(entry.path, entry.reason) for entry in entries.values() if entry.reason]
        added, changed, deleted = counts
        return IndexReport(
            added=added,
            changed=changed,
            deleted=deleted,
            unchanged=len(entries) - added - changed,
            passages=sum(entry.passages for entry in entries.values()),
            skipped=tuple(sorted([*refused, *skipped], key=lambda item: item.path)),
            duration_ms=round((time.monotonic() - started) * 1000),
            is_follower=is_follower,
        )

    def _apply(
        self,
        files: Mapping[str, FileStamp],
        known: Mapping[str, FileEntry],
        should_stop: Callable[[], bool],
        on_progress: Callable[[Progress], None],
    ) -> tuple[dict[str, FileEntry], tuple[int, int, int]]:
        """The entries afterwards, and how many were added, changed, deleted."""
        gone = [path for path in known if path not in files]
        doubtful = [
            file
            for path, file in files.items()
            if (entry := known.get(path)) is None
            or not file.stamp
            or (entry.size, entry.stamp) != (file.size, file.stamp)
        ]
        entries = {path: entry for path, entry in known.items() if path in files}
        if not gone and not doubtful:
            return entries, (0, 0, 0)
        added = changed = 0
        with self._store.write(should_stop) as writer:
            for path in gone:
                writer.delete(path)
            for done, file in enumerate(doubtful):
                if should_stop():
                    return dict(known), (0, 0, 0)
                on_progress(Progress("reading", done, len(doubtful)))
                before = known.get(file.path)
                entries[file.path], is_other = self._take_in(writer, file, before)
                added += before is None
                changed += before is not None and is_other
        on_progress(Progress("reading", len(doubtful), len(doubtful)))
        return entries, (added, changed, len(gone))

    def _take_in(
        self, writer: Writer, file: FileStamp, before: FileEntry | None
    ) -> tuple[FileEntry, bool]:
        """The file's new entry, and whether its content differs from `before`."""
        target = self._folder.resolve(file.path)
        entry = FileEntry(file.path, file.size, file.stamp, "", "", 0)
        parts: tuple[documents.Part, ...] = ()
        try:
            if target is None:
                raise Unreadable("disappeared while it was read")
            data = documents.read_bytes(target)
            mark = documents.fingerprint(data)
            if before and before.fingerprint == mark:
                entry = replace(before, size=file.size, stamp=file.stamp)
                if entry != before:
                    writer.touch(entry)
                return entry, False
            entry = replace(entry, fingerprint=mark)
            parsed = documents.parse(file.path, data)
            parts = parsed.parts
            entry = replace(
                entry, title=parsed.title, passages=len(parts), language=parsed.language
            )
        except Unreadable as err:
            entry = replace(entry, reason=str(err))
        except Exception:
            # A fault of ours in one file must not keep the others from being found.
            log.exception("could not read %s", file.path)
            entry = replace(entry, reason="could not be read (see the log)")
        if entry != before:
            writer.add(
                entry, (draft(self._analyzer, file.path, entry.title, part) for part in parts)
            )
        return entry, True


def draft(analyzer: Analyzer, path: str, title: str, part: documents.Part) -> Draft:
    """A passage as it goes into the index: its title and headings count twice."""
    key = content_key(title, part.heading, part.text)
    names = analyzer.tokens(f"{title}\n{part.heading}")
    body = analyzer.tokens(plain(part.text))
    return Draft(
        Row(path, title, part.heading, part.text, part.line, part.page, key),
        " ".join([*names, *names, *body]),
        " ".join(names),
    )


def content_key(title: str, heading: str, text: str) -> int:
    """A number from 1 to 2⁶⁴ - 1 for what a passage says, wherever it stands."""
    content = "\x00".join((title, heading, text)).encode()
    return int.from_bytes(hashlib.blake2b(content, digest_size=8).digest(), "big") or 1
