"""What a secret looks like in a text, and how it is blotted out.

It must not know where a text comes from or goes to: memory, history, traces, logs and checkpoints
all use the same functions.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from core.passwords import find_spoken
from core.secret_patterns import rules

MAX_DEPTH = 60
"""How deep `redact_json` goes; what lies deeper is left out."""


@dataclass(frozen=True, slots=True)
class Secret:
    """A secret at `text[start:end]`. `kind` is for people: "github token", "card number"."""

    kind: str
    start: int
    end: int


def find_secrets(text: str) -> list[Secret]:
    """The secrets in `text`, in order, without overlaps."""
    found = sorted(_matches(text), key=lambda secret: (secret.start, -secret.end))
    merged: list[Secret] = []
    for secret in found:
        if merged and secret.start < merged[-1].end:
            before = merged[-1]
            merged[-1] = Secret(before.kind, before.start, max(before.end, secret.end))
        else:
            merged.append(secret)
    return merged


def _matches(text: str) -> Iterator[Secret]:
    lowered = text.lower()
    for rule in rules():
        for hint in rule.hints:  # plain loops: a generator would double the time of a clean text
            if hint in lowered:
                for start, end in rule.spans(text):
                    yield Secret(rule.kind, start, end)
                break
    for kind, start, end in find_spoken(text):
        yield Secret(kind, start, end)


def redact(text: str) -> str:
    """`text` with each secret replaced by `[redacted: kind]`. Twice is the same as once."""
    for _ in range(8):  # taking one out can give another its edge; nearly always one round
        secrets = find_secrets(text)
        if not secrets:
            break
        parts: list[str] = []
        at = 0
        for secret in secrets:
            parts += [text[at : secret.start], f"[redacted: {secret.kind}]"]
            at = secret.end
        text = "".join([*parts, text[at:]])
    return text


def redact_json(value: Any, depth: int = 0) -> Any:
    """A JSON-like `value` with every text in it redacted, names included; tuples become lists.

    A text under a telling name (`{"password": "…"}`, or key and value of one fact) is judged
    together with that name.
    """
    if depth > MAX_DEPTH:
        return "[redacted: too deep]"
    if isinstance(value, str):
        return redact(value)
    if isinstance(value, Mapping):
        items = cast("Mapping[Any, Any]", value)
        label = items.get("key", items.get("name"))
        return {
            redact(name) if isinstance(name, str) else name: _redact_named(
                label if name == "value" and isinstance(label, str) else name, item, depth + 1
            )
            for name, item in items.items()
        }
    if isinstance(value, Sequence) and not isinstance(value, bytes | bytearray):
        return [redact_json(item, depth + 1) for item in cast("Sequence[Any]", value)]
    return value


def _redact_named(name: Any, item: Any, depth: int) -> Any:
    if isinstance(name, str) and isinstance(item, str | int) and not isinstance(item, bool):
        label = f"{re.sub('[_-]+', ' ', name)[:80]}: "
        for secret in find_secrets(f"{label}{item}"):
            if secret.end > len(label) and secret.start <= len(label):
                return f"[redacted: {secret.kind}]"
    return redact_json(item, depth)
