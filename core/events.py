"""What happens in a run, as the loop tells it while it happens.

It must not know who listens.
"""

from dataclasses import dataclass

from core.types import FactChange, Run, Step


@dataclass(frozen=True, slots=True)
class TurnStarted:
    """The model is being asked for the `turn`-th time."""

    turn: int


@dataclass(frozen=True, slots=True)
class TextDelta:
    """More of the answer."""

    text: str


@dataclass(frozen=True, slots=True)
class TextReset:
    """Drop the text of the turn under way. `text` is what remains: all earlier turns' text."""

    text: str


@dataclass(frozen=True, slots=True)
class ToolStarted:
    """A tool begins. `summary` is a short, redacted form of its arguments."""

    turn: int
    tool: str
    summary: str


@dataclass(frozen=True, slots=True)
class ToolFinished:
    """A tool ended, well or not."""

    step: Step


@dataclass(frozen=True, slots=True)
class FactSaved:
    """A fact was saved; the adapter announces it and offers its owner an Undo."""

    change: FactChange


@dataclass(frozen=True, slots=True)
class RunFinished:
    """The last event of every run."""

    run: Run


Event = TurnStarted | TextDelta | TextReset | ToolStarted | ToolFinished | FactSaved | RunFinished
