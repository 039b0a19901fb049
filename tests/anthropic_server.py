"""A strict local server of Anthropic's Messages API, for tests, benches and demonstrations.

It checks every request as Anthropic would (tests/anthropic_rules.py), accounts for the prompt
cache (tests/anthropic_cache.py) and answers as it is told (tests/anthropic_script.py), or as a
sensible model. It must not know anything of Footnote.

    async with AnthropicServer() as server:
        server.script([ToolUse("search_docs", {"query": "ATS"})], [Text("Plain text.", (0,))])
        model = AnthropicModel("key", "claude-haiku-5-5", base_url=server.url)

As a process: `python -m tests.anthropic_server --port 0 --script replies.json` prints its URL as
one line of JSON; `GET /requests` then lists the requests that it has had.
"""

import argparse
import asyncio
import itertools
import json
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from aiohttp import web

from tests.anthropic_cache import Billed, PromptCache, prompt_tokens
from tests.anthropic_rules import BadRequest, check_count, check_create
from tests.anthropic_script import (
    Answer,
    HttpError,
    Raw,
    Reply,
    ScriptBlock,
    Text,
    Thinking,
    ToolUse,
    as_answer,
    load,
    search_results,
    sensible_model,
)
from tests.anthropic_stream import Delta, Message, ScriptError, wire_blocks

__all__ = [
    "AnthropicServer",
    "HttpError",
    "Raw",
    "Reply",
    "Request",
    "Text",
    "Thinking",
    "ToolUse",
]

MAX_BODY_BYTES = 32 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class Request:
    """A message request as it came. `billed` is None where it was refused or failed."""

    body: Mapping[str, Any]
    headers: Mapping[str, str]
    at: float
    billed: Billed | None
    status: int

    @property
    def search_results(self) -> list[dict[str, Any]]:
        """All search_result blocks, in the order that citations count them."""
        return search_results(self.body)


