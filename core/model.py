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
from core.incoming import Incoming, Unreadable
from core.model_errors import model_error, stop_hopeless_retries, stream_error
from core.protocols import Block, ChatMessage, ModelEvent
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

        incoming, has_begun = Incoming(), False
        try:
            stream = await client.messages.create(
                **self._request(system, messages, tools, max_tokens), stream=True
            )
            async with stream:
                has_begun = True
                async for sent in stream.raw_events(stream.response):
                    if not sent.data:
                        continue
                    event = sent.json()
                    if sent.event == "error":
                        raise stream_error(event)
                    if (heard := incoming.take(event)) is not None:
                        yield heard
            if not incoming.is_whole:
                raise ModelError("the reply ended unfinished", StopReason.ERROR, retryable=True)
            reply = incoming.reply()
        except anthropic.APIError as err:
            raise model_error(err) from err
        except httpx2.TransportError as err:
            # The SDK wraps what fails before the reply begins; after that this escapes as it is.
            raise ModelError(
                f"the reply was cut off: {type(err).__name__}", StopReason.ERROR, retryable=True
            ) from err
        except (Unreadable, ValueError) as err:
            if not has_begun:
                raise
            raise ModelError(
                "the reply could not be read", StopReason.ERROR, retryable=True
            ) from err
        if incoming.refusal is not None:
            _log.info("the model refused: category %s", incoming.refusal)
        yield reply

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
