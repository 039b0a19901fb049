"""A local Slack: Web API and Socket Mode over real sockets, limits enforced; it knows no bot.

Tests drive people (`mention`, `say`, `slash`, `click`) and read what people would see
(`thread`, `shown`, `private`). Every call is recorded; faults are injected by method name.
"""

import asyncio
import json
import time
from collections import Counter, defaultdict
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qsl

from aiohttp import WSMsgType, web

from tests.slack_methods import METHODS
from tests.slack_people import BOT_USER, People
from tests.slack_rules import SlackError, live_mentions, texts_of

__all__ = [
    "APP_TOKEN",
    "BOT_ID",
    "BOT_TOKEN",
    "BOT_USER",
    "TEAM",
    "Call",
    "Envelope",
    "SlackServer",
]

BOT_TOKEN, APP_TOKEN = "xoxb-1-test", "xapp-1-test"
BOT_ID, TEAM = "BBOT", "T1"
SCOPES = (
    "app_mentions:read,assistant:write,chat:write,commands,channels:history,groups:history,"
    "im:history,mpim:history,im:write,users:read,reactions:read,files:read"
)


@dataclass(slots=True)
class Call:
    """One Web API call, and what it was answered with."""

    method: str
    args: dict[str, Any]
    at: float
    answer: dict[str, Any] = field(default_factory=dict)


@dataclass(slots=True)
class Envelope:
    """One delivery over Socket Mode."""

    id: str
    acks: int = 0
    answer: dict[str, Any] | None = None
    deliveries: int = 0
    sent: asyncio.Event = field(default_factory=asyncio.Event)
    acknowledged: asyncio.Event = field(default_factory=asyncio.Event)


