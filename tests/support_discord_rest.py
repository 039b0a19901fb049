"""Discord's REST routes over a `World`, with its limits, its error codes and its rate limits.

It must not know Footnote. Replies carry exactly `Content-Type: application/json`, because
discord.py parses nothing else.
"""

import asyncio
import json
import re
import time
from dataclasses import dataclass
from typing import Any, cast

from aiohttp import web

from tests.support_discord_interactions import Interactions
from tests.support_discord_limits import Limits
from tests.support_discord_world import (
    CREATE_THREADS,
    NEWS_THREAD,
    THREAD,
    VOICE,
    ApiError,
    Json,
    World,
    snowflake,
)


@dataclass
class Call:
    """One request that came in."""

    method: str
    path: str
    body: Json
    at: float
    status: int = 0


@dataclass
class Fault:
    """An answer to give in place of the real one; `after` does the work first.

    With `released` the real answer is given, late: when that is set.
    """

    method: str
    path: str
    error: ApiError
    times: int
    after: bool = False
    released: asyncio.Event | None = None


class Rest(Interactions):
    """The routes. `calls` is every request; `pings` the posts that would notify somebody."""

    def __init__(self, world: World, dispatch: Any) -> None:
        super().__init__(world)
        self.dispatch = dispatch
        self.calls: list[Call] = []
        self.faults: list[Fault] = []
        self.gateway_url = ""
        self.limits = Limits()

    def fail(
        self,
        method: str,
        path: str,
        status: int,
        code: int,
        *,
        times: int = 1,
        after: bool = False,
        headers: dict[str, str] | None = None,
        **extra: Any,
    ) -> None:
        """Answer the next `times` matching requests with an error."""
        error = ApiError(status, code, "injected", headers or {}, extra)
        self.faults.append(Fault(method, path, error, times, after))

    def hold(self, method: str, path: str) -> asyncio.Event:
        """Do what the next matching request asks, but answer only when the event is set."""
        released = asyncio.Event()
        self.faults.append(Fault(method, path, ApiError(500, 0), 1, released=released))
        return released

    async def handle(self, request: web.Request) -> web.StreamResponse:
        path = request.path.removeprefix("/api/v10")
        if path.startswith("/cdn/"):
            data = self.world.files.get(path.split("/")[2])
            return web.Response(status=404) if data is None else web.Response(body=data)
        body = await self._body(request)
        call = Call(request.method, path, body, time.monotonic())
        self.calls.append(call)
        response = await self._answer(call, dict(request.query))
        call.status = response.status
        return response

    async def _answer(self, call: Call, query: Json) -> web.Response:
        try:
            fault = self._fault(call.method, call.path)
            if fault is not None and not fault.after and fault.released is None:
                raise fault.error
            headers = self.limits.count(call.method, call.path)
            result = await self._route(call.method, call.path, call.body, query)
            if fault is not None and fault.released is not None:
                await fault.released.wait()
            elif fault is not None:
                raise fault.error
        except ApiError as err:
            data = {"code": err.code, "message": err.text, **err.extra}
            return self._json(data, err.status, err.headers)
        if result is None:
            return web.Response(status=204, headers=headers)
        return self._json(result, headers=headers)

    def _json(self, data: Any, status: int = 200, headers: Json | None = None) -> web.Response:
        raw = json.dumps(data).encode()
        kind = {"Content-Type": "application/json", **(headers or {})}
        return web.Response(body=raw, status=status, headers=kind)

    async def _body(self, request: web.Request) -> Json:
        if request.content_type == "multipart/form-data":
            form = await request.post()
            body: Json = json.loads(str(form.get("payload_json", "{}")))
            files = [f for f in form.values() if isinstance(f, web.FileField)]
            body["_files"] = [(f.filename, f.file.read()) for f in files]
            return body
        return await request.json() if request.can_read_body else {}

    def _fault(self, method: str, path: str) -> Fault | None:
        for fault in self.faults:
            if fault.times > 0 and fault.method == method and re.search(fault.path, path):
                fault.times -= 1
                return fault
        return None

    async def _route(self, method: str, path: str, body: Json, query: Json) -> Any:
        w = self.world
        match [method, *path.strip("/").split("/")]:
            case ["GET", "users", "@me"]:
                return w.bot
            case ["GET", "oauth2", "applications", "@me"] | ["GET", "applications", "@me"]:
                return w.application
            case ["GET", "gateway", "bot"]:
                limits = {"total": 1000, "remaining": 999, "reset_after": 0, "max_concurrency": 1}
                return {"shards": 1, "url": self.gateway_url, "session_start_limit": limits}
            case ["GET", "applications", _, "commands"]:
                return w.commands
            case ["PUT", "applications", _, "commands"]:
                common = {"application_id": w.bot["id"], "version": "1"}
                w.commands = [
                    {"description": "", "nsfw": False, **c, **common, "id": snowflake()}
                    for c in cast("list[Json]", body)
                ]
                return w.commands
            case ["GET", "guilds", gid]:
                return self._found(w.guilds.get(gid), 10004)
            case ["GET", "guilds", gid, "members", uid]:
                return self._found(w.members.get((gid, uid)), 10007)
            case ["GET", "users", "@me", "guilds"]:
                return [{"id": g, "name": "g"} for g in w.guilds]
            case ["POST", "users", "@me", "channels"]:
                user = w.users[str(body["recipient_id"])]
                return {**w.channel(None, 1), "recipients": [user]}
            case ["POST", "interactions", iid, token, "callback"]:
                self._callback(iid, token, body)
                shown = {"id": iid, "type": 2, "response_message_id": f"{iid}0"}
                return (
                    {"interaction": shown} if query.get("with_response") in ("1", "true") else None
                )
            case ["POST", "webhooks", _, token]:
                return self._followup(token, body)
            case [verb, "webhooks", _, token, "messages", mid]:
                return self._webhook_message(verb, token, mid, body)
            case [verb, "channels", cid, *rest]:
                return self._channel(
                    verb, self._found(w.channels.get(cid), 10003), rest, body, query
                )
            case _:
                raise ApiError(404, 0, f"no such route: {method} {path}")

    def _found(self, item: Any, code: int) -> Any:
        if item is None:
            raise ApiError(404, code, "Unknown")
        return item

    def _channel(self, verb: str, channel: Json, rest: list[str], body: Json, query: Json) -> Any:
        messages = self.world.messages[channel["id"]]
        match [verb, *rest]:
            case ["GET"]:
                return channel
            case ["POST", "typing"]:
                return None
            case ["GET", "messages"]:
                ids = sorted(messages, key=int)
                if after := query.get("after"):
                    ids = [m for m in ids if int(m) > int(after)][: int(query["limit"])]
                return [messages[m] for m in reversed(ids[-int(query["limit"]) :])]
            case ["POST", "messages"]:
                return self._send(channel, body)
            case ["GET", "messages", mid]:
                return self._found(messages.get(mid), 10008)
            case ["PATCH", "messages", mid]:
                return self._edit(channel, self._found(messages.get(mid), 10008), body)
            case ["DELETE", "messages", mid]:
                self._found(messages.pop(mid, None), 10008)
                return None
            case ["POST", "messages", mid, "threads"]:
                return self._thread(channel, mid, body)
            case ["PUT" | "DELETE", "messages", _, "reactions", *_]:
                return None
            case _:
                raise ApiError(404, 0, f"no such route: {verb} {rest}")

    def _send(self, channel: Json, body: Json) -> Json:
        w = self.world
        self._check_text(body)
        if not body.get("content") and not body.get("embeds") and not body.get("_files"):
            raise ApiError(400, 50006, "Cannot send an empty message")
        if channel.get("thread_metadata", {}).get("locked"):
            raise ApiError(403, 160005, "Thread is locked")
        nonce = body.get("nonce")
        if nonce is not None and len(nonce) > 25:
            raise ApiError(400, 50035, "Invalid Form Body: nonce")
        if nonce is not None and body.get("enforce_nonce"):
            known = w.nonces.get((channel["id"], nonce))
            if known is not None and known in w.messages[channel["id"]]:
                return w.messages[channel["id"]][known]
        reference = body.get("message_reference")
        self._note_ping(body, is_reply=reference is not None)
        if reference is not None:
            reference = {k: str(v) if k.endswith("_id") else v for k, v in reference.items()}
            home = w.messages.get(reference.get("channel_id", channel["id"]), {})
            if reference["message_id"] not in home:
                if reference.get("fail_if_not_exists", True):
                    raise ApiError(400, 50035, "Unknown message reference")
                reference = None
        if "thread_metadata" in channel:
            channel["thread_metadata"]["archived"] = False
        more: Json = {"nonce": nonce, "components": body.get("components") or []}
        if reference is not None:
            more["message_reference"] = reference
        message = w.post(channel, w.bot, body.get("content") or "", **more)
        self._store_files(message, body)
        if nonce is not None:
            w.nonces[channel["id"], nonce] = message["id"]
        self.dispatch("MESSAGE_CREATE", message)
        return message

    def _edit(self, channel: Json, message: Json, body: Json) -> Json:
        self._check_text(body)
        if channel.get("thread_metadata", {}).get("archived"):
            raise ApiError(400, 50083, "Thread is archived")
        if message["author"]["id"] != self.world.bot["id"]:
            raise ApiError(403, 50005, "Cannot edit another user's message")
        self._note_ping(body, is_reply=False)
        for name in ("content", "components", "flags"):
            if name in body:
                message[name] = body[name] or ([] if name == "components" else "")
        if "attachments" in body:
            message["attachments"] = []
        self._store_files(message, body)
        return message

    def _thread(self, channel: Json, mid: str, body: Json) -> Json:
        if channel["type"] in (1, VOICE, THREAD, NEWS_THREAD):
            raise ApiError(400, 50024, "Cannot execute action on this channel type")
        if mid in self.world.channels:
            raise ApiError(400, 160004, "A thread has already been created for this message")
        roles = self.world.guilds[channel["guild_id"]]["roles"]
        if not any(int(role["permissions"]) & CREATE_THREADS for role in roles):
            raise ApiError(403, 50013, "Missing Permissions")
        if not 1 <= len(body["name"]) <= 100:
            raise ApiError(400, 50035, "Invalid Form Body: name")
        thread = self.world.thread(channel, self.world.bot, thread_id=mid, name=body["name"])
        self.dispatch("THREAD_CREATE", {**thread, "newly_created": True})
        return thread
