"""The Anthropic client: one streamed model call, in our values and our errors.

It must not know the loop, its limits or its deadline (the caller holds that, through
`asyncio.timeout`, and may cancel a call at any point). It is the only user of the SDK, which
takes seconds to import and is therefore loaded with the first call, or by `prepare`.
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Any, Literal, cast

from core import prices
from core.errors import ModelError
from core.model_errors import model_error, stop_hopeless_retries
from core.protocols import (
    Block,
    ChatMessage,
    Citation,
    ModelBlockEnd,
    ModelEvent,
    ModelReply,
    ModelText,
)
from core.types import StopReason, Usage

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Mapping, Sequence

    import anthropic

Thinking = Literal["disabled", "adaptive"]

MAX_RETRIES = 2
_MARK = {"type": "ephemeral"}
_MARKED_MESSAGES = 2
_MARKABLE = frozenset({"text", "tool_result", "search_result"})
# Models that answer 400 to "disabled", with the least thinking that they allow.
# Source: https://platform.claude.com/docs/en/build-with-claude/thinking
_LEAST_THINKING = {"claude-sonnet-5-5": "between_tools", "claude-opus-5-5": "adaptive"}
_log = logging.getLogger(__name__)


class AnthropicModel:
    """A model behind Anthropic's Messages API, or behind a server that speaks it too.

    `has_citations` False is for servers that do not know search_result blocks. `thinking`
    "disabled" means the least that the model allows. `read_timeout_s` bounds the silence between
    two pieces of a reply, and is long because a local server may think for minutes.
    """

    def __init__(
        self,
        api_key: str,
        model: str,
        *,
        base_url: str | None = None,
        thinking: Thinking = "disabled",
        has_citations: bool = True,
        read_timeout_s: float = 600.0,
    ) -> None:
        self._api_key = api_key
        self._model = model
        self._base_url = base_url
        self._read_timeout_s = read_timeout_s
        self._thinking = (
            _LEAST_THINKING.get(model, thinking) if thinking == "disabled" else thinking
        )
        self._has_citations = has_citations
        self._client: anthropic.AsyncAnthropic | None = None
        self._opening = asyncio.Lock()

    @property
    def id(self) -> str:
        """The model's id, as shown to people."""
        return self._model

    @property
    def has_citations(self) -> bool:
        """Whether search_result blocks are cited natively; else the model writes `[n]`."""
        return self._has_citations

    def cost_usd(self, usage: Usage) -> float | None:
        """The price of one call's `usage` in US dollars; None when the price is not known."""
        return prices.cost_usd(self._model, usage)

    async def prepare(self) -> None:
        """Loads the SDK in a thread, so that the first call need not wait for it."""
        await self._connect()

    async def close(self) -> None:
        """Closes the connections. A later call opens new ones."""
        async with self._opening:
            client, self._client = self._client, None
        if client is not None:
            await client.close()

    async def stream(
        self,
        system: str,
        messages: Sequence[ChatMessage],
        tools: Sequence[Mapping[str, Any]],
        max_tokens: int,
    ) -> AsyncGenerator[ModelEvent, None]:
        """One reply, as it comes; the last item is a ModelReply.

        `messages` are sent as they are, and are not changed: the cache marks go into a copy, so
        that each turn's request is the last one's, byte for byte, plus what came since.

        Raises:
            ModelError: with the stop reason that it amounts to; `retryable` when the reply broke
                off after it had begun, which the SDK does not retry.
        """
        client = await self._connect()
        # Loaded by now; at the top of the module they would cost every start seconds.
        import anthropic
        import httpx2

        has_begun = False
        final: anthropic.types.Message | None = None
        try:
            async with client.messages.stream(
                **self._request(system, messages, tools, max_tokens)
            ) as stream:
                has_begun = True
                async for event in stream:
                    if event.type == "text":
                        yield ModelText(event.text)
                    elif event.type == "content_block_stop" and event.content_block.type == "text":
                        yield ModelBlockEnd(_citations(event.content_block.citations))
                    elif event.type == "message_stop":
                        final = event.message
        except anthropic.APIError as err:
            raise model_error(err, has_begun=has_begun) from err
        except httpx2.TransportError as err:
            # The SDK wraps what fails before the reply begins; after that this escapes as it is.
            raise ModelError(
                f"the reply was cut off: {type(err).__name__}", StopReason.ERROR, retryable=True
            ) from err
        except ValueError as err:
            if not has_begun:
                raise
            raise ModelError(
                "the reply could not be read", StopReason.ERROR, retryable=True
            ) from err
        if final is None or final.stop_reason is None:
            # The SDK reports nothing here and offers the partial content as if it were complete.
            raise ModelError("the reply ended unfinished", StopReason.ERROR, retryable=True)
        if final.stop_details is not None:
            _log.info("the model refused: category %s", final.stop_details.category)
        yield ModelReply(_blocks(final.content), final.stop_reason, _usage(final.usage))

    async def _connect(self) -> anthropic.AsyncAnthropic:
        async with self._opening:
            if self._client is None:
                self._client = await asyncio.to_thread(
                    _client, self._api_key, self._base_url, self._read_timeout_s
                )
            return self._client

    def _request(
        self,
        system: str,
        messages: Sequence[ChatMessage],
        tools: Sequence[Mapping[str, Any]],
        max_tokens: int,
    ) -> dict[str, Any]:
        request: dict[str, Any] = {
            "model": self._model,
            "max_tokens": max_tokens,
            "messages": _marked(messages),
            "thinking": {"type": self._thinking},
        }
        if system:
            # Tools come before the system prompt in the prefix, so this one mark covers both.
            request["system"] = [{"type": "text", "text": system, "cache_control": _MARK}]
        if tools:
            request["tools"] = [{**tool, "strict": True} for tool in tools]
        return request


