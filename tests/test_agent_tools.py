"""The tools of a turn: side by side, in order, once each, and whatever goes wrong is a result."""

import asyncio
import json
from typing import Any

from pydantic import BaseModel, ConfigDict

from core.agent import Agent, Checkpoint
from core.calls import MAX_CALLS, MAX_OUTPUT_CHARS
from core.errors import ToolError
from core.events import FactSaved, ToolStarted
from core.protocols import Block, Tool, ToolContext, ToolResult
from core.run_state import RunState
from core.tools import define_tool
from core.tools.read_doc import make_read_doc
from core.tools.search_docs import make_search_docs
from core.transcript import blocks_of, check, content_text
from core.types import FactChange, StopReason
from tests.support import (
    SESSION,
    ListLibrary,
    Reply,
    ScriptedModel,
    call,
    collect,
    passage,
    task_for,
)

LIBRARY = ListLibrary(
    passage("top.md", "Put your name at the top of the resume."),
    passage("README.md", "Start it with make."),
)


class Words(BaseModel):
    model_config = ConfigDict(extra="forbid")
    words: str


def tool(name: str, run: Any) -> Tool:
    return define_tool(name, f"The {name} tool.", Words, run)


async def _echo(arguments: Words, context: ToolContext) -> ToolResult:
    return ToolResult(text=f"echo {arguments.words}")


async def _raise(arguments: Words, context: ToolContext) -> ToolResult:
    raise RuntimeError("postgres://user:pw@db.internal/x")


def agent_of(model: ScriptedModel, *tools: Tool, library: ListLibrary = LIBRARY) -> Agent:
    known = (make_search_docs(library, 3), make_read_doc(library), tool("echo", _echo), *tools)
    return Agent(model, {item.name: item for item in known}, library)


def results_of(model: ScriptedModel, request: int = -1) -> list[Block]:
    return blocks_of(model.requests[request][-1])


def test_a_tools_schema_is_strict_and_closed() -> None:
    spec = make_search_docs(LIBRARY, 3).parameters
    assert spec["additionalProperties"] is False
    assert spec["required"] == ["query"]
    assert set(spec["properties"]["query"]) == {"type", "description"}


async def test_one_failing_and_one_unknown_tool_do_not_break_the_turn() -> None:
    calls = [
        call("search_docs", {"query": "resume"}, "a"),
        call("broken", {"words": "x"}, "b"),
        call("lookup_wiki", {"q": "x"}, "c"),
    ]
    model = ScriptedModel(Reply(calls=calls), Reply("Fine."))
    run, _ = await collect(agent_of(model, tool("broken", _raise)).run(task_for("resume?")))
    assert run.stop_reason is StopReason.DONE
    results = results_of(model)
    assert [result["tool_use_id"] for result in results] == ["a", "b", "c"]
    assert [result["is_error"] for result in results] == [False, True, True]
    assert all(content_text(result["content"]).strip() for result in results)
    assert "search_docs" in content_text(results[2]["content"])
    assert "db.internal" not in json.dumps(results) + str(run.trace)


async def test_tools_of_a_turn_run_side_by_side_and_answer_in_order() -> None:
    both = asyncio.Barrier(2)

    async def meet(arguments: Words, context: ToolContext) -> ToolResult:
        await both.wait()
        if arguments.words == "first":
            await asyncio.sleep(0.01)
        return ToolResult(text=arguments.words)

    calls = [call("meet", {"words": "first"}, "a"), call("meet", {"words": "second"}, "b")]
    model = ScriptedModel(Reply(calls=calls), Reply("Fine."))
    run, _ = await collect(agent_of(model, tool("meet", meet)).run(task_for("x", tool_timeout_s=5)))
    assert [content_text(item["content"]) for item in results_of(model)] == ["first", "second"]
    assert [step.output for step in run.trace] == ["first", "second"]


async def test_two_files_asked_for_in_one_turn_are_both_read_and_a_missing_one_is_told() -> None:
    calls = [
        call("read_doc", {"path": "README.md"}, "a"),
        call("read_doc", {"path": "top.md"}, "b"),
        call("read_doc", {"path": "pyproject.toml"}, "c"),
    ]
    model = ScriptedModel(Reply(calls=calls), Reply("Start it with make."))
    run, _ = await collect(agent_of(model).run(task_for("How do I start this?")))
    assert run.stop_reason is StopReason.DONE
    texts = [content_text(item["content"]) for item in results_of(model)]
    assert "Start it with make." in texts[0]
    assert "Put your name" in texts[1]
    assert "no document 'pyproject.toml'" in texts[2]
    assert [step.is_error for step in run.trace] == [False, False, True]


