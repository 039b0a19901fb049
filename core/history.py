"""Transcripts of a conversation: whole pairs of question and answer, text only.

It must not know Redis: a turn is appended in the one call that makes its run answered, and read
with the message that is taken (core/inbox.py). Secrets are redacted by the caller.
"""

import json
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

MAX_TURNS = 100
"""As many turns of a conversation are kept; the token limit of a prompt is far below."""

_TURN_TOKENS = 8
"""What a turn costs beside its text: roles and the author's name."""


@dataclass(frozen=True, slots=True)
class Turn:
    """What one user asked and what was answered. `at` is in Unix seconds."""

    author_id: str
    author_name: str
    text: str
    answer: str
    run_id: str
    at: float

    @property
    def tokens(self) -> int:
        """About how many tokens it takes in a prompt."""
        return _TURN_TOKENS + estimate_tokens(self.text) + estimate_tokens(self.answer)


_FIELDS = tuple(field.name for field in fields(Turn))


def estimate_tokens(text: str) -> int:
    """About how many tokens `text` has: a quarter per character, one per CJK character.

    Rounded up. It errs on the high side for English prose, so a limit holds.
    """
    wide = 0 if text.isascii() else sum(unicodedata.east_asian_width(c) in "WF" for c in text)
    return wide + (len(text) - wide + 3) // 4


def trim(turns: Sequence[Turn], max_tokens: int) -> list[Turn]:
    """The newest whole turns within `max_tokens`, oldest first; the newest one always stays."""
    kept: list[Turn] = []
    left = max_tokens
    for turn in reversed(turns):
        left -= turn.tokens
        if kept and left < 0:
            break
        kept.append(turn)
    return kept[::-1]


def turn_to_json(turn: Turn) -> str:
    """A turn as it is kept."""
    data = {name: getattr(turn, name) for name in _FIELDS}
    return json.dumps(data, ensure_ascii=False, separators=(",", ":"))


def turn_from_json(raw: str | bytes) -> Turn:
    """The inverse of `turn_to_json`."""
    return turn_from_data(json.loads(raw))


def turn_from_data(data: Mapping[str, Any]) -> Turn:
    """A turn from its decoded JSON; what this version does not know is left out."""
    return Turn(**{name: data[name] for name in _FIELDS})
