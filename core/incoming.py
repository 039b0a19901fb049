"""A reply as it streams in: the provider's raw events become ours, and add up to the whole.

The SDK's own accumulation builds objects for each event and reads half-written JSON anew at each
piece of it, which takes longer than all the rest of a call (bench/loop.py). It must not know the
connection. Source of the events: https://platform.claude.com/docs/en/build-with-claude/streaming
"""

import json
import logging
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, cast

from core.protocols import (
    Block,
    Citation,
    ModelBegun,
    ModelBlockEnd,
    ModelEvent,
    ModelReply,
    ModelText,
)
from core.types import Usage

log = logging.getLogger(__name__)

_USAGE = {
    "input_tokens": "input",
    "output_tokens": "output",
    "cache_read_input_tokens": "cache_read",
    "cache_creation_input_tokens": "cache_write",
}


class Unreadable(Exception):
    """The events make no reply: out of order, of another shape, or JSON that is none."""


@dataclass(slots=True)
class _Part:
    """A content block under way. `start` is as it was announced, with what it held already."""

    start: Mapping[str, Any]
    text: list[str] = field(default_factory=list[str])
    json: list[str] = field(default_factory=list[str])
    signature: str = ""
    citations: list[Mapping[str, Any]] = field(default_factory=list[Mapping[str, Any]])


class Incoming:
    """One reply. Give `take` every event in order; when `is_whole`, `reply` is what they made."""

    def __init__(self) -> None:
        self._parts: dict[int, _Part] = {}
        self._usage = dict.fromkeys(_USAGE.values(), 0)
        self._stop_reason: str | None = None
        self._has_ended = False
        self.refusal: str | None = None
        """The category of a refusal, where the provider names one."""

    @property
    def is_whole(self) -> bool:
        """Whether the reply came to its end and says why it ended."""
        return self._has_ended and self._stop_reason is not None

    def take(self, event: Mapping[str, Any]) -> ModelEvent | None:
        """What the loop must hear of `event`, the parsed data of one server-sent event.

        Kinds of events and deltas that are not known are passed over, as the provider asks.

        Raises:
            Unreadable: the event cannot be one of a reply.
        """
        try:
            return self._take(event)
        except (LookupError, TypeError, ValueError, AttributeError) as err:
            raise Unreadable(type(err).__name__) from err

    def reply(self) -> ModelReply:
        """The complete reply, in canonical blocks; kinds that we never asked for are left out.

        Raises:
            Unreadable: a tool's input is no JSON object, although the reply was not cut off.
        """
        blocks: list[Block] = []
        for index in sorted(self._parts):
            try:
                block = self._block(self._parts[index])
            except (LookupError, TypeError, ValueError) as err:
                raise Unreadable(type(err).__name__) from err
            if block is not None:
                blocks.append(block)
        return ModelReply(blocks, self._stop_reason or "", Usage(**self._usage))

    def _take(self, event: Mapping[str, Any]) -> ModelEvent | None:
        match event["type"]:
            case "message_start":
                self._count(event["message"].get("usage"))
                return ModelBegun(Usage(**self._usage))
            case "content_block_start":
                part = self._parts[int(event["index"])] = _Part(dict(event["content_block"]))
                part.citations += part.start.get("citations") or ()
                if part.start["type"] == "text" and part.start.get("text"):
                    return self._heard(part, part.start["text"])
            case "content_block_delta":
                return self._delta(self._parts[int(event["index"])], event["delta"])
            case "content_block_stop":
                part = self._parts[int(event["index"])]
                if part.start["type"] == "text":
                    return ModelBlockEnd(_citations(part.citations))
            case "message_delta":
                self._stop_reason = event["delta"].get("stop_reason") or self._stop_reason
                details = event["delta"].get("stop_details")
                self.refusal = str(details.get("category")) if details else None
                self._count(event.get("usage"))
            case "message_stop":
                self._has_ended = True
            case _:
                pass
        return None

    def _delta(self, part: _Part, delta: Mapping[str, Any]) -> ModelEvent | None:
        match delta["type"]:
            case "text_delta" if part.start["type"] == "text":
                return self._heard(part, delta["text"])
            case "thinking_delta":
                part.text.append(delta["thinking"])
            case "signature_delta":
                part.signature = delta["signature"]
            case "input_json_delta":
                part.json.append(delta["partial_json"])
            case "citations_delta":
                part.citations.append(delta["citation"])
            case _:
                pass
        return None

    @staticmethod
    def _heard(part: _Part, text: str) -> ModelText | None:
        part.text.append(text)
        return ModelText(text) if text else None

    def _count(self, usage: Mapping[str, Any] | None) -> None:
        # Later counts are totals, and leave out what does not apply.
        for name, ours in _USAGE.items():
            if usage and usage.get(name) is not None:
                self._usage[ours] = int(usage[name])

    def _block(self, part: _Part) -> Block | None:
        start = part.start
        match start["type"]:
            case "text":
                return {"type": "text", "text": "".join(part.text)}
            case "tool_use":
                given = self._input(part)
                return {
                    "type": "tool_use",
                    "id": start["id"],
                    "name": start["name"],
                    "input": given,
                }
            case "thinking":
                thinking = str(start.get("thinking") or "") + "".join(part.text)
                signature = part.signature or start.get("signature") or ""
                return {"type": "thinking", "thinking": thinking, "signature": signature}
            case "redacted_thinking":
                return {"type": "redacted_thinking", "data": start["data"]}
            case other:
                log.warning("left out a content block of the unknown kind %r", other)
        return None

    def _input(self, part: _Part) -> Mapping[str, Any]:
        written = "".join(part.json)
        try:
            given: Any = json.loads(written) if written.strip() else part.start.get("input") or {}
        except ValueError:
            if self._stop_reason in ("max_tokens", "model_context_window_exceeded"):
                # Cut off in the middle of a call, which is never run.
                return {}
            raise
        if not isinstance(given, dict):
            raise TypeError("a tool's input must be an object")
        return cast("Mapping[str, Any]", given)


def _citations(raw: list[Mapping[str, Any]]) -> tuple[Citation, ...]:
    """Those of search results, each once."""
    found = (
        Citation(each["source"], each.get("title") or "", each["cited_text"])
        for each in raw
        if each["type"] == "search_result_location"
    )
    return tuple(dict.fromkeys(found))
