"""The Anthropic client on good days: what it sends, what it makes of the answer, what it costs."""

import itertools
import json
import subprocess
import sys
from collections.abc import AsyncIterator
from typing import Any

import pytest

from core.errors import ModelError
from core.model import AnthropicModel
from core.protocols import Citation, ModelBegun, ModelText
from core.types import Usage
from tests.anthropic_server import AnthropicServer, Raw, Reply, Text, Thinking, ToolUse
from tests.support_model import (
    SEARCH_DOCS,
    SYSTEM,
    ask,
    assistant,
    client,
    search_result,
    tool_result,
    tool_use,
    user,
)

EPHEMERAL = {"type": "ephemeral"}


@pytest.fixture
async def server() -> AsyncIterator[AnthropicServer]:
    async with AnthropicServer() as server:
        yield server


@pytest.fixture
async def model(server: AnthropicServer) -> AsyncIterator[AnthropicModel]:
    model = client(server)
    yield model
    await model.close()


def without_marks(value: Any) -> Any:
    if isinstance(value, dict):
        return {k: without_marks(part) for k, part in value.items() if k != "cache_control"}
    return [without_marks(part) for part in value] if isinstance(value, list) else value


async def test_text_streams_piece_by_piece_and_comes_back_whole(
    server: AnthropicServer, model: AnthropicModel
) -> None:
    server.script(Reply([Text("Put your name at the top.")], delta_chars=7))
    heard = await ask(model, [user("What goes at the top?")])
    assert heard.texts == ["Put you", "r name ", "at the ", "top."]
    assert heard.citations == [()]
    assert heard.end.blocks == [{"type": "text", "text": "Put your name at the top."}]
    assert heard.end.stop_reason == "end_turn"


async def test_text_is_handed_on_while_the_model_still_writes(
    server: AnthropicServer, model: AnthropicModel
) -> None:
    server.script(Reply([Text("first and second")], fault="stall", fault_after=5, delta_chars=5))
    stream = model.stream(SYSTEM, [user("hi")], [], 100)
    assert isinstance(await anext(stream), ModelBegun)
    assert await anext(stream) == ModelText("first")
    await stream.aclose()


async def test_tool_calls_keep_their_order_ids_and_input(
    server: AnthropicServer, model: AnthropicModel
) -> None:
    server.script(
        [
            Text("Let me look."),
            ToolUse("search_docs", {"query": 'naïve "quotes" ✓'}, id="call_a"),
            ToolUse("search_docs", {}, id="call_b"),
        ]
    )
    heard = await ask(model, [user("hi")])
    assert heard.end.stop_reason == "tool_use"
    assert heard.end.blocks == [
        {"type": "text", "text": "Let me look."},
        tool_use("call_a", 'naïve "quotes" ✓'),
        {"type": "tool_use", "id": "call_b", "name": "search_docs", "input": {}},
    ]


async def test_citations_come_with_the_end_of_their_block_once_each(
    server: AnthropicServer, model: AnthropicModel
) -> None:
    messages = [
        user("top?"),
        assistant(tool_use("call_a")),
        user(
            tool_result(
                "call_a", search_result("a.md#L1", "Name first."), search_result("b.md", "Or not.")
            )
        ),
    ]
    server.script([Text("Name first.", (0, 0, "b.md")), Text(" That is all.")])
    heard = await ask(model, messages)
    assert heard.citations == [
        (Citation("a.md#L1", "A.MD#L1", "Name first."), Citation("b.md", "B.MD", "Or not.")),
        (),
    ]
    assert heard.end.blocks == [
        {"type": "text", "text": "Name first."},
        {"type": "text", "text": " That is all."},
    ]


async def test_unknown_blocks_are_left_out_and_never_taken_for_text(
    server: AnthropicServer, model: AnthropicModel
) -> None:
    server.script([Raw({"type": "hologram", "shape": "cube"}), Text("Plain text.")])
    heard = await ask(model, [user("hi")])
    assert heard.text == "Plain text."
    assert heard.citations == [()]
    assert heard.end.blocks == [{"type": "text", "text": "Plain text."}]


async def test_thinking_goes_back_as_it_came_and_is_bound_to_what_was_before(
    server: AnthropicServer,
) -> None:
    model = client(server, thinking="adaptive")
    server.script([Thinking("Search first."), ToolUse("search_docs", {"query": "x"}, "call_a")])
    first = user("What goes at the top?")
    heard = await ask(model, [first])
    assert server.requests[0].body["thinking"] == {"type": "adaptive"}
    assert [block["type"] for block in heard.end.blocks] == ["thinking", "tool_use"]
    assert heard.text == ""

    server.script([Text("Your name.")])
    rest = [assistant(*heard.end.blocks), user(tool_result("call_a", "found"))]
    assert (await ask(model, [first, *rest])).text == "Your name."

    with pytest.raises(ModelError, match="Invalid `signature` in `thinking` block"):
        await ask(model, [user("Something else"), *rest])
    with pytest.raises(ModelError, match="Invalid `signature` in `thinking` block"):
        await ask(model, [first, *rest], system="Another system prompt")
    await model.close()


