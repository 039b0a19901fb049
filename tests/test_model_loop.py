"""The loop and the Anthropic client together, against the local server: faults, limits, cost."""

import time
from collections.abc import AsyncIterator, Mapping
from typing import Any

import pytest
from pydantic import BaseModel

from bench import cost
from core.agent import Agent
from core.events import TextReset
from core.model import AnthropicModel
from core.protocols import Tool, ToolContext, ToolResult
from core.run_state import Task
from core.tools import define_tool
from core.tools.search_docs import make_search_docs
from core.types import Run, StopReason
from tests.anthropic_script import Fault
from tests.anthropic_server import AnthropicServer, HttpError, Reply, Text, Thinking, ToolUse
from tests.support import ListLibrary, collect, passage, task_for
from tests.support_model import client

TOP = "Put your name at the top of a resume."
SEARCH = ToolUse("search_docs", {"query": "top of a resume"})
QUESTION = "What goes at the top of a resume?"
AT_ONCE = {"retry-after-ms": "5"}


class Fact(BaseModel):
    """What the test's `remember` takes."""

    key: str


class House:
    """An agent over one passage, with a `remember` that only counts what it is told."""

    def __init__(self, model: AnthropicModel) -> None:
        self.library = ListLibrary(passage("top.md", TOP), passage("end.md", "A resume ends."))
        self.remembered: list[str] = []
        remember = define_tool("remember", "Keeps a fact.", Fact, self._remember)
        search = make_search_docs(self.library, 3)
        self.tools: Mapping[str, Tool] = {tool.name: tool for tool in (search, remember)}
        self._agent = Agent(model, self.tools, self.library)

    async def run(self, task: Task | None = None) -> tuple[Run, list[Any]]:
        return await collect(self._agent.run(task or task_for(QUESTION)))

    async def _remember(self, fact: Fact, _: ToolContext) -> ToolResult:
        self.remembered.append(fact.key)
        return ToolResult(text="Kept.")


def billed_input(server: AnthropicServer) -> int:
    """The input tokens of all requests, cached ones included."""
    return sum(request.billed.total for request in server.requests if request.billed)


@pytest.fixture
async def server() -> AsyncIterator[AnthropicServer]:
    async with AnthropicServer() as server:
        yield server


@pytest.fixture
async def house(server: AnthropicServer) -> AsyncIterator[House]:
    model = client(server)
    await model.prepare()
    yield House(model)
    await model.close()


async def test_an_answer_is_cited_and_priced(server: AnthropicServer, house: House) -> None:
    server.script([Text("Let me look."), SEARCH], [Text(TOP, (0,)), Text(" Nothing else.")])
    run, _ = await house.run()
    assert run.stop_reason is StopReason.DONE
    assert f"{TOP} [1] Nothing else." in run.text
    assert [(source.n, source.path) for source in run.sources] == [(1, "top.md")]
    assert run.turns == len(server.requests) == 2
    assert run.usage.total - run.usage.output == billed_input(server)
    assert run.cost_usd is not None
    assert run.cost_usd > 0
    assert server.refusals == []


@pytest.mark.parametrize("fault", ["overloaded", "cut", "no_stop"])
async def test_a_fault_in_mid_reply_once_gives_one_clean_answer(
    server: AnthropicServer, house: House, fault: Fault
) -> None:
    answer = [Text(TOP, (0,))]
    server.script([SEARCH], Reply(answer, fault=fault), answer)
    run, events = await house.run()
    assert run.stop_reason is StopReason.DONE
    assert run.text.count("name") == 1
    assert any(isinstance(event, TextReset) for event in events)
    assert house.library.queries == ["top of a resume"], "the tool must not have run again"
    assert len(server.requests) == 3


@pytest.mark.parametrize(
    ("fault", "reason"),
    [
        ("overloaded", StopReason.OVERLOADED),
        ("cut", StopReason.ERROR),
    ],
)
async def test_a_fault_in_mid_reply_always_ends_honestly(
    server: AnthropicServer, house: House, fault: Fault, reason: StopReason
) -> None:
    broken = Reply([Text("The first thing that belongs at the top is")], fault=fault)
    server.script([SEARCH], broken, broken)
    run, _ = await house.run()
    assert run.stop_reason is reason
    assert reason.sentence in run.text
    assert [source.path for source in run.sources][:1] == ["top.md"]
    assert len(server.requests) == 3
    assert run.turns == 2
    assert run.usage.total - run.usage.output == billed_input(server)


async def test_a_reply_that_is_stopped_is_counted_as_far_as_it_came(
    server: AnthropicServer, house: House
) -> None:
    said = "The first thing that belongs at the top is your name. " * 4
    server.script(Reply([Text(said)], fault="stall", fault_after=200, delta_chars=50))
    run, _ = await house.run(task_for(QUESTION, timeout_s=0.5))
    assert run.stop_reason is StopReason.TIMEOUT
    assert run.turns == 1
    assert run.usage.total - run.usage.output == billed_input(server)
    assert run.usage.output >= 40, "a token for every four characters that came"
    assert run.cost_usd is not None
    assert run.cost_usd > 0


