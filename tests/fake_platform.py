"""A recording chat platform over real sockets, and a worker process that serves it.

The platform counts posts, edits and model calls by message, and can say what is posted already,
as Slack and Discord can. `python -m tests.fake_platform URL REDIS DATA_DIR SETTINGS`
is a worker (SETTINGS as JSON): it answers with a model of two calls, and may be killed.
"""

import asyncio
import json
import signal
import sys
import time
from collections.abc import AsyncGenerator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import aiohttp
from aiohttp import web

from core.app import App
from core.config import Settings
from core.protocols import ChatMessage, ModelBlockEnd, ModelEvent, ModelReply, ModelText, Ref
from core.transcript import blocks_of, question_of, text_block
from core.types import Message, Run, Usage

PLATFORM = "fake"
WORKSPACE = "W1"


@dataclass
class Post:
    """One message of the bot's, as people see it."""

    id: str
    message_id: str
    text: str
    finals: int = 0
    at: float = field(default_factory=time.monotonic)


class PlatformServer:
    """The platform; `posts` and `model_calls` are what happened."""

    def __init__(self, *, model_delay_s: float = 0.0) -> None:
        self.posts: dict[str, Post] = {}
        self.by_message: dict[str, str] = {}
        self.model_calls: dict[tuple[str, int], int] = {}
        self.finished: list[str] = []
        self.url = ""
        self.model_delay_s = model_delay_s
        self.held_turns: set[int] = set()
        self.holds_edits = False
        self.edits = 0
        self._gate = asyncio.Event()
        self._gate.set()

    def hold(self, *turns: int, edits: bool = False) -> None:
        """Model calls of these turns, and final edits, wait from now on."""
        self.held_turns, self.holds_edits = set(turns), edits
        self._gate.clear()

    def release(self) -> None:
        """Everything goes on."""
        self._gate.set()

    async def __aenter__(self) -> "PlatformServer":
        app = web.Application()
        app.router.add_post("/post", self._post)
        app.router.add_post("/edit", self._edit)
        app.router.add_get("/find", self._find)
        app.router.add_post("/model", self._model)
        self._runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", 0)
        await site.start()
        self.url = f"http://127.0.0.1:{self._runner.addresses[0][1]}"
        return self

    async def __aexit__(self, *_: object) -> None:
        self._gate.set()
        await self._runner.cleanup()

    async def _post(self, request: web.Request) -> web.Response:
        data = await request.json()
        known = self.by_message.get(data["nonce"])
        if known is None:
            known = f"p{len(self.posts) + 1}"
            self.posts[known] = Post(known, data["nonce"], data["text"])
            self.by_message[data["nonce"]] = known
        return web.json_response({"id": known})

    async def _edit(self, request: web.Request) -> web.Response:
        data = await request.json()
        self.edits += 1
        if self.holds_edits:
            await self._gate.wait()
        post = self.posts[data["id"]]
        post.text = data["text"]
        if data["is_final"]:
            post.finals += 1
            if post.finals == 1:
                self.finished.append(post.message_id)
        return web.json_response({})

    async def _find(self, request: web.Request) -> web.Response:
        return web.json_response({"id": self.by_message.get(request.query["message_id"])})

    async def _model(self, request: web.Request) -> web.Response:
        data = await request.json()
        key = (data["message_id"], data["turn"])
        self.model_calls[key] = self.model_calls.get(key, 0) + 1
        if data["turn"] in self.held_turns:
            await self._gate.wait()
        await asyncio.sleep(self.model_delay_s)
        return web.json_response({})


class PlatformAdapter:
    """Core's view of the platform."""

    platform = PLATFORM
    workspaces: Sequence[str] = (WORKSPACE,)

    def __init__(self, url: str, http: aiohttp.ClientSession) -> None:
        self.url = url
        self.http = http

    async def ask(self, path: str, data: Mapping[str, Any]) -> Any:
        async with self.http.post(f"{self.url}/{path}", json=data) as response:
            response.raise_for_status()
            return await response.json()

    async def enrich(self, message: Message) -> Message:
        return message

    async def open_reply(self, message: Message, ref: Ref | None) -> "PlatformReply":
        return PlatformReply(self, message, ref)


class PlatformReply:
    """Posts at the first text, edits at the end; finishes what another process had posted."""

    def __init__(self, adapter: PlatformAdapter, message: Message, ref: Ref | None) -> None:
        self._adapter = adapter
        self._message = message
        self._ref = ref
        self._text = ""

    @property
    def ref(self) -> Ref | None:
        return self._ref

    async def status(self, text: str) -> None:
        return None

    async def append(self, delta: str) -> None:
        self._text += delta
        await self._posted()

    async def reset(self, text: str) -> None:
        self._text = text

    async def close(self, run: Run) -> None:
        post = await self._posted()
        text = run.text + (f"\n{run.note}" if run.note else "")
        data = {"id": post, "text": f"{text}\n{run.stop_reason.value}", "is_final": True}
        await self._adapter.ask("edit", data)

    async def _posted(self) -> str:
        if self._ref is None:
            data = {"nonce": self._message.id, "text": self._text}
            posted = await self._adapter.ask("post", data)
            self._ref = {"id": posted["id"], "aliases": [posted["id"]]}
        return str(self._ref["id"])


class CountedModel:
    """Searches once, then answers with what it was asked and how long the transcript was."""

    id = "counted"
    has_citations = True

    def __init__(self, adapter: PlatformAdapter) -> None:
        self._adapter = adapter

    def cost_usd(self, usage: Usage) -> float | None:
        return 0.0

    async def stream(
        self,
        system: str,
        messages: Sequence[ChatMessage],
        tools: Sequence[Mapping[str, Any]],
        max_tokens: int,
    ) -> AsyncGenerator[ModelEvent]:
        question = question_of(messages)
        turn = 1 if blocks_of(messages[-1])[0]["type"] == "text" else 2
        await self._adapter.ask("model", {"message_id": question, "turn": turn})
        usage = Usage(input=100, output=10)
        if turn == 1:
            call = {
                "type": "tool_use",
                "id": "toolu_1",
                "name": "search_docs",
                "input": {"query": "resume"},
            }
            yield ModelReply([call], "tool_use", usage)
            return
        text = f"answer to {question} after {len(messages) // 2} messages"
        yield ModelText(text)
        yield ModelBlockEnd(())
        yield ModelReply([text_block(text)], "end_turn", usage)


async def work(url: str, redis_url: str | None, data_dir: Path, **settings: Any) -> None:
    """A worker until SIGTERM."""
    stop = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop.set)
    async with aiohttp.ClientSession() as http:
        adapter = PlatformAdapter(url, http)
        docs = data_dir.parent / "docs"
        docs.mkdir(exist_ok=True)
        (docs / "top.md").write_text("# The top\n\nPut your name at the top of the resume.\n")
        known = Settings(redis_url=redis_url, data_dir=data_dir, docs_path=docs, **settings)  # type: ignore[arg-type]
        app = await App.open(known, model=CountedModel(adapter))
        try:
            print("ready", flush=True)
            await app.serve([adapter], stop)
        finally:
            await app.close()


if __name__ == "__main__":
    url, redis_url, data_dir, settings = sys.argv[1:]
    asyncio.run(work(url, redis_url or None, Path(data_dir), **json.loads(settings)))
