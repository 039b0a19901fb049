"""Every limit of the loop, and what the reply still holds when one is reached."""

import asyncio
from typing import Any

import pytest

from core.agent import Agent
from core.clock import RunClock
from core.errors import ModelError
from core.events import TextReset
from core.protocols import Tool, ToolContext, ToolResult
from core.tools.search_docs import make_search_docs
from core.transcript import blocks_of, check
from core.types import StopReason, Usage
from tests.support import (
    ListLibrary,
    Reply,
    ScriptedModel,
    call,
    collect,
    overloaded,
    passage,
    task_for,
    wait_until,
)

RESUME = passage("top.md", "Put your name at the top of the resume.", title="The top")
LIBRARY = ListLibrary(RESUME)
QUESTION = "What goes at the top of the resume?"


def search(query: str) -> dict[str, Any]:
    return call("search_docs", {"query": query})


def agent_of(model: ScriptedModel, *tools: Tool, library: ListLibrary = LIBRARY) -> Agent:
    known = (make_search_docs(library, 3), *tools)
    return Agent(model, {tool.name: tool for tool in known}, library)


def slow_tool(started: asyncio.Event | None = None) -> Tool:
    async def run(arguments: Any, context: ToolContext) -> ToolResult:
        if started is not None:
            started.set()
        await asyncio.Event().wait()
        raise AssertionError("never")

    schema = {"type": "object", "properties": {}, "required": [], "additionalProperties": False}
    return Tool("slow", "Takes for ever.", schema, run)


async def test_answer_without_tools_is_done_in_one_call() -> None:
    model = ScriptedModel(Reply("Hello."))
    run, _ = await collect(agent_of(model).run(task_for("Hi")))
    assert (run.stop_reason, run.text, run.turns) == (StopReason.DONE, "Hello.", 1)
    assert run.usage == Usage(input=100, output=20)


async def test_max_turns_counts_model_calls_and_runs_no_tool_on_the_last() -> None:
    model = ScriptedModel(*(Reply(calls=[search(f"resume {turn}")]) for turn in range(9)))
    library = ListLibrary(RESUME)
    run, _ = await collect(agent_of(model, library=library).run(task_for(QUESTION, max_turns=3)))
    assert run.stop_reason is StopReason.MAX_TURNS
    assert run.turns == len(model.requests) == 3
    assert library.queries == ["resume 0", "resume 1"]
    assert "Put your name at the top" in run.text
    assert [source.path for source in run.sources] == ["top.md"]


async def test_last_step_note_stands_in_the_newest_result_and_an_answer_is_done() -> None:
    model = ScriptedModel(Reply(calls=[search("resume")]), Reply("The name."))
    run, _ = await collect(agent_of(model).run(task_for(QUESTION, max_turns=2)))
    assert run.stop_reason is StopReason.DONE
    newest = blocks_of(model.requests[-1][-1])[-1]["content"]
    assert {block["type"] for block in newest} == {"search_result"}
    assert newest[-1]["source"] == "footnote:note"
    assert QUESTION in newest[-1]["content"][0]["text"]
    assert "footnote:note" not in [source.path for source in run.sources]


async def test_max_turns_one_still_gives_the_closest_passages() -> None:
    model = ScriptedModel(Reply("Let me look.", calls=[search("resume")]))
    library = ListLibrary(RESUME)
    run, _ = await collect(agent_of(model, library=library).run(task_for(QUESTION, max_turns=1)))
    assert run.stop_reason is StopReason.MAX_TURNS
    assert run.text.startswith("Let me look.")
    assert "Put your name at the top" in run.text
    assert library.queries == [QUESTION]  # one search of our own, with the question


async def test_budget_is_checked_after_the_tools_of_a_turn() -> None:
    used = Usage(input=300, output=100, cache_read=500, cache_write=200)
    model = ScriptedModel(Reply("One.", calls=[search("resume")], usage=used), Reply("Two."))
    run, _ = await collect(agent_of(model).run(task_for(QUESTION, max_tokens=1_099)))
    assert run.stop_reason is StopReason.BUDGET
    assert len(run.trace) == 1
    assert run.text.startswith("One.")
    assert run.sources


