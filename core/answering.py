"""One message taken from the inbox → one finished reply: run, save, deliver, or fail with care.

It must not know any platform, nor which messages are taken when (core/worker.py does).
"""

import asyncio
import logging
import time
from contextlib import aclosing, suppress
from dataclasses import replace

from core.agent import Agent, Checkpoint
from core.delivery import Delivery
from core.errors import StoreError
from core.events import RunFinished, TextDelta, TextReset, ToolStarted, TurnStarted
from core.history import trim
from core.inbox import Inbox
from core.lease import Held
from core.prompt import question_messages
from core.protocols import Adapter, ToolContext
from core.record import run_from_json, run_to_json, turn_of
from core.run_state import CheckpointError, RunState, Task
from core.types import Limits, Message, Run, StopReason, Usage
from core.work import LeaseLost, Taken

log = logging.getLogger(__name__)

ENRICH_TIMEOUT_S = 20.0
OPEN_TIMEOUT_S = 30.0
NOTICE_TIMEOUT_S = 3.0
RETRY_BASE_S, RETRY_MAX_S = 0.5, 10.0
NOT_SAVED = "I could not save this answer, so I will not remember it in this conversation."
INTERRUPTED = "I am restarting and will go on with this in a moment."

_STATUS = {"search_docs": "Searching the docs", "read_doc": "Reading", "remember": "Noting"}

_STATUS_FIRST = "Thinking…"
_STATUS_LATER = "Reading what was found…"


