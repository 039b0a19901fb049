"""The tree of errors that callers can act on. It must not know who raises them.

    BotError
    ├── ConfigError        bad settings or input; the text tells the operator what to do
    ├── ModelError         the model's provider failed; `reason` is the stop reason to report
    ├── ToolError          a tool could not do what was asked; the text goes to the model
    ├── MemoryRejected     a fact was not kept; the text goes to the model (also a ToolError)
    ├── StoreError         Redis failed; the text names what was not saved, never a host
    └── SearchError        the index or a document could not be read

A user never sees `str(error)`: adapters show the stop reason's plain sentence and a run id.
"""

from core.types import StopReason


class BotError(Exception):
    """The base of everything that Footnote raises on purpose."""


class ConfigError(BotError):
    """A setting or an argument is wrong. The text is for the operator and names the remedy."""


class ModelError(BotError):
    """The provider failed in a way that ends or interrupts a turn.

    `reason` is the stop reason that the run gets if nothing helps. `retryable` says that the
    same request may succeed at once (a fault in mid-stream), so the loop tries it once more.
    """

    def __init__(self, message: str, reason: StopReason, *, retryable: bool = False) -> None:
        super().__init__(message)
        self.reason = reason
        self.retryable = retryable


class ToolError(BotError):
    """A tool could not do what was asked. The text is written for the model."""


class MemoryRejected(ToolError):
    """A fact was not kept; the text tells the model why and what would be accepted."""


class StoreError(BotError):
    """Redis could not do what was asked. The text holds no host, port, user or password."""


class SearchError(BotError):
    """The index cannot be built or opened. The text is for the operator."""
