"""Owns the reading of one document: the part asked for, or words that help to ask better.

It must not know the index. Everything here blocks.
"""

import difflib
from collections.abc import Mapping

from core.errors import ToolError
from core.protocols import Document
from core.search import documents
from core.search.folder import Folder
from core.search.formats import Unreadable
from core.search.rows import FileEntry

_NEAR = 3


def read(
    folder: Folder, entries: Mapping[str, FileEntry], path: str, start_line: int, max_chars: int
) -> Document:
    """The document at `path` from `start_line` (1-based) on, at most `max_chars` of it.

    Only what the walk over the folder listed is read: never a hidden file, nor one outside.

    Raises:
        ToolError: no such document or line; the text is for the model.
    """
    name = path.strip().removeprefix("./")
    entry = entries.get(name)
    target = folder.resolve(name) if entry else None
    if entry is None or target is None:
        raise ToolError(_no_such_document(folder, entries, name))
    if entry.reason:
        raise ToolError(f"{name} cannot be read: {entry.reason}.")
    try:
        text = documents.content_of(name, documents.read_bytes(target)).text
    except Unreadable as err:
        raise ToolError(f"{name} cannot be read: {err}.") from err
    return _cut(name, entry.title, text, start_line, max_chars)


def _no_such_document(folder: Folder, entries: Mapping[str, FileEntry], path: str) -> str:
    """What is wrong with `path`, and which documents are like it."""
    is_outside = path.startswith(("/", "~", "\\")) or ".." in path.split("/")
    if not is_outside and not folder.has_readable_type(path) and folder.resolve(path):
        return f"{path} is of a type that is not read here. Types read: {folder.types()}."
    readable = sorted(known for known, entry in entries.items() if not entry.reason)
    base = path.rsplit("/", 1)[-1].lower()
    by_name = {known.rsplit("/", 1)[-1].lower(): known for known in readable}
    near = difflib.get_close_matches(base, by_name, n=_NEAR, cutoff=0.5)
    text = (
        f"{path!r} is outside the documents' folder; only documents in it can be read."
        if is_outside
        else f"There is no document {path!r}."
    )
    if near:
        return f"{text} Did you mean: {', '.join(by_name[name] for name in near)}?"
    return f"{text} Use a path that search_docs gave, such as: {', '.join(readable[:_NEAR])}."


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
    is_cut = first - 1 + len(taken) < len(lines) or taken[-1:] != lines[-1:]
    return Document(path, title, "\n".join(taken), first, len(lines), is_cut)
