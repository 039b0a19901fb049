"""The loop: ask the model, run the tools it asks for, ask again, until an answer or a limit.

An async generator of events. It must not know Redis, the provider or any platform: a checkpoint
is an event whose consumer keeps it, and a cancellation comes through the clock.
"""

import asyncio
import logging
import time
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import aclosing
from dataclasses import dataclass, replace

from core.answer import MAX_QUOTE_CHARS, AnswerText, passage_ref, passage_title, shorten
from core.calls import ToolRunner, is_repeated
from core.clock import RunClock, Stopped
from core.errors import ModelError
from core.events import Event, RunFinished, TextDelta, TextReset, TurnStarted
from core.guard import redact
from core.prompt import NUDGE, last_step_note, system_prompt
from core.protocols import (
    Hit,
    Library,
    Model,
    ModelBegun,
    ModelBlockEnd,
    ModelReply,
    ModelText,
    Tool,
)
from core.run_state import RunState, Task
from core.tools import tool_specs
from core.transcript import assistant_blocks, check, message, text_block, tool_calls, with_note
from core.types import Run, StopReason, Usage

log = logging.getLogger(__name__)

CLOSEST = 3
CLOSEST_TIMEOUT_S = 5.0
_NO_PASSAGES = frozenset({StopReason.CANCELLED, StopReason.REFUSED})
_FAULTS = frozenset(
    {StopReason.OVERLOADED, StopReason.RATE_LIMITED, StopReason.SPEND_LIMIT, StopReason.ERROR}
)


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """The run can go on from here in another process. `state` is only valid until the next event.

    Comes when a model reply is complete, and again after its tools.
    """

    state: RunState