class SlackServer(People):
    """`async with SlackServer() as slack:` then point SLACK_API_URL at `slack.url`."""

    def __init__(self, *, team: str = TEAM, retry_s: float = 1.0, has_streams: bool = True) -> None:
        super().__init__()
        self.team = team
        self.retry_s = retry_s
        self.has_streams = has_streams
        self.scopes = SCOPES
        self.calls: list[Call] = []
        self.channels: dict[str, list[dict[str, Any]]] = defaultdict(list)
        self.ephemeral: list[dict[str, Any]] = []
        self.responses: list[dict[str, Any]] = []
        self.views: list[dict[str, Any]] = []
        self.statuses: dict[tuple[str, str], str] = {}
        self.sessions: dict[tuple[str, str], str] = {}
        self.files: dict[str, bytes] = {}
        self.users: dict[str, dict[str, Any]] = {}
        self.envelopes: dict[str, Envelope] = {}
        self.sockets: list[web.WebSocketResponse] = []
        self.stream_limit_s = 300.0
        # A deaf server leaves pings unanswered: its sockets look open and are not.
        self.is_deaf = False
        self.connections = 0
        self.errors: list[str] = []
        self._faults: dict[str, list[tuple[str, float]]] = defaultdict(list)
        self._gates: dict[str, asyncio.Event] = {}
        self._turn = 0
        self._tasks: set[asyncio.Task[None]] = set()

    async def __aenter__(self) -> "SlackServer":
        app = web.Application(client_max_size=4 * 1024 * 1024)
        app.router.add_post("/api/{method}", self._answer)
        app.router.add_get("/api/{method}", self._answer)
        app.router.add_get("/socket", self._socket)
        app.router.add_post("/response/{id}", self._response)
        app.router.add_get("/files/{id}", self._file)
        self._runner = web.AppRunner(app, access_log=None, shutdown_timeout=1)
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", 0).start()
        self.port = self._runner.addresses[0][1]
        return self

    async def __aexit__(self, *_: object) -> None:
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        for socket in list(self.sockets):
            await socket.close()
        await self._runner.cleanup()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/api/"

    # Faults ------------------------------------------------------------------------------------

    def fail(self, method: str, error: str, times: int = 1, retry_after_s: float = 0) -> None:
        """The next `times` calls of `method` fail; "ratelimited" answers 429."""
        self._faults[method] += [(error, retry_after_s)] * times

    def hold(self, method: str) -> asyncio.Event:
        """Calls of `method` wait until the event that this returns is set."""
        return self._gates.setdefault(method, asyncio.Event())

    # What people see ---------------------------------------------------------------------------

    def own(self, channel: str) -> list[dict[str, Any]]:
        """All that the bot has posted in a channel and that is still there."""
        return [m for m in self.channels[channel] if m.get("bot_id") == BOT_ID]

    def thread(self, channel: str, ts: str) -> list[dict[str, Any]]:
        """The bot's messages in a thread, in order."""
        return [m for m in self.own(channel) if m.get("thread_ts") == ts]

    @staticmethod
    def shown(message: dict[str, Any]) -> str:
        """The text of a message as people read it: streamed text and all blocks."""
        parts = [message.get("streamed", ""), *texts_of(message.get("blocks", []))]
        if not any(parts):
            parts = [message.get("text", ""), *(a["text"] for a in message.get("attachments", []))]
        return "\n".join(part for part in parts if part)

    def answers(self, channel: str, ts: str) -> list[str]:
        """What the thread's finished answers show, traces left out."""
        return [
            self.shown(m)
            for m in self.thread(channel, ts)
            if m.get("metadata", {}).get("event_payload", {}).get("kind") != "trace"
        ]

    def traces(self, channel: str, ts: str) -> list[str]:
        return [
            self.shown(m)
            for m in self.thread(channel, ts)
            if m.get("metadata", {}).get("event_payload", {}).get("kind") == "trace"
        ]

    def pings(self) -> list[str]:
        """Every live mention that anything posted would have made."""
        everything = [m for c in self.channels.values() for m in c if m.get("bot_id") == BOT_ID]
        views = [view["view"] for view in self.views]
        streamed = [{"text": m.get("streamed", "")} for m in everything]
        shown = [*everything, *streamed, *self.ephemeral, *self.responses, *views]
        return [hit for item in shown for hit in live_mentions(item)]

    def count(self) -> Counter[str]:
        """How often each method was called."""
        return Counter(call.method for call in self.calls)

    # Socket Mode -------------------------------------------------------------------------------

    async def deliver(self, kind: str, payload: dict[str, Any]) -> Envelope:
        """Send an envelope to one of the connections; repeated while nobody acknowledges it."""
        envelope = Envelope(f"env{self.next_ts()}")
        self.envelopes[envelope.id] = envelope
        task = asyncio.create_task(self._deliver(kind, payload, envelope))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        if self.sockets:
            async with asyncio.timeout(10):
                await envelope.sent.wait()
        return envelope

    async def _deliver(self, kind: str, payload: dict[str, Any], envelope: Envelope) -> None:
        while envelope.acks == 0 and envelope.deliveries < 60:
            alive = [socket for socket in self.sockets if not socket.closed]
            if not alive:
                await asyncio.sleep(0.01)
                continue
            self._turn += 1
            frame = {
                "type": kind,
                "envelope_id": envelope.id,
                "payload": payload,
                "retry_attempt": envelope.deliveries,
                "accepts_response_payload": True,
            }
            envelope.deliveries += 1
            try:
                await alive[self._turn % len(alive)].send_str(json.dumps(frame))
            except ConnectionError:
                continue
            envelope.sent.set()
            with suppress(TimeoutError):
                await asyncio.wait_for(envelope.acknowledged.wait(), self.retry_s)

    async def disconnect(self) -> None:
        """Tell every connection to make a new one, as Slack does now and then."""
        for socket in list(self.sockets):
            await socket.send_str(json.dumps({"type": "disconnect", "reason": "refresh_requested"}))

    async def _socket(self, request: web.Request) -> web.WebSocketResponse:
        socket = web.WebSocketResponse(autoping=False)
        await socket.prepare(request)
        await socket.send_str(json.dumps({"type": "hello", "num_connections": 1}))
        self.sockets.append(socket)
        self.connections += 1
        try:
            async for frame in socket:
                if frame.type == WSMsgType.PING and not self.is_deaf:
                    await socket.pong(frame.data)
                elif frame.type == WSMsgType.TEXT:
                    answer = json.loads(frame.data)
                    envelope = self.envelopes[answer["envelope_id"]]
                    envelope.acks += 1
                    envelope.answer = answer.get("payload")
                    envelope.acknowledged.set()
        finally:
            self.sockets.remove(socket)
        return socket

    # Web API -----------------------------------------------------------------------------------

    async def _answer(self, request: web.Request) -> web.Response:
        method = request.match_info["method"]
        body = await request.text()
        if request.content_type == "application/json":
            args = json.loads(body) if body else {}
        else:
            args = dict(parse_qsl(body, keep_blank_values=True)) | dict(request.query)
            for name in ("blocks", "view", "metadata", "attachments"):
                if isinstance(args.get(name), str):
                    args[name] = json.loads(args[name])
        token = request.headers.get("Authorization", "").removeprefix("Bearer ")
        call = Call(method, args, time.monotonic())
        self.calls.append(call)
        if method in self._gates:
            await self._gates[method].wait()
        headers = {"x-oauth-scopes": self.scopes}
        try:
            if self._faults[method]:
                error, retry_after_s = self._faults[method].pop(0)
                if error == "ratelimited":
                    headers["Retry-After"] = str(int(retry_after_s) or 1)
                    call.answer = {"ok": False, "error": error}
                    return web.json_response(call.answer, status=429, headers=headers)
                raise SlackError(error)
            if token != (APP_TOKEN if method == "apps.connections.open" else BOT_TOKEN):
                raise SlackError("not_allowed_token_type" if token else "not_authed")
            if method not in METHODS:
                raise SlackError("unknown_method")
            call.answer = {"ok": True, **METHODS[method](self, args)}
        except SlackError as err:
            self.errors.append(f"{method}: {' '.join(err.args)}")
            call.answer = {"ok": False, "error": err.args[0]}
        return web.json_response(call.answer, headers=headers)

    async def _response(self, request: web.Request) -> web.Response:
        self.responses.append(await request.json())
        return web.Response(text="ok")

    async def _file(self, request: web.Request) -> web.Response:
        if request.headers.get("Authorization") != f"Bearer {BOT_TOKEN}":
            return web.Response(status=403)
        return web.Response(body=self.files[request.match_info["id"]])