async def test_a_call_that_never_began_is_not_counted(
    server: AnthropicServer, house: House
) -> None:
    server.script(HttpError.rate_limited(62_291))
    run, _ = await house.run()
    assert (run.turns, run.usage.total, run.cost_usd) == (0, 0, 0.0)


async def test_an_impossible_retry_after_ends_long_before_the_deadline(
    server: AnthropicServer, house: House
) -> None:
    server.script(HttpError.rate_limited(62_291))
    start = time.monotonic()
    run, _ = await house.run()
    assert time.monotonic() - start < 10
    assert run.stop_reason is StopReason.RATE_LIMITED
    assert run.stop_reason.sentence in run.text
    assert TOP in run.text, "the closest passages are still offered"


async def test_a_deadline_ends_a_retry_that_would_be_waited_for(
    server: AnthropicServer, house: House
) -> None:
    server.script(HttpError.rate_limited(15))
    start = time.monotonic()
    run, _ = await house.run(task_for(QUESTION, timeout_s=0.3))
    assert time.monotonic() - start < 10
    assert run.stop_reason is StopReason.TIMEOUT


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (HttpError.own_spend_limit(), StopReason.SPEND_LIMIT),
        (HttpError.tier_spend_limit(), StopReason.SPEND_LIMIT),
        (HttpError(401, "authentication_error"), StopReason.ERROR),
        (HttpError(413, "request_too_large"), StopReason.CONTEXT_FULL),
        (
            Reply([Text("Some")], stop_reason="model_context_window_exceeded"),
            StopReason.CONTEXT_FULL,
        ),
    ],
)
async def test_each_failure_of_the_provider_has_its_stop_reason(
    server: AnthropicServer, house: House, answer: HttpError | Reply, reason: StopReason
) -> None:
    server.script(answer)
    run, _ = await house.run()
    assert run.stop_reason is reason
    assert TOP in run.text
    assert len(server.requests) == 1


async def test_an_overload_before_the_reply_ends_after_the_sdks_retries(
    server: AnthropicServer, house: House
) -> None:
    server.script(*[HttpError(529, "overloaded_error", headers=AT_ONCE)] * 3)
    run, _ = await house.run()
    assert run.stop_reason is StopReason.OVERLOADED


async def test_a_call_cut_by_the_output_limit_is_never_run(
    server: AnthropicServer, house: House
) -> None:
    cut = Reply([Text("Part one"), ToolUse("remember", {"key": "name"})], max_chars=8)
    server.script(cut, [Text("Here is the rest.")])
    run, _ = await house.run()
    assert run.stop_reason is StopReason.MAX_OUTPUT
    assert run.text.startswith("Part one")
    assert house.remembered == []
    assert run.trace == ()
    following, _ = await house.run(task_for("And then?"))
    assert following.stop_reason is StopReason.DONE
    assert server.refusals == []


async def test_a_refusal_drops_what_was_written(server: AnthropicServer, house: House) -> None:
    details = {"type": "refusal", "category": "cyber", "explanation": None}
    server.script(Reply([Text("First, take")], stop_reason="refusal", stop_details=details))
    run, _ = await house.run()
    assert run.stop_reason is StopReason.REFUSED
    assert "First, take" not in run.text


async def test_thinking_survives_a_run_of_several_turns(server: AnthropicServer) -> None:
    model = client(server, thinking="adaptive")
    server.script(
        [Thinking("Search first."), SEARCH],
        [Thinking("Once more."), ToolUse("search_docs", {"query": "resume ends"})],
        [Thinking("Enough."), Text(TOP, (0,))],
    )
    run, _ = await House(model).run()
    assert (run.stop_reason, server.refusals) == (StopReason.DONE, [])
    await model.close()


async def test_the_last_allowed_turn_keeps_tools_and_prefix_in_place(
    server: AnthropicServer, house: House
) -> None:
    server.script([SEARCH], [ToolUse("search_docs", {"query": "resume"})])
    run, _ = await house.run(task_for(QUESTION, max_turns=2))
    assert run.stop_reason is StopReason.MAX_TURNS
    first, last = (request.body for request in server.requests)
    assert (last["tools"], last["system"]) == (first["tools"], first["system"])
    assert "tool_choice" not in last
    assert "footnote:note" in str(server.requests[1].search_results[-1]["source"])


async def test_the_typical_run_costs_what_the_cache_allows() -> None:
    figures = await cost.measure()
    for name, goal in (("cold", cost.GOAL_COLD), ("warm", cost.GOAL_WARM)):
        assert figures[name]["stop_reason"] == "done"
        assert figures[name]["ratio"] <= goal
        assert 38_000 < figures[name]["uncached"] < 43_000