async def test_wrong_arguments_are_named_before_the_tool_runs() -> None:
    ran: list[str] = []

    async def note(arguments: Words, context: ToolContext) -> ToolResult:
        ran.append(arguments.words)
        return ToolResult(text="ok")

    calls = [call("note", {"word": "x"}, "a"), call("note", {"words": 3, "more": 1}, "b")]
    model = ScriptedModel(Reply(calls=calls), Reply("Fine."))
    await collect(agent_of(model, tool("note", note)).run(task_for("x")))
    first, second = (content_text(item["content"]) for item in results_of(model))
    assert "words" in first
    assert "Field required" in first
    assert "more" in second
    assert ran == []


async def test_a_tool_that_takes_too_long_is_stopped_and_said() -> None:
    async def wait(arguments: Words, context: ToolContext) -> ToolResult:
        await asyncio.Event().wait()
        raise AssertionError("never")

    model = ScriptedModel(Reply(calls=[call("wait", {"words": "x"})]), Reply("Fine."))
    run, _ = await collect(
        agent_of(model, tool("wait", wait)).run(task_for("x", tool_timeout_s=0.02))
    )
    assert run.stop_reason is StopReason.DONE
    assert "longer than 0.02 s" in content_text(results_of(model)[0]["content"])


async def test_long_output_is_cut_with_a_marker_that_says_how_much() -> None:
    async def long(arguments: Words, context: ToolContext) -> ToolResult:
        return ToolResult(text="x" * 60_000)

    model = ScriptedModel(Reply(calls=[call("long", {"words": "x"})]), Reply("Fine."))
    await collect(agent_of(model, tool("long", long)).run(task_for("x")))
    text = content_text(results_of(model)[0]["content"])
    assert len(text) < MAX_OUTPUT_CHARS + 100
    assert "54,000 of 60,000 characters left out" in text


async def test_long_passages_are_cut_and_stay_citable() -> None:
    library = ListLibrary(*(passage(f"{n}.md", "resume " * 700) for n in range(3)))
    model = ScriptedModel(Reply(calls=[call("search_docs", {"query": "resume"})]), Reply("Fine."))
    await collect(agent_of(model, library=library).run(task_for("resume")))
    content = results_of(model)[0]["content"]
    assert {block["type"] for block in content} == {"search_result"}
    assert content[-1]["source"] == "footnote:note"
    assert "left out" in content[-1]["content"][0]["text"]
    assert sum(len(block["content"][0]["text"]) for block in content) < MAX_OUTPUT_CHARS + 200


async def test_more_than_eight_calls_are_refused_in_place() -> None:
    calls = [call("echo", {"words": str(n)}, f"c{n}") for n in range(11)]
    model = ScriptedModel(Reply(calls=calls), Reply("Fine."))
    run, _ = await collect(agent_of(model).run(task_for("x")))
    results = results_of(model)
    assert [item["tool_use_id"] for item in results] == [f"c{n}" for n in range(11)]
    assert [item["is_error"] for item in results] == [False] * MAX_CALLS + [True] * 3
    assert len(run.trace) == MAX_CALLS
    assert "at most 8" in content_text(results[-1]["content"])


async def test_identical_calls_in_one_turn_run_once() -> None:
    ran: list[str] = []

    async def note(arguments: Words, context: ToolContext) -> ToolResult:
        ran.append(arguments.words)
        return ToolResult(text="done")

    calls = [call("note", {"words": "x"}, "a"), call("note", {"words": "x"}, "b")]
    model = ScriptedModel(Reply(calls=calls), Reply("Fine."))
    await collect(agent_of(model, tool("note", note)).run(task_for("x")))
    assert ran == ["x"]
    assert [item["tool_use_id"] for item in results_of(model)] == ["a", "b"]


async def test_a_repeated_call_is_answered_from_the_first_then_ends_the_run() -> None:
    library = ListLibrary(passage("top.md", "Put your name at the top of the resume."))
    again = [Reply(calls=[call("search_docs", {"query": "resume"}, f"c{n}")]) for n in range(5)]
    model = ScriptedModel(*again)
    run, _ = await collect(agent_of(model, library=library).run(task_for("resume")))
    assert run.stop_reason is StopReason.REPEATED_CALLS
    assert len(model.requests) == 3
    assert library.queries == ["resume"]
    repeated = results_of(model, 2)[0]["content"]
    assert "made this very call before" in repeated[-1]["content"][0]["text"]
    assert "Put your name" in repeated[0]["content"][0]["text"]
    assert "Put your name" in run.text