class AnthropicServer:
    """The server, while its `async with` block is open.

    `respond` decides what is answered once the script is used up. `requests` holds every message
    request, retries too; `refusals` the texts of the 400s; `disconnects` counts streams that the
    client left. Leaving the block raises what was wrong with the script, if anything.
    """

    def __init__(
        self,
        respond: Callable[[Mapping[str, Any]], Answer] | None = sensible_model,
        *,
        port: int = 0,
        context_window: int = 200_000,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.respond = respond
        self.requests: list[Request] = []
        self.refusals: list[str] = []
        self.problems: list[str] = []
        self.disconnects = 0
        self.cache = PromptCache(clock)
        self.context_window = context_window
        self.url = ""
        self._port = port
        self._clock = clock
        self._queue: deque[Answer] = deque()
        self._ids = itertools.count(1)
        self._call_ids = (f"toolu_{next(self._ids):06d}" for _ in itertools.count())
        app = web.Application(client_max_size=MAX_BODY_BYTES)
        app.router.add_post("/v1/messages", self._messages)
        app.router.add_post("/v1/messages/count_tokens", self._count_tokens)
        app.router.add_get("/requests", self._list)
        self._runner = web.AppRunner(app, handler_cancellation=True, shutdown_timeout=0.1)

    def script(self, *replies: Answer | ScriptBlock | Sequence[ScriptBlock]) -> None:
        """Answers the next requests with these, in order; a block or a list makes a plain reply.

        After a call to this, a request for which nothing is left is a mistake of the test.
        """
        self._queue.extend(as_answer(reply) for reply in replies)
        self.respond = None

    async def __aenter__(self) -> Self:
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", self._port)
        await site.start()
        host, port = self._runner.addresses[0][:2]
        self.url = f"http://{host}:{port}"
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self._runner.cleanup()
        if error is None and self.problems:
            raise ScriptError("; ".join(self.problems))

    async def _messages(self, request: web.Request) -> web.StreamResponse:
        body = await _json(request)
        error = self._refusal(request, body, check_create)
        if error is not None:
            return self._failed(request, body, error)
        answer = self._next(body)
        if isinstance(answer, HttpError):
            return self._failed(request, body, answer)
        try:
            blocks = wire_blocks(answer, body, self._call_ids)
        except ScriptError as err:
            return self._failed(request, body, self._problem(str(err)))
        billed = self.cache.bill(body)
        self._record(request, body, billed, 200)
        message = Message(
            f"msg_{len(self.requests):06d}", str(body["model"]), answer, blocks, billed
        )
        try:
            await asyncio.sleep(answer.delay_s)
            if body.get("stream"):
                return await self._stream(request, message)
            return web.json_response(message.whole())
        except (ConnectionResetError, asyncio.CancelledError):
            self.disconnects += 1
            raise

    async def _stream(self, request: web.Request, message: Message) -> web.StreamResponse:
        reply = message.reply
        response = web.StreamResponse(
            headers={"content-type": "text/event-stream", "request-id": f"req_{message.id}"}
        )
        await response.prepare(request)
        sent = 0
        for delta in message.events():
            kind = delta.event["type"]
            if reply.fault and (sent >= reply.fault_after or kind == "message_delta"):
                await self._break(request, response, reply.fault)
                return response
            await response.write(delta.wire())
            sent += delta.chars
            if delta.chars and reply.delta_s:
                await asyncio.sleep(reply.delta_s)
        await response.write_eof()
        return response

    async def _break(self, request: web.Request, response: web.StreamResponse, fault: str) -> None:
        match fault:
            case "stall":
                await asyncio.Event().wait()
            case "cut":
                assert request.transport is not None
                request.transport.abort()
            case "no_stop" | "no_reason":
                if fault == "no_reason":
                    await response.write(Delta({"type": "message_stop"}).wire())
                await response.write_eof()
            case _:
                kind = "overloaded_error" if fault == "overloaded" else "api_error"
                error = {"type": kind, "message": "a fault from the script"}
                await response.write(Delta({"type": "error", "error": error}).wire())
                await response.write_eof()

    async def _count_tokens(self, request: web.Request) -> web.StreamResponse:
        body = await _json(request)
        error = self._refusal(request, body, check_count)
        if error is not None:
            return _error(error)
        return web.json_response({"input_tokens": prompt_tokens(body)})

    async def _list(self, _: web.Request) -> web.StreamResponse:
        return web.json_response(
            [{"status": entry.status, "body": entry.body} for entry in self.requests]
        )

    def _refusal(
        self,
        request: web.Request,
        body: Mapping[str, Any],
        check: Callable[[Mapping[str, Any]], None],
    ) -> HttpError | None:
        if not request.headers.keys() & {"Authorization", "X-Api-Key"}:
            return HttpError(401, "authentication_error", "an API key is required")
        if not request.headers.get("anthropic-version"):
            return HttpError(400, "invalid_request_error", "anthropic-version: header is required")
        try:
            check(body)
            size = prompt_tokens(body)
            if size > self.context_window:
                raise BadRequest(
                    f"prompt is too long: {size} tokens > {self.context_window} maximum"
                )
        except BadRequest as err:
            self.refusals.append(str(err))
            return HttpError(400, "invalid_request_error", str(err))
        return None

    def _next(self, body: Mapping[str, Any]) -> Answer:
        if self._queue:
            return self._queue.popleft()
        if self.respond is None:
            return self._problem("a request came for which the script has nothing left")
        return as_answer(self.respond(body))

    def _problem(self, text: str) -> HttpError:
        self.problems.append(text)
        return HttpError(400, "invalid_request_error", f"mistake in the script: {text}")

    def _failed(self, request: web.Request, body: Any, error: HttpError) -> web.Response:
        self._record(request, body, None, error.status)
        return _error(error)

    def _record(
        self, request: web.Request, body: Mapping[str, Any], billed: Billed | None, status: int
    ) -> None:
        headers = {name.lower(): value for name, value in request.headers.items()}
        self.requests.append(Request(body, headers, self._clock(), billed, status))


async def _json(request: web.Request) -> dict[str, Any]:
    return dict(await request.json())


def _error(error: HttpError) -> web.Response:
    detail: dict[str, Any] = {"type": error.type, "message": error.message}
    if error.error_code is not None:
        detail["details"] = {"error_code": error.error_code}
    return web.json_response(
        {"type": "error", "error": detail, "request_id": "req_error"},
        status=error.status,
        headers={"request-id": "req_error", **error.headers},
    )


async def _serve(port: int, replies: list[Answer], delay_s: float) -> None:
    def respond(body: Mapping[str, Any]) -> Answer:
        answer = sensible_model(body)
        return replace(answer, delay_s=delay_s) if isinstance(answer, Reply) else answer

    async with AnthropicServer(respond, port=port) as server:
        if replies:
            server.script(*replies)
        print(json.dumps({"url": server.url}), flush=True)
        await asyncio.Event().wait()


def main() -> None:
    """Serves until it is stopped."""
    parser = argparse.ArgumentParser(description="A local server of Anthropic's Messages API.")
    parser.add_argument("--port", type=int, default=0, help="0 takes a free one")
    parser.add_argument("--script", type=Path, help="a JSON file of replies, in order")
    parser.add_argument("--delay", type=float, default=0.0, help="seconds before each reply")
    options = parser.parse_args()
    replies = load(options.script) if options.script else []
    try:
        asyncio.run(_serve(options.port, replies, options.delay))
    except KeyboardInterrupt:
        return


if __name__ == "__main__":
    main()
