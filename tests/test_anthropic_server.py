"""The local Anthropic server is as strict as the real one, and answers as it is told."""

import asyncio
import copy
import json
import sys
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from tests.anthropic_cache import prompt_tokens
from tests.anthropic_script import Answer, sensible_model
from tests.anthropic_server import AnthropicServer, HttpError, Reply, Text, Thinking, ToolUse
from tests.anthropic_stream import ScriptError
from tests.support_model import (
    SEARCH_DOCS,
    assistant,
    search_result,
    tool_result,
    tool_use,
    user,
)

Body = dict[str, Any]
MARK = {"cache_control": {"type": "ephemeral"}}
HEADERS = {"x-api-key": "test-key", "anthropic-version": "2023-06-01"}


def good_body() -> Body:
    return {
        "model": "claude-haiku-5-5",
        "max_tokens": 500,
        "system": [{"type": "text", "text": "Answer from the documents.", **MARK}],
        "tools": [{**copy.deepcopy(SEARCH_DOCS), "strict": True}],
        "thinking": {"type": "disabled"},
        "messages": [
            user("What goes at the top?"),
            assistant("Let me look.", tool_use("call_a"), tool_use("call_b")),
            user(
                tool_result("call_a", search_result("a.md", "Name first. Then the rest.")),
                tool_result("call_b", "nothing found"),
            ),
        ],
    }


@pytest.fixture
async def server() -> AsyncIterator[AnthropicServer]:
    async with AnthropicServer() as server:
        yield server


async def post(server: AnthropicServer, body: Body, path: str = "/v1/messages") -> tuple[int, Body]:
    async with (
        aiohttp.ClientSession(headers=HEADERS) as session,
        session.post(server.url + path, json=body) as response,
    ):
        return response.status, await response.json()


def results(body: Body) -> list[Any]:
    return body["messages"][2]["content"]


BREACHES: dict[str, tuple[Callable[[Body], Any], str]] = {
    "temperature": (lambda b: b.update(temperature=0), "temperature: Extra inputs"),
    "unknown field": (lambda b: b.update(seed=1), "seed: Extra inputs"),
    "no max_tokens": (lambda b: b.pop("max_tokens"), "max_tokens: Field required"),
    "max_tokens 0": (lambda b: b.update(max_tokens=0), "max_tokens: must be at least 1"),
    "field in a block": (
        lambda b: b["messages"][0]["content"][0].update(colour="red"),
        "messages.0.content.0: Extra inputs",
    ),
    "field deep in a result": (
        lambda b: results(b)[0]["content"][0]["content"][0].update(colour="red"),
        "colour: Extra inputs",
    ),
    "unknown role": (lambda b: b["messages"][0].update(role="tool"), "role"),
    "forced tool": (lambda b: b.update(tool_choice={"type": "any"}), "forced tool use"),
    "prefill": (lambda b: b["messages"].append(assistant("It is")), "prefill"),
    "assistant first": (lambda b: b["messages"].insert(0, assistant("Hi")), 'use the "user" role'),
    "no messages": (lambda b: b.update(messages=[]), "at least one message"),
    "empty message": (lambda b: b["messages"][0].update(content=[]), "non-empty content"),
    "empty text": (lambda b: b["messages"].append(user("")), "must be non-empty"),
    "blank text": (lambda b: b["messages"].append(user(" \n")), "non-whitespace"),
    "missing result": (lambda b: results(b).pop(), "without `tool_result` blocks"),
    "no result at all": (lambda b: b["messages"].pop(), "prefill"),
    "result too late": (
        lambda b: b["messages"].insert(2, user("wait")),
        "without `tool_result` blocks",
    ),
    "orphaned result": (
        lambda b: results(b).append(tool_result("call_z", "x")),
        "unexpected `tool_use_id`",
    ),
    "result twice": (lambda b: results(b).append(tool_result("call_a", "x")), "single result"),
    "text before results": (
        lambda b: results(b).insert(0, {"type": "text", "text": "here"}),
        "must come before",
    ),
    "ids not unique": (
        lambda b: b["messages"].extend(
            [assistant(tool_use("call_a")), user(tool_result("call_a", "x"))]
        ),
        "ids must be unique",
    ),
    "mixed result": (
        lambda b: results(b)[0]["content"].append({"type": "text", "text": "note"}),
        "may have no others",
    ),
    "mixed citations": (
        lambda b: results(b)[1].update(
            content=[{**search_result("b.md", "x"), "citations": {"enabled": False}}]
        ),
        "for all search results or for none",
    ),
    "empty passage": (
        lambda b: results(b)[0]["content"][0].update(content=[]),
        "search_result content is empty",
    ),
    "five marks": (
        lambda b: b["messages"].extend([user({"type": "text", "text": "x", **MARK})] * 4),
        "maximum of 4 blocks",
    ),
    "mark on thinking": (
        lambda b: b["messages"][1]["content"].insert(
            0, {"type": "thinking", "thinking": "x", "signature": "s", **MARK}
        ),
        "messages.1.content.0: Extra inputs",
    ),
    "forged thinking": (
        lambda b: b["messages"][1]["content"].insert(
            0, {"type": "thinking", "thinking": "x", "signature": "sig"}
        ),
        "Invalid `signature`",
    ),
    "two tools of one name": (lambda b: b["tools"].append(b["tools"][0]), "must be unique"),
    "tool name": (lambda b: b["tools"][0].update(name="search docs"), "tools.0.name"),
    "strict and open": (
        lambda b: b["tools"][0]["input_schema"].pop("additionalProperties"),
        "additionalProperties",
    ),
    "strict with a length": (
        lambda b: b["tools"][0]["input_schema"]["properties"]["query"].update(maxLength=9),
        "maxLength is not supported",
    ),
    "thinking off where it cannot be": (
        lambda b: b.update(model="claude-sonnet-5-5"),
        "not supported for this model",
    ),
}


