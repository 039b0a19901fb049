"""The values that travel between the rooms, and the protocols that have several implementations.

Everything here is frozen and JSON-safe. It must not know Redis, the provider or any platform.
"""

from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from functools import lru_cache
from typing import Any, Protocol
from urllib.parse import quote
from zlib import crc32

MAX_MESSAGE_CHARS = 8_000
PARTITIONS = 16
"""Hash slots a workspace's channels are spread over. A constant, so that no key ever moves."""


class StopReason(StrEnum):
    """Why a run ended. Every reply names one; `sentence` says it to people."""

    DONE = "done"
    MAX_TURNS = "max_turns"
    BUDGET = "budget"
    TIMEOUT = "timeout"
    REPEATED_CALLS = "repeated_calls"
    MAX_OUTPUT = "max_output"
    CONTEXT_FULL = "context_full"
    REFUSED = "refused"
    OVERLOADED = "overloaded"
    RATE_LIMITED = "rate_limited"
    SPEND_LIMIT = "spend_limit"
    CANCELLED = "cancelled"
    ERROR = "error"

    @property
    def sentence(self) -> str:
        """One plain sentence for the people who asked."""
        return _SENTENCES[self]


_SENTENCES: Mapping[StopReason, str] = {
    StopReason.DONE: "The answer is complete.",
    StopReason.MAX_TURNS: "I stopped because I had used all the steps allowed for one question.",
    StopReason.BUDGET: "I stopped because this question used up its token budget.",
    StopReason.TIMEOUT: "I stopped because the time allowed for one question ran out.",
    StopReason.REPEATED_CALLS: "I stopped because I kept repeating the same step.",
    StopReason.MAX_OUTPUT: "I stopped because the answer reached its length limit.",
    StopReason.CONTEXT_FULL: "I stopped because the conversation no longer fits the model.",
    StopReason.REFUSED: "The model declined to answer this.",
    StopReason.OVERLOADED: "The model is overloaded right now; please try again in a minute.",
    StopReason.RATE_LIMITED: "The model is limiting our requests; please try again in a minute.",
    StopReason.SPEND_LIMIT: "The spending limit for the model is reached; ask whoever runs me.",
    StopReason.CANCELLED: "I stopped because you asked me to.",
    StopReason.ERROR: "Something went wrong on my side.",
}


@lru_cache(maxsize=8_192)  # the same few ids stand in every key
def escape_id(value: str) -> str:
    """`value` percent-encoded, so that no id can end a key's part, a hash tag or a pattern."""
    return quote(value, safe="")


@dataclass(frozen=True, slots=True)
class Conversation:
    """Where turns are kept in order. `channel` is the parent channel, `thread` the exchange."""

    platform: str
    workspace: str
    channel: str
    thread: str

    @property
    def tag(self) -> str:
        """The hash tag, without braces, of every key that belongs to this channel."""
        return channel_tag(self.platform, self.workspace, self.channel)

    @property
    def key(self) -> str:
        """Safe for Redis and unique; the channel and thread within the tag."""
        return f"{escape_id(self.channel)}/{escape_id(self.thread)}"


@dataclass(frozen=True, slots=True)
class Session:
    """Whose memory it is. Nothing crosses from one session to another."""

    platform: str
    workspace: str
    channel: str
    user: str

    @property
    def tag(self) -> str:
        """The hash tag, without braces: the same as that of the channel's conversations."""
        return channel_tag(self.platform, self.workspace, self.channel)

    @property
    def key(self) -> str:
        """Safe for Redis and unique; the channel and user within the tag."""
        return f"{escape_id(self.channel)}/{escape_id(self.user)}"


def partition_tag(platform: str, workspace: str, partition: int) -> str:
    """The hash tag, without braces, of one of a workspace's `PARTITIONS`."""
    return f"{escape_id(platform)}/{escape_id(workspace)}/{partition}"


