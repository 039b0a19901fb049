"""What has several implementations, and the values that its methods take and give.

An adapter with its replies, a library of documents, a model, a tool. Everything here is frozen;
it must not know Redis, the provider or any platform.
"""

from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from core.types import FactChange, Message, Run, Session, Usage

# What an adapter implements --------------------------------------------------------------------

Ref = Mapping[str, Any]
"""A JSON-safe note of what was posted for a message, by which another process finishes it."""


class Reply(Protocol):
    """One answer on its way to people. Every method is bounded in time by the adapter.

    `close` must be called exactly once; after a takeover it finishes in place what `ref` names
    and posts nothing twice.
    """

    @property
    def ref(self) -> Ref | None:
        """What was posted so far; None before the first post returned."""
        ...

    async def status(self, text: str) -> None:
        """Show what is going on, or clear it with an empty text."""
        ...

    async def append(self, delta: str) -> None:
        """Add to the answer's text."""
        ...

    async def reset(self, text: str) -> None:
        """Replace the answer's text so far by `text`."""
        ...

    async def close(self, run: Run) -> None:
        """Finish: the whole text, sources, footer, trace, saved facts."""
        ...


class Adapter(Protocol):
    """A platform: opens replies and completes messages. Holds no business rule."""

    @property
    def platform(self) -> str:
        """The platform's name in keys: "console", "slack", "discord"."""
        ...

    @property
    def workspaces(self) -> Sequence[str]:
        """The workspaces whose messages this process can answer."""
        ...

    async def enrich(self, message: Message) -> Message:
        """`message` with its `context` filled; on failure the message as it was."""
        ...

    async def open_reply(self, message: Message, ref: Ref | None) -> Reply:
        """A reply to `message`; `ref` is given when another process had begun it."""
        ...


# Documents -------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Passage:
    """A piece of a document. `path` is relative to the root, with forward slashes.

    `heading` is the heading path, "A > B". `line` is 1-based; `page` is set for paged formats.
    """

    path: str
    title: str
    heading: str
    text: str
    line: int
    page: int | None = None
    url: str | None = None


@dataclass(frozen=True, slots=True)
class Hit:
    """A passage found, best first. `score` is comparable within one answer alone, 0 to 1.

    `is_good` says that the passage really matches the question, by the index's own floor.
    """

    passage: Passage
    score: float
    is_good: bool


@dataclass(frozen=True, slots=True)
class Document:
    """A document's text, or the part from `line` on; `is_cut` when the rest was left out."""

    path: str
    title: str
    text: str
    line: int
    total_lines: int
    is_cut: bool
    url: str | None = None


class Library(Protocol):
    """The team's documents, searchable."""

    async def search(self, query: str, k: int) -> Sequence[Hit]:
        """At most `k` hits, best first; empty when nothing matches. Never raises on a query."""
        ...

    async def read(self, path: str, start_line: int, max_chars: int) -> Document:
        """Part of a document by the path that a hit gave.

        Raises:
            ToolError: no such document, or a path outside the root; the text is for the model.
        """
        ...


# The model -------------------------------------------------------------------------------------

Block = dict[str, Any]
"""A content block in Anthropic's shape; core/transcript.py declares and checks the shapes."""

ChatMessage = dict[str, Any]
"""{"role": "user" | "assistant", "content": list[Block]}"""


@dataclass(frozen=True, slots=True)
class Citation:
    """What a text block of the model rests on. `source` is the search_result's source."""

    source: str
    title: str
    quote: str


@dataclass(frozen=True, slots=True)
class ModelBegun:
    """The reply began, and this much is paid for already; what comes is not counted yet."""

    usage: Usage


@dataclass(frozen=True, slots=True)
class ModelText:
    """A piece of text as it streams."""

    text: str


@dataclass(frozen=True, slots=True)
class ModelBlockEnd:
    """A text block is complete, with what it cites."""

    citations: tuple[Citation, ...]


@dataclass(frozen=True, slots=True)
class ModelReply:
    """The complete reply, always the last item of a stream.

    `blocks` are canonical (text without citations, tool_use, thinking). `stop_reason` is the
    provider's: end_turn, max_tokens, stop_sequence, tool_use, pause_turn, refusal,
    model_context_window_exceeded.
    """

    blocks: Sequence[Block]
    stop_reason: str
    usage: Usage


ModelEvent = ModelBegun | ModelText | ModelBlockEnd | ModelReply


class Model(Protocol):
    """What answers: the provider, or the offline model."""

    @property
    def id(self) -> str:
        """The model's id, as shown to people."""
        ...

    @property
    def has_citations(self) -> bool:
        """Whether search_result blocks are cited natively; else the model writes `[n]`."""
        ...

    def cost_usd(self, usage: Usage) -> float | None:
        """The price of one call's `usage` in US dollars; None when the price is not known."""
        ...

    def stream(
        self,
        system: str,
        messages: Sequence[ChatMessage],
        tools: Sequence[Mapping[str, Any]],
        max_tokens: int,
    ) -> AsyncGenerator[ModelEvent]:
        """One reply, as it comes; the last item is a ModelReply.

        Raises:
            ModelError: with the stop reason that it amounts to.
        """
        ...


# Tools -----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ToolResult:
    """What a tool gives back: plain text, or passages found (which can be cited).

    Beside `hits`, `text` is a note to the model. `change` is a fact that was saved.
    """

    text: str = ""
    hits: tuple[Hit, ...] = ()
    change: FactChange | None = None
    is_error: bool = False


@dataclass(frozen=True, slots=True)
class ToolContext:
    """What a tool may know of the run: whose it is, and what this user said."""

    run_id: str
    session: Session
    epoch: int
    user_texts: tuple[str, ...]
    message_id: str


@dataclass(frozen=True, slots=True)
class Tool:
    """Something the model can ask for. `parameters` is a strict JSON schema made from a model.

    `shown` names the one argument that everyone in a channel may read; None: none of them.
    """

    name: str
    description: str
    parameters: Mapping[str, Any]
    run: Callable[[Mapping[str, Any], ToolContext], Awaitable[ToolResult]]
    changes_state: bool = False
    shown: str | None = None
