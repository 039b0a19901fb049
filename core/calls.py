"""The tools of one turn: which calls are run, side by side, and what the model is told of each.

It must not know the model nor when a run ends.
"""

import asyncio
import json
import logging
from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Any

from core.answer import passage_ref, passage_title
from core.clock import RunClock
from core.errors import ToolError
from core.events import FactSaved, ToolFinished, ToolStarted
from core.guard import one_line, public_text, redact_json
from core.prompt import REPEATED, SAME_CALL, TOO_MANY
from core.protocols import Block, Hit, Tool, ToolResult
from core.run_state import CallRecord, RunState, Task
from core.transcript import (
    content_text,
    search_result_block,
    text_block,
    tool_result_block,
    with_note,
)
from core.types import Step

log = logging.getLogger(__name__)

MAX_CALLS = 8
MAX_OUTPUT_CHARS = 6_000
MAX_SUMMARY_CHARS = 120
MAX_REAL_RUNS = 2
"""A call that failed or timed out may be made once more for real."""


def signature(call: Mapping[str, Any]) -> str:
    """The same text for the same tool with the same arguments."""
    return f"{call['name']} {json.dumps(call['input'], sort_keys=True, ensure_ascii=False)}"


def is_repeated(state: RunState, calls: Sequence[Block]) -> bool:
    """Whether one of `calls` stood in two earlier turns already."""
    return any(
        state.calls[name].turns >= 2 for call in calls if (name := signature(call)) in state.calls
    )


def summary(tool: Tool | None, arguments: Mapping[str, Any]) -> str:
    """A short, redacted form of a call's input, safe for everyone in a channel to read."""
    shown = arguments.get(tool.shown) if tool is not None and tool.shown else None
    if not isinstance(shown, str):
        return ""
    return one_line(public_text(shown), MAX_SUMMARY_CHARS)