async def test_an_answer_beyond_the_budget_is_still_done() -> None:
    model = ScriptedModel(Reply("Long answer.", usage=Usage(input=10_000)))
    run, _ = await collect(agent_of(model).run(task_for(QUESTION, max_tokens=10)))
    assert run.stop_reason is StopReason.DONE


async def test_timeout_holds_inside_a_stalled_stream_and_keeps_the_text() -> None:
    model = ScriptedModel(Reply("Half an answer", hang=True))
    run, _ = await collect(agent_of(model).run(task_for(QUESTION, timeout_s=0.05)))
    assert run.stop_reason is StopReason.TIMEOUT
    assert run.text.startswith("Half an answer")
    assert "Put your name at the top" in run.text


async def test_timeout_stops_tools_and_traces_them() -> None:
    model = ScriptedModel(Reply(calls=[call("slow", {})]))
    run, _ = await collect(agent_of(model, slow_tool()).run(task_for(QUESTION, timeout_s=0.05)))
    assert run.stop_reason is StopReason.TIMEOUT
    assert [(step.tool, step.is_error) for step in run.trace] == [("slow", True)]


async def test_cancel_in_mid_stream_ends_at_once_with_the_text_so_far() -> None:
    model = ScriptedModel(Reply("Half an answer", hang=True))
    clock = RunClock()
    running = asyncio.create_task(collect(agent_of(model).run(task_for(QUESTION), clock)))
    await wait_until(lambda: bool(model.requests))
    clock.cancel()
    run, _ = await asyncio.wait_for(running, 1)
    assert (run.stop_reason, run.text) == (StopReason.CANCELLED, "Half an answer")


async def test_cancel_before_the_start_asks_no_model_and_says_why() -> None:
    model = ScriptedModel(Reply("Hello."))
    clock = RunClock()
    clock.cancel()
    run, _ = await collect(agent_of(model).run(task_for(QUESTION), clock))
    assert run.stop_reason is StopReason.CANCELLED
    assert run.text == StopReason.CANCELLED.sentence
    assert model.requests == []


async def test_cancel_during_a_tool_ends_at_once() -> None:
    started = asyncio.Event()
    model = ScriptedModel(Reply(calls=[call("slow", {})]))
    clock = RunClock()
    agent = agent_of(model, slow_tool(started))
    running = asyncio.create_task(collect(agent.run(task_for(QUESTION), clock)))
    await asyncio.wait_for(started.wait(), 5)
    clock.cancel()
    run, _ = await asyncio.wait_for(running, 1)
    assert run.stop_reason is StopReason.CANCELLED


async def test_a_half_written_call_is_never_run_and_the_text_stays() -> None:
    half = call("remember", {})
    model = ScriptedModel(Reply("Part one", calls=[half], stop_reason="max_tokens"))
    run, _ = await collect(agent_of(model).run(task_for(QUESTION)))
    assert run.stop_reason is StopReason.MAX_OUTPUT
    assert run.text.startswith("Part one")
    assert run.trace == ()


async def test_context_full_keeps_the_text() -> None:
    model = ScriptedModel(Reply("So far", stop_reason="model_context_window_exceeded"))
    run, _ = await collect(agent_of(model).run(task_for(QUESTION)))
    assert run.stop_reason is StopReason.CONTEXT_FULL
    assert run.text.startswith("So far")


async def test_refusal_drops_the_partial_text() -> None:
    model = ScriptedModel(
        Reply("Let me see.", calls=[search("resume")]),
        Reply("Here is how to do harm", stop_reason="refusal"),
    )
    run, events = await collect(agent_of(model).run(task_for(QUESTION)))
    assert run.stop_reason is StopReason.REFUSED
    assert run.text == "Let me see."
    assert TextReset("Let me see.") in events


