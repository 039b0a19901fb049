"""Shared by many tests: a scripted model, a library of given passages, polling."""

import asyncio
import inspect
import re
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping, Sequence
from typing import Any

from core.agent import Checkpoint
from core.errors import ModelError, ToolError
from core.events import RunFinished
from core.protocols import (
    Block,
    ChatMessage,
    Citation,
    Document,
    Hit,
    ModelBlockEnd,
    ModelEvent,
    ModelReply,
    ModelText,
    Passage,
    ToolContext,
)
from core.run_state import Task
from core.transcript import message, text_block
from core.types import Limits, Run, Session, StopReason, Usage

SESSION = Session("test", "W1", "C1", "U1")


async def wait_until(
    is_so: Callable[[], Any], timeout_s: float = 10.0, every_s: float = 0.01
) -> None:
    """Returns once `is_so`, which may be a coroutine function, holds; fails after `timeout_s`."""
    async with asyncio.timeout(timeout_s):
        while True:
            outcome = is_so()
            if await outcome if inspect.isawaitable(outcome) else outcome:
                return
            await asyncio.sleep(every_s)


def call(name: str, arguments: Mapping[str, Any], call_id: str = "") -> Block:
    """A tool_use block; the id is made from name and arguments when none is given."""
    made = call_id or f"toolu_{abs(hash((name, str(arguments)))) % 10**9}"
    return {"type": "tool_use", "id": made, "name": name, "input": dict(arguments)}


class Reply:
    """One scripted reply: texts with what they cite, then calls; or a fault after the texts."""

    def __init__(
        self,
        *texts: str | tuple[str, Sequence[str]],
        calls: Sequence[Block] = (),
        stop_reason: str | None = None,
        usage: Usage | None = None,
        fault: ModelError | None = None,
        hang: bool = False,
    ) -> None:
        self.texts = texts
        self.calls = list(calls)
        self.stop_reason = stop_reason or ("tool_use" if calls else "end_turn")
        self.usage = usage or Usage(input=100, output=20)
        self.fault = fault
        self.hang = hang

    async def events(self) -> AsyncGenerator[ModelEvent]:
        blocks: list[Block] = []
        for item in self.texts:
            text, cited = (item, ()) if isinstance(item, str) else item
            for start in range(0, len(text), 7):
                yield ModelText(text[start : start + 7])
            yield ModelBlockEnd(tuple(Citation(ref, "title", "quoted text") for ref in cited))
            blocks.append(text_block(text))
        if self.hang:
            await asyncio.Event().wait()
        if self.fault is not None:
            raise self.fault
        yield ModelReply([*blocks, *self.calls], self.stop_reason, self.usage)


class ScriptedModel:
    """Gives the scripted replies in order; the last one again when they run out."""

    id = "scripted"

    def __init__(self, *replies: Reply | ModelError, has_citations: bool = True) -> None:
        self.replies = list(replies)
        self.has_citations = has_citations
        self.requests: list[list[ChatMessage]] = []
        self.cost_per_call: float | None = 0.001

    def cost_usd(self, usage: Usage) -> float | None:
        return self.cost_per_call

    async def stream(
        self,
        system: str,
        messages: Sequence[ChatMessage],
        tools: Sequence[Mapping[str, Any]],
        max_tokens: int,
    ) -> AsyncGenerator[ModelEvent]:
        self.requests.append([{**item, "content": list(item["content"])} for item in messages])
        reply = self.replies[min(len(self.requests), len(self.replies)) - 1]
        if isinstance(reply, ModelError):
            raise reply
        async for event in reply.events():
            yield event


def passage(path: str, text: str, line: int = 1, title: str = "") -> Passage:
    return Passage(path=path, title=title or path, heading="", text=text, line=line)


def _words(text: str) -> set[str]:
    return set(re.findall(r"\w+", text.lower()))


class ListLibrary:
    """Finds the given passages by shared words, in the given order."""

    def __init__(self, *passages: Passage) -> None:
        self.passages = list(passages)
        self.queries: list[str] = []

    async def search(self, query: str, k: int) -> Sequence[Hit]:
        self.queries.append(query)
        words = _words(query)
        found = [item for item in self.passages if words & _words(item.text)]
        return [Hit(item, 1.0 - place / 10, is_good=True) for place, item in enumerate(found[:k])]

    async def read(self, path: str, start_line: int, max_chars: int) -> Document:
        for item in self.passages:
            if item.path == path:
                return Document(path, item.title, item.text[:max_chars], 1, 1, is_cut=False)
        raise ToolError(f"There is no document {path!r}.")


def task_for(question: str, **limits: Any) -> Task:
    """A task of a new conversation, by `SESSION`."""
    return Task(
        goal=question,
        messages=[message("user", [text_block("Today is Monday."), text_block(question)])],
        context=ToolContext("run1", SESSION, 0, (question,), "m1"),
        limits=Limits(**limits),
    )


async def collect(events: AsyncIterator[Any]) -> tuple[Run, list[Any]]:
    """All events of a run without checkpoints, and the run itself."""
    seen = [event async for event in events if not isinstance(event, Checkpoint)]
    assert isinstance(seen[-1], RunFinished)
    return seen[-1].run, seen


def overloaded(*, retryable: bool = False) -> ModelError:
    return ModelError("overloaded", StopReason.OVERLOADED, retryable=retryable)