class Answering:
    """Answers one held message at a time per call; keeps nothing between calls."""

    def __init__(self, inbox: Inbox, agent: Agent, limits: Limits, history_tokens: int) -> None:
        self._inbox = inbox
        self._agent = agent
        self._limits = limits
        self._history_tokens = history_tokens

    async def answer(self, held: Held, adapter: Adapter) -> Taken | None:
        """The conversation's next message, held by this worker too, or None.

        A lost lease ends it at once and silently; any other failure is retried later and, at the
        last try, told to the user and buried.
        """
        taken = held.taken
        delivery = Delivery(self._inbox, held)
        try:
            if taken.phase == "answered" and taken.final is not None:
                run = run_from_json(taken.final)
                await delivery.open(adapter, taken.message, OPEN_TIMEOUT_S)
                return await self._deliver(delivery, held, run, is_saved=True)
            run = await self._run(held, adapter, delivery)
            run, is_saved = await self._save(held, run)
            return await self._deliver(delivery, held, run, is_saved=is_saved)
        except LeaseLost:
            log.info("run %s: another worker has it now", taken.run_id)
            return None
        except asyncio.CancelledError:
            # the process is ending: whoever takes over goes on from the checkpoint
            with suppress(Exception):
                async with asyncio.timeout(NOTICE_TIMEOUT_S):
                    await delivery.status(INTERRUPTED)
            raise
        except Exception as err:
            log.exception("run %s: delivery failed", taken.run_id)
            return await self._failed(held, adapter, delivery, type(err).__name__)

    async def _run(self, held: Held, adapter: Adapter, delivery: Delivery) -> Run:
        taken = held.taken
        resume = _resumed(taken)
        message = taken.message if resume else await _enriched(adapter, taken.message)
        task = self._task(taken, message)
        await delivery.open(adapter, message, OPEN_TIMEOUT_S)
        if resume is not None and resume.text:
            await delivery.reset(resume.text)
        async with aclosing(self._agent.run(task, held.clock, resume)) as events:
            async for event in events:
                match event:
                    case Checkpoint(state):
                        await self._checkpoint(held.taken, state)
                    case TurnStarted(turn):
                        await delivery.status(_STATUS_FIRST if turn == 1 else _STATUS_LATER)
                    case ToolStarted():
                        await delivery.status(_status(event))
                    case TextDelta(text):
                        await delivery.append(text)
                    case TextReset(text):
                        await delivery.reset(text)
                    case RunFinished(run):
                        return run
                    case _:
                        pass
        raise AssertionError("a run ends in RunFinished")

    def _task(self, taken: Taken, message: Message) -> Task:
        history = trim(taken.turns, self._history_tokens)
        facts = {key: fact.value for key, fact in taken.facts.items()}
        said = [turn.text for turn in taken.turns if turn.author_id == message.author.id]
        return Task(
            goal=message.text,
            messages=question_messages(message, history, facts, taken.notes, now=time.time()),
            context=ToolContext(
                run_id=taken.run_id,
                session=message.session,
                epoch=taken.epoch,
                user_texts=(*said, message.text),
                message_id=message.id,
            ),
            limits=self._limits,
        )

    async def _checkpoint(self, taken: Taken, state: RunState) -> None:
        try:
            await self._inbox.checkpoint(taken, state.dump(), state.elapsed_ms)
        except StoreError as err:
            # the answer matters more: without the checkpoint a takeover repeats this step
            log.warning("run %s: no checkpoint: %s", taken.run_id, err)

    async def _save(self, held: Held, run: Run) -> tuple[Run, bool]:
        taken = held.taken
        try:
            await self._answered(taken, run)
        except StoreError as err:
            log.warning("run %s: not saved: %s", taken.run_id, err)
            return replace(run, note=NOT_SAVED), False
        return run, True

    async def _answered(self, taken: Taken, run: Run) -> None:
        turn = turn_of(taken.message, run)
        await self._inbox.answered(
            taken, run_to_json(run), turn, run.duration_ms, is_gap=run.is_gap
        )

    async def _deliver(
        self, delivery: Delivery, held: Held, run: Run, *, is_saved: bool
    ) -> Taken | None:
        await delivery.close(run)
        pause_s = RETRY_BASE_S
        while True:
            taken = held.taken
            try:
                if not is_saved:
                    # once more, now that it is posted; being done matters more than being kept
                    is_saved = True
                    with suppress(StoreError):
                        await self._answered(taken, run)
                return await self._inbox.delivered(taken, delivery.aliases)
            except StoreError as err:
                log.warning("run %s: delivered, not marked yet: %s", taken.run_id, err)
            await asyncio.sleep(pause_s)
            pause_s = min(pause_s * 2, RETRY_MAX_S)

    async def _failed(
        self, held: Held, adapter: Adapter, delivery: Delivery, reason: str
    ) -> Taken | None:
        taken = held.taken
        if taken.is_last_try:
            with suppress(Exception):
                if not delivery.is_open:
                    await delivery.open(adapter, taken.message, OPEN_TIMEOUT_S)
                await delivery.close(_failed_run(taken))
        retry_in_s = RETRY_BASE_S * 4**taken.attempts
        try:
            return await self._inbox.fail(taken, reason, retry_in_s)
        except (StoreError, LeaseLost) as err:
            # the lease runs out, and whoever takes over tries again
            log.warning("run %s: its failure was not noted: %s", taken.run_id, err)
            return None


def _resumed(taken: Taken) -> RunState | None:
    if taken.checkpoint is None:
        return None
    try:
        return RunState.load(taken.checkpoint)
    except CheckpointError as err:
        log.warning("run %s: starts anew: %s", taken.run_id, err)
        return None


async def _enriched(adapter: Adapter, message: Message) -> Message:
    try:
        async with asyncio.timeout(ENRICH_TIMEOUT_S):
            return await adapter.enrich(message)
    except Exception:
        # the question can be answered without its context, which the adapter will have logged
        log.exception("message %s: no context", message.id)
        return message


def _status(event: ToolStarted) -> str:
    doing = _STATUS.get(event.tool, f"Using {event.tool}")
    summary = event.summary.rstrip("…")
    return f"{doing}: {summary}…" if summary else f"{doing}…"


def _failed_run(taken: Taken) -> Run:
    return Run(
        id=taken.run_id,
        text=f"{StopReason.ERROR.sentence} Please ask again; mention {taken.run_id} to whoever "
        "runs me if it goes on.",
        sources=(),
        trace=(),
        turns=0,
        stop_reason=StopReason.ERROR,
        usage=Usage(),
        cost_usd=None,
        started_at=time.time(),
        duration_ms=taken.elapsed_ms,
    )
