"""The values that travel between the rooms: whose, where, what was said, what came of it.

Everything here is frozen and JSON-safe. It must not know Redis, the provider or any platform.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from functools import lru_cache
from typing import Any
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
    StopReason.RATE_LIMITED: "The model is limiting our requests; please try again later.",
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
