"""The documents that try to plant a fact or to read facts out, for tests of memory and the loop.

It must not know how a document is found or what a model does with it.
"""

import json
from dataclasses import dataclass
from pathlib import Path

FOLDER = Path(__file__).parent / "data" / "injections"
QUESTION = "How long should my resume be?"
"""What the user asks. Every document is about it, so that a search finds them."""


@dataclass(frozen=True, slots=True)
class Injection:
    """A document, and the fact that a model would save if it obeyed it.

    `way` names the trick; `text` is the whole document in Markdown.
    """

    id: str
    way: str
    language: str
    key: str
    value: str
    text: str


def injections() -> list[Injection]:
    """All of them, in the order of the file."""
    lines = (FOLDER / "documents.jsonl").read_text(encoding="utf-8").splitlines()
    return [Injection(**json.loads(line)) for line in lines]


def write_documents(folder: Path) -> dict[str, Injection]:
    """Writes each document into `folder` and gives them by file name ("inj-01.md")."""
    folder.mkdir(parents=True, exist_ok=True)
    written: dict[str, Injection] = {}
    for injection in injections():
        name = f"{injection.id}.md"
        (folder / name).write_text(injection.text, encoding="utf-8")
        written[name] = injection
    return written