async def test_refusal_at_once_is_said_in_plain_words() -> None:
    model = ScriptedModel(Reply("Here is", stop_reason="refusal"))
    run, _ = await collect(agent_of(model).run(task_for(QUESTION)))
    assert run.text == StopReason.REFUSED.sentence


@pytest.mark.parametrize(
    "reason",
    [
        StopReason.OVERLOADED,
        StopReason.RATE_LIMITED,
        StopReason.SPEND_LIMIT,
        StopReason.CONTEXT_FULL,
        StopReason.ERROR,
    ],
)
async def test_a_provider_fault_is_honest_and_offers_the_closest_passages(
    reason: StopReason,
) -> None:
    model = ScriptedModel(ModelError("host model.internal said no", reason))
    run, _ = await collect(agent_of(model).run(task_for(QUESTION)))
    assert run.stop_reason is reason
    assert run.text.startswith(reason.sentence)
    assert "Put your name at the top" in run.text
    assert "[1]" in run.text
    assert run.sources[0].path == "top.md"
    assert "model.internal" not in run.text


async def test_a_fault_in_mid_stream_is_retried_once_without_rerunning_tools() -> None:
    library = ListLibrary(RESUME)
    model = ScriptedModel(
        Reply("Looking.", calls=[search("resume")]),
        Reply("The na", fault=overloaded(retryable=True)),
        Reply("The name."),
    )
    run, events = await collect(agent_of(model, library=library).run(task_for(QUESTION)))
    assert (run.stop_reason, run.text) == (StopReason.DONE, "Looking.\n\nThe name.")
    assert TextReset("Looking.") in events
    assert library.queries == ["resume"]
    assert len(model.requests) == 3
    assert run.turns == 2


async def test_a_second_fault_in_mid_stream_is_an_honest_failure() -> None:
    model = ScriptedModel(Reply("The na", fault=overloaded(retryable=True)))
    run, _ = await collect(agent_of(model).run(task_for(QUESTION)))
    assert run.stop_reason is StopReason.OVERLOADED
    assert StopReason.OVERLOADED.sentence in run.text
    assert len(model.requests) == 2


async def test_an_empty_reply_is_asked_again_once_with_a_new_message() -> None:
    model = ScriptedModel(Reply(calls=[search("resume")]), Reply(""), Reply("The name."))
    run, _ = await collect(agent_of(model).run(task_for(QUESTION)))
    assert (run.stop_reason, run.text) == (StopReason.DONE, "The name.")
    check(model.requests[-1])
    assert model.requests[-1][:-1] == model.requests[-2]


async def test_a_second_empty_reply_is_an_error_with_passages() -> None:
    model = ScriptedModel(Reply(""))
    run, _ = await collect(agent_of(model).run(task_for(QUESTION)))
    assert run.stop_reason is StopReason.ERROR
    assert len(model.requests) == 2
    assert "Put your name at the top" in run.text


async def test_nothing_found_at_a_limit_is_said() -> None:
    model = ScriptedModel(overloaded())
    run, _ = await collect(agent_of(model, library=ListLibrary()).run(task_for(QUESTION)))
    assert "no passage in the documents" in run.text


async def test_a_failing_search_does_not_lose_the_reply() -> None:
    class Broken(ListLibrary):
        async def search(self, query: str, k: int) -> Any:
            raise OSError("disk gone at /secret/path")

    run, _ = await collect(
        agent_of(ScriptedModel(overloaded()), library=Broken()).run(task_for("x"))
    )
    assert run.stop_reason is StopReason.OVERLOADED
    assert "/secret" not in run.text


async def test_cost_is_unknown_when_one_call_has_no_price() -> None:
    model = ScriptedModel(Reply("Hello."))
    model.cost_per_call = None
    run, _ = await collect(agent_of(model).run(task_for("Hi")))
    assert run.cost_usd is None