def _client(api_key: str, base_url: str | None, read_timeout_s: float) -> anthropic.AsyncAnthropic:
    """Runs in a thread: the import alone takes seconds, and so would hold up every other run."""
    import anthropic
    import httpx2

    http_client = anthropic.DefaultAioHttpClient(event_hooks={"response": [stop_hopeless_retries]})
    return anthropic.AsyncAnthropic(
        api_key=api_key,
        base_url=base_url,
        max_retries=MAX_RETRIES,
        timeout=httpx2.Timeout(read_timeout_s, connect=5.0),
        http_client=http_client,
    )


def _marked(messages: Sequence[ChatMessage]) -> list[ChatMessage]:
    """A copy with the moving cache marks: on the last block of the last two user messages.

    The older mark is where the previous request's newer one was, so its entry is found however
    many blocks one turn adds, and a conversation's history is found again by its next question.
    """
    marked = list(messages)
    users = [index for index, message in enumerate(messages) if message["role"] == "user"]
    for index in users[-_MARKED_MESSAGES:]:
        blocks = cast("list[Block]", marked[index]["content"])
        last = blocks[-1]
        if last["type"] in _MARKABLE and last.get("text") != "":
            content = [*blocks[:-1], {**last, "cache_control": _MARK}]
            marked[index] = {**marked[index], "content": content}
    return marked


def _citations(
    citations: Sequence[anthropic.types.TextCitation] | None,
) -> tuple[Citation, ...]:
    found = (
        Citation(citation.source, citation.title or "", citation.cited_text)
        for citation in citations or ()
        if citation.type == "search_result_location"
    )
    return tuple(dict.fromkeys(found))


def _blocks(content: Sequence[Any]) -> list[Block]:
    """Canonical blocks; kinds that we never asked for are left out.

    The choice is by `type` alone: the SDK gives an unknown kind the class TextBlock.
    """
    blocks: list[Block] = []
    for block in content:
        match block.type:
            case "text":
                blocks.append({"type": "text", "text": block.text})
            case "tool_use":
                blocks.append(
                    {"type": "tool_use", "id": block.id, "name": block.name, "input": block.input}
                )
            case "thinking":
                blocks.append(
                    {
                        "type": "thinking",
                        "thinking": block.thinking,
                        "signature": block.signature,
                    }
                )
            case "redacted_thinking":
                blocks.append({"type": "redacted_thinking", "data": block.data})
            case other:
                _log.warning("left out a content block of the unknown kind %r", other)
    return blocks


def _usage(usage: anthropic.types.Usage) -> Usage:
    return Usage(
        input=usage.input_tokens,
        output=usage.output_tokens,
        cache_read=usage.cache_read_input_tokens or 0,
        cache_write=usage.cache_creation_input_tokens or 0,
    )