async def test_argument_order_does_not_hide_a_repetition() -> None:
    model = ScriptedModel(
        Reply(calls=[call("read_doc", {"path": "README.md", "start_line": 1}, "a")]),
        Reply(calls=[call("read_doc", {"start_line": 1, "path": "README.md"}, "b")]),
        Reply(calls=[call("read_doc", {"path": "README.md", "start_line": 1}, "c")]),
    )
    run, _ = await collect(agent_of(model).run(task_for("x")))
    assert run.stop_reason is StopReason.REPEATED_CALLS


async def test_a_failed_call_may_be_made_once_more_for_real() -> None:
    tries: list[int] = []

    async def flaky(arguments: Words, context: ToolContext) -> ToolResult:
        tries.append(1)
        if len(tries) == 1:
            raise ToolError("busy, try again")
        return ToolResult(text="worked")

    model = ScriptedModel(
        Reply(calls=[call("flaky", {"words": "x"}, "a")]),
        Reply(calls=[call("flaky", {"words": "x"}, "b")]),
        Reply("Fine."),
    )
    run, _ = await collect(agent_of(model, tool("flaky", flaky)).run(task_for("x")))
    assert run.stop_reason is StopReason.DONE
    assert len(tries) == 2
    assert content_text(results_of(model)[0]["content"]) == "worked"


async def test_every_request_keeps_the_rules_and_extends_the_one_before() -> None:
    model = ScriptedModel(
        Reply("A.  ", calls=[call("search_docs", {"query": "resume"}, "a")]),
        Reply(calls=[call("echo", {"words": "b"}, "b"), call("nope", {}, "c")]),
        Reply("Done."),
    )
    await collect(agent_of(model).run(task_for("resume", max_turns=3)))
    for earlier, later in zip(model.requests, model.requests[1:], strict=False):
        check(later)
        assert later[: len(earlier)] == earlier  # the prefix never changes, so the cache holds


async def test_a_saved_fact_is_an_event_and_stands_in_the_run() -> None:
    change = FactChange(SESSION, "city", "Delhi", "Pune")

    async def save(arguments: Words, context: ToolContext) -> ToolResult:
        return ToolResult(text="Remembered.", change=change)

    model = ScriptedModel(Reply(calls=[call("save", {"words": "Delhi"})]), Reply("Noted."))
    run, events = await collect(agent_of(model, tool("save", save)).run(task_for("Delhi")))
    assert FactSaved(change) in events
    assert run.facts_saved == (change,)


async def test_a_run_goes_on_from_any_checkpoint_with_the_same_result() -> None:
    def model() -> ScriptedModel:
        return ScriptedModel(
            Reply("One.", calls=[call("search_docs", {"query": "resume"}, "a")]),
            Reply(("The name", ["top.md#L1"])),
        )

    whole = model()
    saved: list[str] = []
    async for event in agent_of(whole).run(task_for("resume")):
        if isinstance(event, Checkpoint):
            saved.append(event.state.dump())
    assert len(saved) == 2
    expected, _ = await collect(agent_of(model()).run(task_for("resume")))
    for state in saved:
        rest = model()
        rest.replies = rest.replies[1:]
        run, _ = await collect(agent_of(rest).run(task_for("resume"), None, RunState.load(state)))
        assert rest.requests[-1] == whole.requests[-1]
        assert (run.text, run.sources, run.usage, run.turns) == (
            expected.text,
            expected.sources,
            expected.usage,
            expected.turns,
        )


async def test_what_is_shown_of_a_call_is_one_short_argument_without_secrets() -> None:
    secret = "sk-ant-" + "api03-" + "Zx9" * 30
    query = f"resume {secret} of +49 170 1234567 " + "x" * 200
    calls = [call("search_docs", {"query": query}), call("echo", {"words": "my diary"})]
    model = ScriptedModel(Reply(calls=calls), Reply("Fine."))
    run, events = await collect(agent_of(model).run(task_for("resume")))
    search, echo = (event.summary for event in events if isinstance(event, ToolStarted))
    assert "resume" in search
    assert secret not in search + str(run.trace)
    assert "1234567" not in search
    assert len(search) <= 120
    assert echo == ""  # a tool shows nothing that it does not say is for everyone
    assert [step.summary for step in run.trace] == [search, echo]
