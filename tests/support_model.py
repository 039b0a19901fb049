"""Small tools of the tests that talk to the model: a request's parts, and a reply collected."""

import asyncio
import copy
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from core.model import AnthropicModel
from core.protocols import Citation, ModelBlockEnd, ModelReply, ModelText
from tests.anthropic_server import AnthropicServer

CALL_TIMEOUT_S = 10.0
MODEL = "claude-haiku-5-5"
SYSTEM = "You answer from the documents. " * 100
SEARCH_DOCS: dict[str, Any] = {
    "name": "search_docs",
    "description": "Search the documents.",
    "input_schema": {
        "type": "object",
        "properties": {"query": {"type": "string"}},
        "required": ["query"],
        "additionalProperties": False,
    },
}


@dataclass(slots=True)
class Heard:
    """What one call of a model gave."""

    texts: list[str] = field(default_factory=list[str])
    citations: list[tuple[Citation, ...]] = field(default_factory=list[tuple[Citation, ...]])
    reply: ModelReply | None = None

    @property
    def text(self) -> str:
        """The text as it streamed."""
        return "".join(self.texts)

    @property
    def end(self) -> ModelReply:
        """The reply, which must have come last."""
        assert self.reply is not None
        return self.reply


def client(server: AnthropicServer, model: str = MODEL, **options: Any) -> AnthropicModel:
    """The model under test, talking to the local server."""
    return AnthropicModel("test-key", model, base_url=server.url, **options)


def user(*blocks: str | dict[str, Any]) -> dict[str, Any]:
    """A user message of texts and blocks."""
    return {"role": "user", "content": [_block(block) for block in blocks]}


def assistant(*blocks: str | dict[str, Any]) -> dict[str, Any]:
    """An assistant message of texts and blocks."""
    return {"role": "assistant", "content": [_block(block) for block in blocks]}


def tool_use(call_id: str, query: str = "resume") -> dict[str, Any]:
    """A call of search_docs."""
    return {"type": "tool_use", "id": call_id, "name": "search_docs", "input": {"query": query}}


def tool_result(call_id: str, *content: str | dict[str, Any]) -> dict[str, Any]:
    """The result of a call."""
    blocks = [_block(block) for block in content]
    return {"type": "tool_result", "tool_use_id": call_id, "content": blocks, "is_error": False}


def search_result(source: str, text: str) -> dict[str, Any]:
    """A passage that can be cited."""
    return {
        "type": "search_result",
        "source": source,
        "title": source.upper(),
        "content": [{"type": "text", "text": text}],
        "citations": {"enabled": True},
    }


async def ask(
    model: AnthropicModel,
    messages: Sequence[dict[str, Any]],
    heard: Heard | None = None,
    *,
    system: str = SYSTEM,
    max_tokens: int = 1_000,
) -> Heard:
    """One call, collected into `heard`, which holds what came even when the call fails."""
    async with asyncio.timeout(CALL_TIMEOUT_S):
        return await _ask(model, messages, heard or Heard(), system, max_tokens)


async def _ask(
    model: AnthropicModel,
    messages: Sequence[dict[str, Any]],
    heard: Heard,
    system: str,
    max_tokens: int,
) -> Heard:
    before = copy.deepcopy(list(messages))
    async for event in model.stream(system, messages, [SEARCH_DOCS], max_tokens):
        assert heard.reply is None, "the reply must be the last item"
        match event:
            case ModelText():
                heard.texts.append(event.text)
            case ModelBlockEnd():
                heard.citations.append(event.citations)
            case ModelReply():
                heard.reply = event
    assert list(messages) == before, "the caller's messages must stay as they were"
    return heard


def _block(block: str | dict[str, Any]) -> dict[str, Any]:
    return {"type": "text", "text": block} if isinstance(block, str) else block
