"""What a run knows at any moment: enough to go on in another process from a checkpoint.

It must not know Redis (a checkpoint is a string) nor how the loop decides.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import lru_cache
from typing import Any

from core.answer import SourceBook
from core.errors import BotError
from core.guard import redact, redact_json
from core.protocols import Block, ChatMessage, ToolContext
from core.transcript import TRANSCRIPT_VERSION, blocks_of, tool_calls
from core.types import FactChange, Limits, Session, Step, Usage


@dataclass(frozen=True, slots=True)
class Task:
    """One question to answer: the transcript up to it, and what tools may know.

    `messages` ends with the user's newest turn, whose last block is the question itself.
    """

    goal: str
    messages: Sequence[ChatMessage]
    context: ToolContext
    limits: Limits


@lru_cache(maxsize=2_048)
def redacted_passage(text: str) -> str:
    """`text` of a document without secrets; the same passages are found by many runs."""
    return redact(text)


class Redactor:
    """Takes secrets out of blocks, each text once a run: the same ones are kept again and again."""

    def __init__(self) -> None:
        self._known: dict[str, str] = {}

    def text(self, text: str) -> str:
        """`text` without secrets."""
        if text not in self._known:
            self._known[text] = redact(text)
        return self._known[text]

    def blocks(self, blocks: Sequence[Block]) -> list[Block]:
        """A copy of `blocks` without secrets; a call's input is judged with its names."""
        return [self._block(block) for block in blocks]

    def _block(self, block: Block) -> Block:
        safe = dict(block)
        match block["type"]:
            case "text":
                safe["text"] = self.text(block["text"])
            case "tool_use":
                safe["input"] = redact_json(block["input"])
            case "search_result":
                (part,) = block["content"]
                safe["content"] = [{**part, "text": redacted_passage(part["text"])}]
            case "tool_result":
                safe["content"] = self.blocks(block["content"])
            case _:
                pass
        return safe


@dataclass(slots=True)
class CallRecord:
    """How often one call (name and arguments) was asked for, and what it gave."""

    turns: int = 0
    real_runs: int = 0
    content: list[Block] = field(default_factory=list[Block])
    is_error: bool = False


@dataclass(slots=True)
class RunState:
    """The mutable state of a run. `text` is that of finished turns, `elapsed_ms` while it ran."""

    messages: list[ChatMessage]
    text: str = ""
    turns: int = 0
    usage: Usage = field(default_factory=Usage)
    cost_usd: float | None = 0.0
    steps: list[Step] = field(default_factory=list[Step])
    facts_saved: list[FactChange] = field(default_factory=list[FactChange])
    book: SourceBook = field(default_factory=SourceBook)
    calls: dict[str, CallRecord] = field(default_factory=dict[str, CallRecord])
    is_nudged: bool = False
    elapsed_ms: int = 0
    started_at: float = 0.0
    safe: Redactor = field(default_factory=Redactor)

    @property
    def pending_calls(self) -> list[Block]:
        """The calls of the newest reply, when they still wait to be run."""
        newest = self.messages[-1]
        return tool_calls(blocks_of(newest)) if newest["role"] == "assistant" else []

    def dump(self) -> str:
        """JSON without secrets, for a checkpoint."""
        book = self.book.to_json()
        for hit in book["found"]:
            hit["passage"]["text"] = redacted_passage(hit["passage"]["text"])
        calls = {
            redact(name): {
                "turns": call.turns,
                "real_runs": call.real_runs,
                "content": self.safe.blocks(call.content),
                "is_error": call.is_error,
            }
            for name, call in self.calls.items()
        }
        return json.dumps(
            {
                "version": TRANSCRIPT_VERSION,
                "messages": [
                    {**item, "content": self.safe.blocks(blocks_of(item))} for item in self.messages
                ],
                "text": redact(self.text),
                "turns": self.turns,
                "usage": asdict(self.usage),
                "cost_usd": self.cost_usd,
                "steps": [step_to_json(step) | {"summary": step.summary} for step in self.steps],
                "facts_saved": [asdict(change) for change in self.facts_saved],
                "book": book,
                "calls": calls,
                "is_nudged": self.is_nudged,
                "elapsed_ms": self.elapsed_ms,
                "started_at": self.started_at,
            },
            ensure_ascii=False,
        )

    @classmethod
    def load(cls, data: str) -> "RunState":
        """The inverse of `dump`.

        Raises:
            CheckpointError: the checkpoint is of another version, so the run starts anew.
        """
        parsed: dict[str, Any] = json.loads(data)
        if parsed.get("version") != TRANSCRIPT_VERSION:
            raise CheckpointError(f"checkpoint of version {parsed.get('version')}")
        return cls(
            messages=parsed["messages"],
            text=parsed["text"],
            turns=parsed["turns"],
            usage=Usage(**parsed["usage"]),
            cost_usd=parsed["cost_usd"],
            steps=[Step(**step) for step in parsed["steps"]],
            facts_saved=[change_from_json(change) for change in parsed["facts_saved"]],
            book=SourceBook.from_json(parsed["book"]),
            calls={name: CallRecord(**call) for name, call in parsed["calls"].items()},
            is_nudged=parsed["is_nudged"],
            elapsed_ms=parsed["elapsed_ms"],
            started_at=parsed["started_at"],
        )


class CheckpointError(BotError):
    """A checkpoint cannot be used; the run starts anew."""


def step_to_json(step: Step) -> dict[str, Any]:
    """The trace entry of `footnote chat --json`."""
    return {
        "turn": step.turn,
        "tool": step.tool,
        "input": dict(step.input),
        "output": step.output,
        "is_error": step.is_error,
        "ms": step.ms,
    }


def change_from_json(data: Mapping[str, Any]) -> FactChange:
    """The inverse of `asdict(change)`."""
    return FactChange(Session(**data["session"]), data["key"], data["value"], data["old"])