async def test_request_holds_nothing_that_current_models_refuse(
    server: AnthropicServer, model: AnthropicModel
) -> None:
    server.script([Text("ok")])
    await ask(model, [user("hi")], max_tokens=77)
    body = server.requests[0].body
    assert set(body) == {
        "model", "max_tokens", "messages", "thinking", "system", "tools", "stream",
    }  # fmt: skip
    assert body["max_tokens"] == 77
    assert body["thinking"] == {"type": "disabled"}
    assert body["tools"] == [{**SEARCH_DOCS, "strict": True}]
    assert body["system"] == [{"type": "text", "text": SYSTEM, "cache_control": EPHEMERAL}]


@pytest.mark.parametrize(
    ("name", "expected"),
    [("claude-sonnet-5-5", "between_tools"), ("claude-opus-5-5", "adaptive")],
)
async def test_disabled_thinking_means_the_least_that_a_model_allows(
    server: AnthropicServer, name: str, expected: str
) -> None:
    model = client(server, model=name)
    server.script([Text("ok")])
    await ask(model, [user("hi")])
    assert server.requests[0].body["thinking"] == {"type": expected}
    await model.close()


async def test_each_turn_sends_the_last_one_unchanged_and_reads_it_from_the_cache(
    server: AnthropicServer, model: AnthropicModel
) -> None:
    server.script(
        [ToolUse("search_docs", {"query": "a"}, "call_a")],
        [ToolUse("search_docs", {"query": "b"}, "call_b")],
        [Text("done")],
    )
    messages = [user("an earlier question"), assistant("an earlier answer"), user("now this")]
    usages: list[Usage] = []
    for call_id in ("call_a", "call_b", ""):
        heard = await ask(model, messages)
        usages.append(heard.end.usage)
        result = user(tool_result(call_id, search_result("a.md", "x " * 400)))
        messages = [*messages, assistant(*heard.end.blocks), result]

    bodies = [without_marks(request.body) for request in server.requests]
    for before, after in itertools.pairwise(bodies):
        sent = json.dumps(after["messages"])
        assert sent.startswith(json.dumps(before["messages"])[:-1])
        assert (after["system"], after["tools"]) == (before["system"], before["tools"])

    first, second, third = usages
    assert first.cache_read == 0
    assert first.cache_write > 512
    assert second.cache_read == first.cache_write
    assert third.cache_read == second.cache_read + second.cache_write
    assert [usage.input for usage in usages] == [0, 0, 0]


async def test_a_turn_of_many_blocks_still_finds_the_last_ones_cache(
    server: AnthropicServer, model: AnthropicModel
) -> None:
    server.script([Text("ok")], [Text("ok")])
    first = await ask(model, [user("one")])
    calls = [tool_use(f"call_{n}") for n in range(12)]
    results = [tool_result(f"call_{n}", "found") for n in range(12)]
    second = await ask(model, [user("one"), assistant(*calls), user(*results)])
    assert second.end.usage.cache_read == first.end.usage.cache_write


async def test_marks_are_few_and_stand_at_the_end_of_the_users_turns(
    server: AnthropicServer, model: AnthropicModel
) -> None:
    server.script([Text("ok")])
    turns = [message for n in range(8) for message in (user(f"q{n}"), assistant(f"a{n}"))]
    await ask(model, [*turns, user("first part", "last part")])
    sent = server.requests[0].body["messages"]
    assert json.dumps(server.requests[0].body).count('"cache_control"') == 3
    assert sent[-1]["content"][-1]["cache_control"] == EPHEMERAL
    assert "cache_control" not in sent[-1]["content"][0]
    assert sent[-3]["content"][-1]["cache_control"] == EPHEMERAL


async def test_an_empty_text_is_never_marked(
    server: AnthropicServer, model: AnthropicModel
) -> None:
    # The mark would turn a clear refusal of the empty text into one about the mark.
    with pytest.raises(ModelError, match="text content blocks must be non-empty"):
        await ask(model, [user("a question", "")])
    assert "cache_control" not in json.dumps(server.requests[0].body["messages"])


async def test_next_question_of_a_conversation_reads_its_history_from_the_cache(
    server: AnthropicServer, model: AnthropicModel
) -> None:
    # The newest turn carries facts and a date that are not kept, so that it differs later.
    server.script([Text("ok")], [Text("ok")], [Text("ok")])
    long = "history " * 400
    history = [user("q1"), assistant(long)]
    await ask(model, [*history, user("facts of 09:00", "q2")])
    history += [user("q2"), assistant(long)]
    await ask(model, [*history, user("facts of 09:01", "q3")])
    history += [user("q3"), assistant(long)]
    third = await ask(model, [*history, user("facts of 09:02", "q4")])
    system_tokens = len(SYSTEM) // 4
    assert third.end.usage.cache_read > system_tokens + len(long) // 4


async def test_a_refusal_comes_as_its_stop_reason(
    server: AnthropicServer, model: AnthropicModel
) -> None:
    details = {"type": "refusal", "category": "cyber", "explanation": None}
    server.script(Reply([Text("I can")], stop_reason="refusal", stop_details=details))
    heard = await ask(model, [user("hi")])
    assert heard.end.stop_reason == "refusal"


async def test_a_closed_model_can_be_used_again(
    server: AnthropicServer, model: AnthropicModel
) -> None:
    server.script([Text("one")], [Text("two")])
    await model.prepare()
    assert (await ask(model, [user("hi")])).text == "one"
    await model.close()
    await model.close()
    assert (await ask(model, [user("hi")])).text == "two"


def test_the_module_loads_neither_the_sdk_nor_its_http_client() -> None:
    code = (
        "import sys, core.model; "
        "print([name for name in ('anthropic', 'httpx2', 'pydantic') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
