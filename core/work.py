"""What the inbox gives out: outcomes of accept, messages taken with their run, stock figures.

It must not know Redis.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from core.errors import BotError
from core.history import Turn
from core.memory import Fact
from core.types import ContextText, Conversation, Message

MAX_TRIES = 3

Phase = Literal["running", "answered"]
Outcome = Literal["queued", "duplicate", "muted", "not_engaged"]
CancelOutcome = Literal["cancelled", "not_asker", "nothing"]
WithdrawOutcome = Literal["withdrawn", "cancelled", "nothing"]
SaveOutcome = Literal["saved", "forgotten"]


class LeaseLost(BotError):
    """Another worker owns the conversation now: stop at once, post and save nothing."""


@dataclass(frozen=True, slots=True)
class Accepted:
    """What became of a message, and the conversation that it belongs to (aliases resolved)."""

    outcome: Outcome
    conversation: Conversation


@dataclass(frozen=True, slots=True)
class Taken:
    """A message to answer, with its run so far and what the prompt needs, read in one call.

    `attempts` counts earlier failures. `elapsed_ms` counts the time that workers spent on it.
    `final` is the run's JSON when `phase` is "answered": it is only to be delivered. `epoch` is
    that of the session when the run began. `facts`, `turns` (all kept ones, oldest first: trim
    them) and `notes` (what other bots said here) are as of now. `entry` and `lease` are the
    inbox's own.
    """

    message: Message
    run_id: str
    phase: Phase
    checkpoint: str | None
    ref: Mapping[str, Any] | None
    final: str | None
    attempts: int
    elapsed_ms: int
    is_cancelled: bool
    epoch: int
    facts: Mapping[str, Fact]
    turns: tuple[Turn, ...]
    notes: tuple[ContextText, ...]
    entry: str
    lease: str

    @property
    def conversation(self) -> Conversation:
        """Where it is answered."""
        return self.message.conversation

    @property
    def is_last_try(self) -> bool:
        """Whether one more failure makes it a dead letter."""
        return self.attempts + 1 >= MAX_TRIES


@dataclass(frozen=True, slots=True)
class Beat:
    """What a heartbeat learned, by run id: whose lease is lost, and who was asked to stop."""

    lost: frozenset[str]
    cancelled: frozenset[str]


@dataclass(frozen=True, slots=True)
class DeadLetter:
    """A message given up. `id` is the run id that the user was told; `at` is in Unix seconds."""

    id: str
    at: float
    reason: str
    attempts: int
    message: Message


@dataclass(frozen=True, slots=True)
class Stats:
    """The stock of a workspace. `depth` counts messages not done, those in flight included."""

    depth: int
    oldest_age_s: float
    in_flight: int
    dead: int