@pytest.mark.parametrize("name", BREACHES)
async def test_a_breach_of_the_rules_is_answered_with_400(
    server: AnthropicServer, name: str
) -> None:
    breach, words = BREACHES[name]
    body = good_body()
    breach(body)
    status, answer = await post(server, body)
    assert status == 400, answer
    assert answer["type"] == "error"
    assert answer["error"]["type"] == "invalid_request_error"
    assert words in answer["error"]["message"]


async def test_a_good_request_and_its_look_alikes_pass(server: AnthropicServer) -> None:
    odd = good_body()
    odd["messages"].append(user("and", "more"))
    odd["tools"][0]["input_schema"]["properties"] = {"maxLength": {"type": "string"}}
    odd["messages"][0] = {"role": "user", "content": 'say "cache_control": five times'}
    for body in (good_body(), odd):
        status, answer = await post(server, body)
        assert status == 200, answer


async def test_a_key_is_needed(server: AnthropicServer) -> None:
    async with (
        aiohttp.ClientSession() as session,
        session.post(server.url + "/v1/messages", json=good_body()) as response,
    ):
        assert response.status == 401


async def test_a_stream_and_a_whole_message_say_the_same(server: AnthropicServer) -> None:
    blocks = [
        Thinking("hm"),
        Text("Name first.", ("a.md",)),
        ToolUse("search_docs", {"query": "x"}, "call_c"),
    ]
    server.script(blocks, blocks)
    _, whole = await post(server, good_body())
    server.cache.clear()
    events: list[Body] = []
    async with (
        aiohttp.ClientSession(headers=HEADERS) as session,
        session.post(server.url + "/v1/messages", json={**good_body(), "stream": True}) as response,
    ):
        async for line in response.content:
            if line.startswith(b"data: "):
                events.append(json.loads(line[6:]))
    assert [event["type"] for event in events][:2] == ["message_start", "ping"]
    assert events[-1]["type"] == "message_stop"
    end = next(event for event in events if event["type"] == "message_delta")
    assert end["delta"]["stop_reason"] == whole["stop_reason"] == "tool_use"
    assert end["usage"]["output_tokens"] == whole["usage"]["output_tokens"]
    citation = whole["content"][1]["citations"][0]
    assert citation["cited_text"] == "Name first. Then the rest."
    deltas = [event["delta"] for event in events if event["type"] == "content_block_delta"]
    assert {"type": "citations_delta", "citation": citation} in deltas
    assert whole["content"][2] == {**tool_use("call_c", "x")}