class Agent:
    """Answers tasks with one model and one set of tools; keeps nothing between runs."""

    def __init__(self, model: Model, tools: Mapping[str, Tool], library: Library) -> None:
        self._model = model
        self._tools = tools
        self._specs = tool_specs(tools)
        self._library = library
        self._system = system_prompt(has_citations=model.has_citations)

    async def run(
        self, task: Task, clock: RunClock | None = None, resume: RunState | None = None
    ) -> AsyncGenerator[Event | Checkpoint]:
        """The events of one run; the last is RunFinished, whatever happens.

        `clock.cancel()` ends it early. `resume` goes on from a checkpoint: usage, turns and time
        go on counting. Errors of the model and of tools become stop reasons and results.
        """
        clock = clock or RunClock()
        state = resume or RunState(messages=list(task.messages), started_at=time.time())
        past_ms = state.elapsed_ms
        clock.start(task.limits.timeout_s - past_ms / 1000)
        answer = AnswerText(state.book, has_citations=self._model.has_citations, text=state.text)
        reason = StopReason.ERROR
        try:
            async for event in self._loop(task, state, answer, clock):
                if isinstance(event, StopReason):
                    reason = event
                    break
                state.elapsed_ms = past_ms + clock.elapsed_ms
                yield event
        except Stopped as stop:
            reason = stop.reason
        except ModelError as err:
            log.warning("run %s: the model failed: %s", task.context.run_id, redact(str(err)))
            reason = err.reason
        except Exception:
            log.exception("run %s failed", task.context.run_id)
        if tail := answer.end_turn():
            yield TextDelta(tail)
        if closing := await self._closing(task, state, answer, reason):
            yield TextDelta(closing)
        yield RunFinished(
            Run(
                id=task.context.run_id,
                text=answer.text,
                sources=state.book.sources(),
                trace=tuple(state.steps),
                turns=state.turns,
                stop_reason=reason,
                usage=state.usage,
                cost_usd=state.cost_usd,
                started_at=state.started_at,
                duration_ms=past_ms + clock.elapsed_ms,
                facts_saved=tuple(state.facts_saved),
                model=self._model.id,
                is_gap=_is_gap(state),
            )
        )

    async def _loop(
        self, task: Task, state: RunState, answer: AnswerText, clock: RunClock
    ) -> AsyncIterator[Event | Checkpoint | StopReason]:
        limits = task.limits
        while True:
            if not state.pending_calls:
                if state.turns >= limits.max_turns:
                    yield StopReason.MAX_TURNS
                    return
                reply: ModelReply | None = None
                async for event in self._ask(task, state, answer, clock):
                    if isinstance(event, ModelReply):
                        reply = event
                    else:
                        yield event
                assert reply is not None  # noqa: S101 - _ask ends in a reply or raises
                reason = self._after_reply(state, answer, reply)
                if reason is StopReason.REFUSED:
                    yield TextReset(state.text)
                elif tail := answer.end_turn():
                    yield TextDelta(tail)
                state.text = answer.text
                if reason is not None:
                    yield reason
                    return
                yield Checkpoint(state)
                if not state.pending_calls:
                    continue  # an empty reply, asked again once
            calls = state.pending_calls
            if state.turns >= limits.max_turns:
                yield StopReason.MAX_TURNS
                return
            if is_repeated(state, calls):
                yield StopReason.REPEATED_CALLS
                return
            async for event in self._run_tools(task, state, clock):
                yield event
            yield Checkpoint(state)
            if state.usage.total > limits.max_tokens:
                yield StopReason.BUDGET
                return

    async def _ask(
        self, task: Task, state: RunState, answer: AnswerText, clock: RunClock
    ) -> AsyncIterator[Event | ModelReply]:
        """One reply of the model; a fault in mid-stream is retried once."""
        check(state.messages)
        yield TurnStarted(state.turns + 1)
        for attempt in (1, 2):
            stream = self._model.stream(
                self._system, state.messages, self._specs, task.limits.max_reply_tokens
            )
            begun: Usage | None = None
            chars = 0
            try:
                async with aclosing(stream) as events:  # pyright: ignore[reportArgumentType]
                    while True:
                        event = await clock.bound(anext(events))
                        shown = ""
                        match event:
                            case ModelReply():
                                yield event
                                return
                            case ModelBegun(usage):
                                begun = usage
                            case ModelText(text):
                                chars += len(text)
                                shown = answer.feed(text)
                            case ModelBlockEnd(citations):
                                shown = answer.end_block(citations)
                        if shown:
                            yield TextDelta(shown)
            except (ModelError, Stopped) as err:
                is_over = isinstance(err, Stopped) or not err.retryable or attempt == 2
                if begun is not None:
                    # What the provider began is paid for; of a text cut off it tells no count.
                    self._count(state, replace(begun, output=max(begun.output, chars // 4)))
                    state.turns += is_over
                if is_over:
                    raise
                log.info("run %s: retrying after %s", task.context.run_id, redact(str(err)))
                answer.reset_turn()
                yield TextReset(state.text)

    def _after_reply(
        self, state: RunState, answer: AnswerText, reply: ModelReply
    ) -> StopReason | None:
        """Counts the reply and adds it to the transcript; a reason ends the run."""
        state.turns += 1
        self._count(state, reply.usage)
        match reply.stop_reason:
            case "refusal":
                answer.reset_turn()
                return StopReason.REFUSED
            case "max_tokens":
                return StopReason.MAX_OUTPUT  # a tool call in it may be half written: never run
            case "model_context_window_exceeded":
                return StopReason.CONTEXT_FULL
            case _:
                pass
        blocks = assistant_blocks(reply.blocks)
        if tool_calls(blocks):
            state.messages.append(message("assistant", blocks))
            return None
        if answer.turn_text:
            return StopReason.DONE
        if state.is_nudged:
            return StopReason.ERROR
        # an empty reply gets one new message, since sending the same again gives the same
        state.is_nudged = True
        state.messages.append(message("user", [text_block(NUDGE)]))
        return None

    def _count(self, state: RunState, usage: Usage) -> None:
        state.usage += usage
        cost = self._model.cost_usd(usage)
        state.cost_usd = None if cost is None or state.cost_usd is None else state.cost_usd + cost

    async def _run_tools(
        self, task: Task, state: RunState, clock: RunClock
    ) -> AsyncIterator[Event]:
        runner = ToolRunner(self._tools, state, task, has_citations=self._model.has_citations)
        async for event in runner.run(clock):
            yield event
        results = runner.results()
        if state.turns == task.limits.max_turns - 1:
            newest = results[-1]
            newest["content"] = with_note(newest["content"], last_step_note(task.goal))
        state.messages.append(message("user", results))

    async def _closing(
        self, task: Task, state: RunState, answer: AnswerText, reason: StopReason
    ) -> str:
        """What a run that was cut short still offers: the closest passages, or a plain sentence."""
        if reason is StopReason.DONE:
            return ""
        if reason in _NO_PASSAGES:
            return "" if answer.text else answer.add(reason.sentence)
        hits = state.book.closest(CLOSEST) or await self._search_once(task, state)
        is_fault = reason in _FAULTS
        opening = reason.sentence + "\n\n" if is_fault or not answer.text else ""
        if not hits:
            return answer.add(opening + "I found no passage in the documents that fits.")
        quotes = [self._quoted(state, hit) for hit in hits]
        return answer.add(
            opening + "The closest passages in the documents:\n\n" + "\n\n".join(quotes)
        )

    async def _search_once(self, task: Task, state: RunState) -> list[Hit]:
        try:
            async with asyncio.timeout(CLOSEST_TIMEOUT_S):
                state.book.add(await self._library.search(task.goal, CLOSEST))
        except Exception:
            # the run has its reason already; without passages the reply still says it
            log.exception("run %s: no search for the closest passages", task.context.run_id)
        return state.book.closest(CLOSEST)

    @staticmethod
    def _quoted(state: RunState, hit: Hit) -> str:
        passage = hit.passage
        number = state.book.cite(passage_ref(passage))
        return f"> {shorten(passage.text, MAX_QUOTE_CHARS)} — {passage_title(passage)} [{number}]"


def _is_gap(state: RunState) -> bool:
    has_searched = any(step.tool == "search_docs" and not step.is_error for step in state.steps)
    return has_searched and not state.book.closest(1)