def channel_tag(platform: str, workspace: str, channel: str) -> str:
    """The hash tag, without braces, of everything in one channel."""
    return partition_tag(platform, workspace, crc32(channel.encode()) % PARTITIONS)


@dataclass(frozen=True, slots=True)
class Author:
    """Who wrote a message. `name` is for display alone and never part of a key."""

    id: str
    name: str
    is_bot: bool = False
    is_outsider: bool = False


@dataclass(frozen=True, slots=True)
class ContextText:
    """Text that goes to the model but is not the user's: a quoted alert, an attachment.

    `label` says where it is from, such as "attachment notes.txt (truncated)".
    """

    label: str
    text: str


@dataclass(frozen=True, slots=True)
class Message:
    """One thing that somebody said to the bot.

    `id` is the platform's own identity of the message, equal for every delivery of it.
    `text` holds at most MAX_MESSAGE_CHARS; `is_cut` says that the platform's text was longer.
    `sent_at` is in Unix seconds. `needs_engaged` marks a message that is only for the bot when
    its conversation is engaged (a reply in a thread without a mention). `extra` is a JSON-safe
    note of the adapter to itself, which core stores and never reads. `context` is filled by the
    adapter's `enrich` when the run starts.
    """

    id: str
    conversation: Conversation
    session: Session
    author: Author
    text: str
    sent_at: float
    reply_to: str | None = None
    needs_engaged: bool = False
    is_cut: bool = False
    context: tuple[ContextText, ...] = ()
    extra: Mapping[str, Any] = field(default_factory=dict[str, Any])


@dataclass(frozen=True, slots=True)
class Limits:
    """What one run may use. Tokens count input, cache and output together."""

    max_turns: int = 6
    max_tokens: int = 60_000
    max_reply_tokens: int = 1_500
    timeout_s: float = 120.0
    tool_timeout_s: float = 20.0


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens as billed: `input` excludes what was read from or written to the cache."""

    input: int = 0
    output: int = 0
    cache_read: int = 0
    cache_write: int = 0

    @property
    def total(self) -> int:
        """All tokens that count against a budget."""
        return self.input + self.output + self.cache_read + self.cache_write

    def __add__(self, other: "Usage") -> "Usage":
        return Usage(
            self.input + other.input,
            self.output + other.output,
            self.cache_read + other.cache_read,
            self.cache_write + other.cache_write,
        )


@dataclass(frozen=True, slots=True)
class Source:
    """A passage that the answer cites as `[n]`. `quote` is text of the document itself."""

    n: int
    title: str
    path: str
    heading: str
    url: str | None
    quote: str


@dataclass(frozen=True, slots=True)
class Step:
    """One tool call of a run, as the trace shows it. `output` is what the model was given.

    `summary` is a short, redacted form of the input that everyone in the channel may read.
    """

    turn: int
    tool: str
    input: Mapping[str, Any]
    output: str
    is_error: bool
    ms: int
    summary: str = ""


@dataclass(frozen=True, slots=True)
class FactChange:
    """A fact that was saved. `old` is what it replaced, which an Undo restores (None: nothing)."""

    session: Session
    key: str
    value: str
    old: str | None


@dataclass(frozen=True, slots=True)
class Run:
    """One finished answer. `text` is all turns' text in order; `id` has at most 20 characters.

    `note` is a plain sentence about something that could not be done (a fact or the history was
    not saved), which the adapter shows under the answer; empty when all went well. `is_gap` says
    that it searched and the documents hold nothing that really fits.
    """

    id: str
    text: str
    sources: tuple[Source, ...]
    trace: tuple[Step, ...]
    turns: int
    stop_reason: StopReason
    usage: Usage
    cost_usd: float | None
    started_at: float
    duration_ms: int
    facts_saved: tuple[FactChange, ...] = ()
    model: str = ""
    note: str = ""
    is_gap: bool = False


# Events of a run -------------------------------------------------------------------------------


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


ModelEvent = ModelText | ModelBlockEnd | ModelReply


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