async def test_output_ends_at_max_tokens(server: AnthropicServer) -> None:
    server.script([Text("word " * 100), ToolUse("search_docs", {"query": "x"})])
    _, answer = await post(server, {**good_body(), "max_tokens": 10})
    assert answer["stop_reason"] == "max_tokens"
    assert answer["content"] == [{"type": "text", "text": ("word " * 8)}]
    assert answer["usage"]["output_tokens"] == 10


async def test_tokens_are_counted_as_they_are_billed(server: AnthropicServer) -> None:
    body = good_body()
    count = {name: part for name, part in body.items() if name != "max_tokens"}
    status, answer = await post(server, count, "/v1/messages/count_tokens")
    assert status == 200, answer
    await post(server, body)
    assert server.requests[0].billed is not None
    assert answer["input_tokens"] == server.requests[0].billed.total == prompt_tokens(body)
    status, _ = await post(server, {**count, "stream": True}, "/v1/messages/count_tokens")
    assert status == 400


async def test_a_prompt_over_the_context_window_is_refused(server: AnthropicServer) -> None:
    server.context_window = 50
    _, answer = await post(server, good_body())
    assert "prompt is too long" in answer["error"]["message"]


async def test_an_error_of_the_script_has_anthropics_shape(server: AnthropicServer) -> None:
    server.script(HttpError.tier_spend_limit())
    status, answer = await post(server, good_body())
    assert status == 429
    assert answer["error"]["details"] == {"error_code": "enforced_spend_limit_reached"}


@pytest.mark.parametrize(
    ("reply", "words"),
    [
        ([Text("x", ("z.md",))], "no search result 'z.md'"),
        ([ToolUse("fly", {})], "no tool 'fly'"),
        (None, "nothing left"),
    ],
)
async def test_a_mistake_in_the_script_fails_the_test(reply: Any, words: str) -> None:
    async def use() -> None:
        async with AnthropicServer() as server:
            server.script(*([] if reply is None else [reply]))
            await post(server, good_body())

    with pytest.raises(ScriptError, match=words):
        await use()


async def test_a_rule_of_the_test_can_answer() -> None:
    def respond(body: Any) -> Answer:
        return Reply([Text(f"{len(body['messages'])} messages")])

    async with AnthropicServer(respond) as server:
        _, answer = await post(server, good_body())
    assert answer["content"][0]["text"] == "3 messages"


async def test_left_to_itself_it_searches_then_answers_and_cites(server: AnthropicServer) -> None:
    body = good_body()
    ask = {**body, "messages": [user("Facts: none", "What goes at the top?")]}
    _, first = await post(server, ask)
    assert first["content"][0]["input"] == {"query": "What goes at the top?"}
    _, second = await post(server, body)
    assert second["content"][0]["text"] == "Name first. Then the rest."
    assert second["content"][0]["citations"][0]["source"] == "a.md"
    assert sensible_model({"messages": [user("hi")]}) == Reply([Text("You asked: hi")])


async def test_it_runs_as_a_process_with_a_script_from_a_file(tmp_path: Path) -> None:
    script = tmp_path / "replies.json"
    script.write_text(
        json.dumps(
            [
                {"status": 529, "type": "overloaded_error"},
                {"blocks": [{"type": "text", "text": "Hello.", "cites": ["a.md"]}], "delta_s": 0},
                {"blocks": [{"type": "tool_use", "name": "search_docs", "input": {"query": "x"}}]},
            ]
        ),
        encoding="utf-8",
    )
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "tests.anthropic_server", "--script", str(script),
        cwd=Path(__file__).parent.parent, stdout=asyncio.subprocess.PIPE,
    )  # fmt: skip
    try:
        assert process.stdout is not None
        async with asyncio.timeout(30):
            url = json.loads(await process.stdout.readline())["url"]
        async with aiohttp.ClientSession(headers=HEADERS) as session:
            answers: list[Body] = []
            for _ in range(3):
                async with session.post(url + "/v1/messages", json=good_body()) as response:
                    answers.append(await response.json())
            async with session.get(url + "/requests") as response:
                seen = await response.json()
    finally:
        process.terminate()
        await process.wait()
    assert answers[0]["error"]["type"] == "overloaded_error"
    assert answers[1]["content"][0]["text"] == "Hello."
    assert answers[2]["content"][0]["name"] == "search_docs"
    assert [entry["status"] for entry in seen] == [529, 200, 200]
