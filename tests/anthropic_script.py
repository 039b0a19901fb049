"""What the local Anthropic server is told to answer: blocks, replies, faults, and a default model.

It must not know HTTP nor how a reply becomes a stream.
"""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, cast

Fault = Literal["overloaded", "api_error", "cut", "no_stop", "no_reason", "stall"]
"""How a stream breaks after it began: an error event at HTTP 200 ("overloaded", "api_error"), a
connection that is dropped, an end without message_stop, a message_stop without a stop reason,
silence without an end."""

NOTE_SOURCE = "footnote:note"


@dataclass(frozen=True, slots=True)
class Text:
    """A text block. `cites` names search results of the request, by place (0-based) or source."""

    text: str
    cites: tuple[int | str, ...] = ()


@dataclass(frozen=True, slots=True)
class ToolUse:
    """A tool call; the server makes the id when there is none."""

    name: str
    input: Mapping[str, Any] = field(default_factory=dict[str, Any])
    id: str = ""


@dataclass(frozen=True, slots=True)
class Thinking:
    """A thinking block; the server signs it over all that came before."""

    thinking: str


@dataclass(frozen=True, slots=True)
class Raw:
    """A block of any shape, sent whole at its start: a kind that the SDK does not know yet."""

    block: Mapping[str, Any]


ScriptBlock = Text | ToolUse | Thinking | Raw


@dataclass(frozen=True, slots=True)
class Reply:
    """One reply of the model.

    `stop_reason` None means tool_use or end_turn, as the blocks say. `max_chars` cuts the output
    there with max_tokens (a tool's input counts as its JSON); without it the request's own
    max_tokens × 4 characters do. `fault` strikes after `fault_after` characters of output.
    `delay_s` is waited before the head, `delta_s` between deltas of `delta_chars` characters.
    """

    blocks: Sequence[ScriptBlock]
    stop_reason: str | None = None
    stop_details: Mapping[str, Any] | None = None
    max_chars: int | None = None
    fault: Fault | None = None
    fault_after: int = 20
    delay_s: float = 0.0
    delta_s: float = 0.0
    delta_chars: int = 24


@dataclass(frozen=True, slots=True)
class HttpError:
    """An error in place of a reply, with Anthropic's body. `error_code` goes into details."""

    status: int
    type: str
    message: str = "an error from the script"
    headers: Mapping[str, str] = field(default_factory=dict[str, str])
    error_code: str | None = None

    @classmethod
    def rate_limited(cls, retry_after_s: float | None = None) -> "HttpError":
        """A 429 of the ordinary kind."""
        headers = {} if retry_after_s is None else {"retry-after": f"{retry_after_s:g}"}
        return cls(429, "rate_limit_error", "This request would exceed your rate limit.", headers)

    @classmethod
    def overloaded(cls) -> "HttpError":
        """A 529."""
        return cls(529, "overloaded_error", "Overloaded")

    @classmethod
    def tier_spend_limit(cls) -> "HttpError":
        """The 429 that no retry helps: the tier's monthly cap, with a code and no retry-after."""
        return cls(
            429,
            "rate_limit_error",
            "Your organization has reached its monthly limit.",
            error_code="enforced_spend_limit_reached",
        )

    @classmethod
    def own_spend_limit(cls) -> "HttpError":
        """The 400 of a limit that the customer set."""
        return cls(
            400,
            "invalid_request_error",
            "You have reached your specified API usage limits. "
            "You will regain access on 2027-01-01 at 00:00 UTC.",
        )


Answer = Reply | HttpError


def as_answer(entry: "Answer | ScriptBlock | Sequence[ScriptBlock]") -> Answer:
    """A script's entry as an answer: a block or a list of blocks is a plain reply."""
    if isinstance(entry, Reply | HttpError):
        return entry
    if isinstance(entry, Text | ToolUse | Thinking | Raw):
        return Reply([entry])
    return Reply(list(entry))


def load(path: Path) -> list[Answer]:
    """A script from a JSON file: a list of replies.

    Each is {"blocks": [...], ...fields of Reply} or {"status", "type", ...fields of HttpError};
    a block is {"type": "text" | "tool_use" | "thinking", ...its fields}, anything else is raw.
    """
    return [_answer(entry) for entry in json.loads(path.read_text(encoding="utf-8"))]


def _answer(entry: dict[str, Any]) -> Answer:
    if "status" in entry:
        return HttpError(**entry)
    return Reply(**{**entry, "blocks": [_block(block) for block in entry["blocks"]]})


def _block(block: dict[str, Any]) -> ScriptBlock:
    fields = {name: value for name, value in block.items() if name != "type"}
    match block["type"]:
        case "text":
            return Text(fields["text"], tuple(fields.get("cites", ())))
        case "tool_use":
            return ToolUse(**fields)
        case "thinking":
            return Thinking(**fields)
        case _:
            return Raw(block)


def search_results(body: Mapping[str, Any]) -> list[dict[str, Any]]:
    """All search_result blocks of a request, in the order that citations count them."""
    found: list[dict[str, Any]] = []
    for message in body["messages"]:
        for block in _content(message):
            if block["type"] == "search_result":
                found.append(block)
            if block["type"] == "tool_result" and isinstance(block.get("content"), list):
                found += [part for part in block["content"] if part["type"] == "search_result"]
    return found


def question(body: Mapping[str, Any]) -> str:
    """The newest thing the user said: the last text block of the last turn they began."""
    for message in reversed(body["messages"]):
        blocks = _content(message)
        if message["role"] == "user" and blocks[0]["type"] == "text":
            return str(blocks[-1]["text"])
    return ""


def sensible_model(body: Mapping[str, Any]) -> Answer:
    """A model that searches with the question, then answers from what was found and cites it."""
    names = {tool["name"] for tool in body.get("tools", ())}
    last = _content(body["messages"][-1])
    results = [block for block in last if block["type"] == "tool_result"]
    if not results:
        if "search_docs" in names:
            return Reply([ToolUse("search_docs", {"query": question(body)[:200]})])
        return Reply([Text(f"You asked: {question(body)[:200]}")])
    places = [
        (place, block)
        for place, block in enumerate(search_results(body))
        if block["source"] != NOTE_SOURCE
    ]
    if places:
        return Reply(
            [
                Text(_first_sentence(block["content"][0]["text"]), (place,))
                for place, block in places
            ]
        )
    text = "\n".join(_result_text(result) for result in results)
    marks = sorted(set(re.findall(r"\[\d+\]", text)))
    mark = f" {marks[0]}" if marks else ""
    return Reply([Text(f"The documents say this: {_first_sentence(text)}{mark}")])


def _first_sentence(text: str) -> str:
    flat = " ".join(text.split())
    match = re.match(r".{20,300}?[.!?](?=\s|$)", flat)
    return match.group() if match else flat[:300]


def _result_text(result: Mapping[str, Any]) -> str:
    content = result.get("content", "")
    if isinstance(content, str):
        return content
    return "\n".join(str(part.get("text", "")) for part in content)


def _content(message: Mapping[str, Any]) -> list[dict[str, Any]]:
    content = message["content"]
    if isinstance(content, str):
        return [{"type": "text", "text": content}]
    return cast("list[dict[str, Any]]", content)
