"""A scripted reply as Anthropic's wire form: stream events, or one message.

It must not know HTTP nor the request's rules.
"""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from tests.anthropic_cache import CHARS_PER_TOKEN, Billed
from tests.anthropic_rules import signature
from tests.anthropic_script import Raw, Reply, ScriptBlock, Text, Thinking, ToolUse, search_results


class ScriptError(Exception):
    """The script asks for what a real model could not have answered: a mistake in the test."""


@dataclass(frozen=True, slots=True)
class Delta:
    """A part of a block on the wire, and how many characters of output it holds."""

    event: Mapping[str, Any]
    chars: int = 0

    def wire(self) -> bytes:
        """As a server-sent event."""
        return f"event: {self.event['type']}\ndata: {json.dumps(self.event)}\n\n".encode()


@dataclass(frozen=True, slots=True)
class WireBlock:
    """One content block: how it starts, its deltas, and whether the output limit cut it."""

    start: Mapping[str, Any]
    deltas: tuple[Delta, ...]
    is_cut: bool


def wire_blocks(reply: Reply, body: Mapping[str, Any], call_ids: Iterator[str]) -> list[WireBlock]:
    """The reply's blocks within its output limit; what lies beyond is left out, as by a model.

    Raises:
        ScriptError: a citation of something that the request does not hold.
    """
    left = reply.max_chars
    if left is None:
        left = int(body["max_tokens"]) * CHARS_PER_TOKEN
    wire: list[WireBlock] = []
    for block in reply.blocks:
        start, text, kind = _opened(block, body, call_ids)
        part = text[:left]
        left -= len(part)
        chunks = [
            part[at : at + reply.delta_chars] for at in range(0, len(part), reply.delta_chars)
        ]
        deltas = [Delta({"type": kind, _FIELD[kind]: chunk}, len(chunk)) for chunk in chunks]
        is_cut = len(part) < len(text)
        if isinstance(block, Text) and not is_cut:
            deltas += [
                Delta({"type": "citations_delta", "citation": _citation(cite, body)})
                for cite in block.cites
            ]
        if isinstance(block, Thinking):
            sealed = signature(body, len(body["messages"]), block.thinking)
            deltas.append(Delta({"type": "signature_delta", "signature": sealed}))
        wire.append(WireBlock(start, tuple(deltas), is_cut))
        if is_cut:
            break
    return wire


_FIELD = {
    "text_delta": "text",
    "input_json_delta": "partial_json",
    "thinking_delta": "thinking",
}


def _opened(
    block: ScriptBlock, body: Mapping[str, Any], call_ids: Iterator[str]
) -> tuple[Mapping[str, Any], str, str]:
    """How a block starts, its text, and the kind of delta that brings the text."""
    match block:
        case Text():
            return {"type": "text", "text": ""}, block.text, "text_delta"
        case Thinking():
            start = {"type": "thinking", "thinking": "", "signature": ""}
            return start, block.thinking, "thinking_delta"
        case ToolUse():
            if block.name not in {tool["name"] for tool in body.get("tools", ())}:
                raise ScriptError(f"the request has no tool {block.name!r}")
            call_id = block.id or next(call_ids)
            start = {"type": "tool_use", "id": call_id, "name": block.name, "input": {}}
            return start, json.dumps(block.input), "input_json_delta"
        case Raw():
            return block.block, "", "text_delta"


def _citation(cite: int | str, body: Mapping[str, Any]) -> dict[str, Any]:
    results = search_results(body)
    places = [place for place, result in enumerate(results) if cite in (place, result["source"])]
    if not places:
        raise ScriptError(f"the request has no search result {cite!r} to cite")
    result = results[places[0]]
    if not result.get("citations", {}).get("enabled"):
        raise ScriptError(f"citations are not enabled for the search result {cite!r}")
    return {
        "type": "search_result_location",
        "source": result["source"],
        "title": result["title"],
        "cited_text": "".join(part["text"] for part in result["content"]),
        "search_result_index": places[0],
        "start_block_index": 0,
        "end_block_index": len(result["content"]),
    }


@dataclass(frozen=True, slots=True)
class Message:
    """A reply ready to be sent, in either form."""

    id: str
    model: str
    reply: Reply
    blocks: list[WireBlock]
    billed: Billed

    @property
    def stop_reason(self) -> str:
        """What the script says, else what the blocks amount to."""
        if self.reply.stop_reason is not None:
            return self.reply.stop_reason
        if any(block.is_cut for block in self.blocks):
            return "max_tokens"
        kinds = {block.start["type"] for block in self.blocks}
        return "tool_use" if "tool_use" in kinds else "end_turn"

    @property
    def output_tokens(self) -> int:
        """The estimate for all that was put out."""
        chars = sum(delta.chars for block in self.blocks for delta in block.deltas)
        return -(-chars // CHARS_PER_TOKEN)

    def events(self) -> Iterator[Delta]:
        """The stream, from message_start to message_stop."""
        yield Delta({"type": "message_start", "message": self._envelope()})
        yield Delta({"type": "ping"})
        for index, block in enumerate(self.blocks):
            start = {"type": "content_block_start", "index": index, "content_block": block.start}
            yield Delta(start)
            for delta in block.deltas:
                event = {"type": "content_block_delta", "index": index, "delta": delta.event}
                yield replace(delta, event=event)
            yield Delta({"type": "content_block_stop", "index": index})
        yield Delta(
            {
                "type": "message_delta",
                "delta": {
                    "stop_reason": self.stop_reason,
                    "stop_sequence": None,
                    "stop_details": self.reply.stop_details,
                },
                "usage": {"output_tokens": self.output_tokens},
            }
        )
        yield Delta({"type": "message_stop"})

    def whole(self) -> dict[str, Any]:
        """The same as one message, for a request that does not stream."""
        envelope = self._envelope()
        envelope["content"] = [_joined(block) for block in self.blocks]
        envelope["stop_reason"] = self.stop_reason
        envelope["stop_details"] = self.reply.stop_details
        envelope["usage"]["output_tokens"] = self.output_tokens
        return envelope

    def _envelope(self) -> dict[str, Any]:
        return {
            "id": self.id,
            "type": "message",
            "role": "assistant",
            "model": self.model,
            "content": [],
            "stop_reason": None,
            "stop_sequence": None,
            "usage": {
                "input_tokens": self.billed.input,
                "cache_creation_input_tokens": self.billed.cache_write,
                "cache_read_input_tokens": self.billed.cache_read,
                "output_tokens": 1,
            },
        }


def _joined(block: WireBlock) -> dict[str, Any]:
    """A block put together from its deltas."""
    joined: dict[str, Any] = dict(block.start)
    raw_input = ""
    for delta in block.deltas:
        event = delta.event
        match event["type"]:
            case "text_delta":
                joined["text"] += event["text"]
            case "thinking_delta":
                joined["thinking"] += event["thinking"]
            case "signature_delta":
                joined["signature"] = event["signature"]
            case "citations_delta":
                joined.setdefault("citations", []).append(event["citation"])
            case _:
                raw_input += event["partial_json"]
    if raw_input:
        joined["input"] = {} if block.is_cut else json.loads(raw_input)
    return joined