class ToolRunner:
    """Runs the calls that the newest reply asks for; `results` gives the next user message."""

    def __init__(
        self, tools: Mapping[str, Tool], state: RunState, task: Task, *, has_citations: bool
    ) -> None:
        self._tools = tools
        self._state = state
        self._task = task
        self._has_citations = has_citations
        self._calls = state.pending_calls
        self._steps: dict[str, Step] = {}

    async def run(self, clock: RunClock) -> AsyncIterator[ToolStarted | ToolFinished | FactSaved]:
        """Runs each different call once, all at the same time.

        Raises:
            Stopped: at the deadline or a cancellation; calls under way are stopped and traced.
        """
        running: dict[asyncio.Task[ToolResult], tuple[str, Block, float]] = {}
        loop = asyncio.get_running_loop()
        try:
            for call in self._calls[:MAX_CALLS]:
                name = signature(call)
                if name in self._steps or any(name == other for other, _, _ in running.values()):
                    continue
                record = self._state.calls.setdefault(name, CallRecord())
                record.turns += 1
                if record.real_runs and not self._may_run_again(record):
                    step = self._step(call, with_note(record.content, REPEATED), record.is_error, 0)
                    self._steps[name] = step
                    yield ToolFinished(step)
                    continue
                record.real_runs += 1
                yield ToolStarted(self._state.turns, str(call["name"]), self._summary(call))
                running[asyncio.create_task(self._call(call))] = (name, call, loop.time())
            pending = set(running)
            while pending:
                done, pending = await clock.bound(
                    asyncio.wait(pending, return_when=asyncio.FIRST_COMPLETED)
                )
                for finished in done:
                    name, call, began = running.pop(finished)
                    result = finished.result()
                    self._finish(name, call, result, round((loop.time() - began) * 1000))
                    yield ToolFinished(self._steps[name])
                    if result.change is not None:
                        self._state.facts_saved.append(result.change)
                        yield FactSaved(result.change)
        finally:
            for stopped, (name, call, began) in running.items():
                stopped.cancel()
                content = [text_block("Stopped before it had finished.")]
                ms = round((loop.time() - began) * 1000)
                self._steps[name] = self._step(call, content, is_error=True, ms=ms)
            await asyncio.gather(*running, return_exceptions=True)
            names = dict.fromkeys(signature(call) for call in self._calls)
            self._state.steps += [self._steps[name] for name in names if name in self._steps]

    def results(self) -> list[Block]:
        """A tool_result for every call, in the order of the calls."""
        results: list[Block] = []
        answered: set[str] = set()
        for position, call in enumerate(self._calls):
            name = signature(call)
            if position >= MAX_CALLS and name not in self._steps:
                content = [text_block(TOO_MANY.format(limit=MAX_CALLS))]
                results.append(tool_result_block(str(call["id"]), content, is_error=True))
                continue
            record = self._state.calls[name]
            if name in answered:
                content = [text_block(SAME_CALL)]
            elif record.turns > record.real_runs:
                content = with_note(record.content, REPEATED)
            else:
                content = record.content
            answered.add(name)
            results.append(tool_result_block(str(call["id"]), content, is_error=record.is_error))
        return results

    @staticmethod
    def _may_run_again(record: CallRecord) -> bool:
        return record.is_error and record.real_runs < MAX_REAL_RUNS

    async def _call(self, call: Block) -> ToolResult:
        """The result of one call; whatever goes wrong is a result that helps the model."""
        name = str(call["name"])
        tool = self._tools.get(name)
        if tool is None:
            known = ", ".join(sorted(self._tools))
            text = f"There is no tool named {one_line(name, 60)!r}. The tools are: {known}."
            return ToolResult(text=text, is_error=True)
        timeout_s = self._task.limits.tool_timeout_s
        scope = asyncio.timeout(timeout_s)
        try:
            async with scope:
                return await tool.run(call["input"], self._task.context)
        except ToolError as err:
            return ToolResult(text=str(err) or f"{name} failed.", is_error=True)
        except Exception as err:
            if isinstance(err, TimeoutError) and scope.expired():
                text = f"{name} took longer than {timeout_s:g} s and was stopped."
            else:
                log.exception("run %s: tool %s failed", self._task.context.run_id, name)
                text = f"{name} failed unexpectedly. Try another way, or answer without it."
            return ToolResult(text=text, is_error=True)

    def _finish(self, name: str, call: Block, result: ToolResult, ms: int) -> None:
        record = self._state.calls[name]
        record.content = self._content(result)
        record.is_error = result.is_error
        self._steps[name] = self._step(call, record.content, result.is_error, ms)

    def _step(self, call: Block, content: Sequence[Block], is_error: bool, ms: int) -> Step:
        return Step(
            turn=self._state.turns,
            tool=str(call["name"]),
            input=redact_json(call["input"]),
            output=content_text(self._state.safe.blocks(content)),
            is_error=is_error,
            ms=ms,
            summary=self._summary(call),
        )

    def _summary(self, call: Block) -> str:
        return summary(self._tools.get(str(call["name"])), call["input"])

    def _content(self, result: ToolResult) -> list[Block]:
        """The blocks that the model gets, cut to MAX_OUTPUT_CHARS in all, and saying so."""
        if not result.hits:
            text = result.text.strip() or "(The tool returned nothing.)"
            kept = text[:MAX_OUTPUT_CHARS]
            cut = f"\n[cut: {len(text) - len(kept):,} of {len(text):,} characters left out]"
            return [text_block(kept + cut if len(kept) < len(text) else kept)]
        book = self._state.book
        book.add(result.hits)
        content: list[Block] = []
        notes = [result.text.strip()] if result.text.strip() else []
        room = MAX_OUTPUT_CHARS
        left_out = 0
        for hit in result.hits:
            text = hit.passage.text.strip() or "(empty)"
            kept = text[:room]
            left_out += len(text) - len(kept)
            room -= len(kept)
            if kept:
                content.append(self._passage_block(hit, kept))
        if left_out:
            notes.append(f"[cut: {left_out:,} characters of these passages left out]")
        for note in notes:
            content = with_note(content, note)
        return content

    def _passage_block(self, hit: Hit, text: str) -> Block:
        ref = passage_ref(hit.passage)
        title = passage_title(hit.passage)
        if self._has_citations:
            return search_result_block(ref, title, text)
        return text_block(f"[{self._state.book.position(ref)}] {title} ({ref})\n{text}")
