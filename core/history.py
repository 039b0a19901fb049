"""Transcripts of a conversation: whole pairs of question and answer, text only.

It must not write: a turn is appended in the one call that makes its run answered (core/inbox.py).
Secrets are redacted by the caller.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from core.store import Store
from core.types import Conversation


@dataclass(frozen=True, slots=True)
class Turn:
    """What one user asked and what was answered. `at` is in Unix seconds."""

    author_id: str
    author_name: str
    text: str
    answer: str
    run_id: str
    at: float


def estimate_tokens(text: str) -> int:
    """About how many tokens `text` has: a quarter per character, one per CJK character."""
    raise NotImplementedError


def trim(turns: Sequence[Turn], max_tokens: int) -> list[Turn]:
    """The newest whole turns within `max_tokens`, oldest first; the newest one always stays."""
    raise NotImplementedError


class History:
    """Reads transcripts."""

    def __init__(self, store: Store) -> None:
        raise NotImplementedError

    async def read(self, conversation: Conversation, max_tokens: int) -> list[Turn]:
        """The conversation's newest turns within `max_tokens`, oldest first. Raises StoreError."""
        raise NotImplementedError
