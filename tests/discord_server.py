"""A small Discord on this machine: gateway over a real websocket, REST over real HTTP.

It must not know Footnote. A client is pointed at it by `DISCORD_API_URL` alone, since the
gateway's address comes from `/gateway/bot`.
"""

import asyncio
import contextlib
import json
import zlib
from typing import Any

import aiohttp
from aiohttp import web

from tests.support_discord_rest import Rest
from tests.support_discord_world import MESSAGE_CONTENT_INTENT, Json, World, snowflake

HELLO, DISPATCH, HEARTBEAT, IDENTIFY, RESUME, ACK = 10, 0, 1, 2, 6, 11


class DiscordServer:
    """`world` is what exists, `rest` what was called; `say` and `interact` act as people."""

    def __init__(self, world: World | None = None) -> None:
        self.world = world or World()
        self.rest = Rest(self.world, self.dispatch)
        self.identifies: list[Json] = []
        self.resumes: list[Json] = []
        self.heartbeats = 0
        self.heartbeat_interval_ms = 30_000
        self.is_content_allowed = True
        self.is_privileged_refused = False
        self.replay: list[tuple[str, Json]] = []
        self._sockets: dict[web.WebSocketResponse, Any] = {}
        self._intents = 0
        self._seq = 0
        self._runner: web.AppRunner | None = None
        self._tasks: set[asyncio.Task[None]] = set()

    @property
    def api_url(self) -> str:
        return f"{self.rest.base}/api/v10"

    @property
    def is_connected(self) -> bool:
        return bool(self._sockets)

    async def start(self) -> None:
        app = web.Application(client_max_size=32 << 20)
        app.router.add_get("/gateway/", self._gateway)
        app.router.add_route("*", "/{path:.*}", self.rest.handle)
        self._runner = web.AppRunner(app, shutdown_timeout=1.0)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", 0)
        await site.start()
        port = self._runner.addresses[0][1]
        self.rest.base = f"http://127.0.0.1:{port}"
        self.rest.gateway_url = f"ws://127.0.0.1:{port}/gateway/"

    async def stop(self) -> None:
        for socket in list(self._sockets):
            await socket.close(code=1001)
        if self._runner is not None:
            await self._runner.cleanup()

    async def _gateway(self, request: web.Request) -> web.WebSocketResponse:
        socket = web.WebSocketResponse()
        await socket.prepare(request)
        is_packed = request.query.get("compress") == "zlib-stream"
        packer = zlib.compressobj() if is_packed else None
        try:
            await self._send(
                socket, packer, HELLO, {"heartbeat_interval": self.heartbeat_interval_ms}
            )
            async for frame in socket:
                if frame.type != aiohttp.WSMsgType.TEXT:
                    break
                await self._receive(socket, packer, json.loads(frame.data))
        finally:
            self._sockets.pop(socket, None)
        return socket

    async def _receive(self, socket: web.WebSocketResponse, packer: Any, frame: Json) -> None:
        match frame["op"]:
            case 1:
                self.heartbeats += 1
                await self._send(socket, packer, ACK, None)
            case 2:
                self.identifies.append(frame["d"])
                self._intents = frame["d"]["intents"]
                if self.is_privileged_refused and self._intents & MESSAGE_CONTENT_INTENT:
                    await socket.close(code=4014, message=b"Disallowed intent(s).")
                    return
                await self._ready(socket, packer, frame["d"].get("shard", [0, 1]))
            case 6:
                self.resumes.append(frame["d"])
                for event, data in self.replay:
                    await self._event(socket, packer, event, data)
                self.replay.clear()
                await self._event(socket, packer, "RESUMED", {})
                self._sockets[socket] = packer
            case _:
                pass

    async def _ready(self, socket: web.WebSocketResponse, packer: Any, shard: list[int]) -> None:
        application = {"id": self.world.bot["id"], "flags": self.world.application["flags"]}
        ready = {
            "v": 10,
            "user": self.world.bot,
            "guilds": [{"id": g, "unavailable": True} for g in self.world.guilds],
            "session_id": snowflake(),
            "resume_gateway_url": self.rest.gateway_url,
            "shard": shard,
            "application": application,
        }
        await self._event(socket, packer, "READY", ready)
        for guild in self.world.guilds.values():
            await self._event(socket, packer, "GUILD_CREATE", self.world.guild_payload(guild))
        self._sockets[socket] = packer

    async def _event(
        self, socket: web.WebSocketResponse, packer: Any, event: str, data: Json
    ) -> None:
        self._seq += 1
        await self._send(socket, packer, DISPATCH, data, t=event, s=self._seq)

    async def _send(
        self, socket: web.WebSocketResponse, packer: Any, op: int, data: Any, **more: Any
    ) -> None:
        raw = json.dumps({"op": op, "d": data, **more}).encode()
        # a client that is killed in a test leaves a socket that is closing
        with contextlib.suppress(ConnectionError):
            if packer is None:
                await socket.send_str(raw.decode())
            else:
                await socket.send_bytes(packer.compress(raw) + packer.flush(zlib.Z_SYNC_FLUSH))

    def dispatch(self, event: str, data: Json) -> None:
        """Send an event to every connected client, in order."""
        if event == "MESSAGE_CREATE":
            data = self._as_seen(data)
        for socket, packer in list(self._sockets.items()):
            task = asyncio.ensure_future(self._event(socket, packer, event, data))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    def _as_seen(self, message: Json) -> Json:
        """Without the message-content intent, text comes only where the bot is addressed."""
        is_addressed = any(u["id"] == self.world.bot["id"] for u in message["mentions"])
        is_own = message["author"]["id"] == self.world.bot["id"]
        is_dm = "guild_id" not in message
        can_read = self.is_content_allowed and self._intents & MESSAGE_CONTENT_INTENT
        if can_read or is_addressed or is_own or is_dm:
            return message
        return {**message, "content": "", "embeds": [], "attachments": [], "components": []}

    def say(self, channel: Json, author: Json, content: str, **more: Any) -> Json:
        """Post as `author` and tell every client."""
        message = self.world.post(channel, author, content, **more)
        self.dispatch("MESSAGE_CREATE", message)
        return message

    def reply(self, channel: Json, author: Json, content: str, to: Json, **more: Any) -> Json:
        """Post as `author` in reply to `to`; the bot is pinged when `ping` is the bot."""
        reference = {"message_id": to["id"], "channel_id": channel["id"]}
        return self.say(channel, author, content, message_reference=reference, **more)

    def react(self, channel: Json, message_id: str, user: Json, emoji: str) -> None:
        data = {"channel_id": channel["id"], "message_id": message_id, "user_id": user["id"]}
        data |= {"emoji": {"id": None, "name": emoji}, "burst": False, "type": 0}
        if guild_id := channel.get("guild_id"):
            data |= {"guild_id": guild_id, "member": self.world.members[guild_id, user["id"]]}
        self.dispatch("MESSAGE_REACTION_ADD", data)

    def delete(self, channel: Json, message_id: str) -> None:
        self.world.messages[channel["id"]].pop(message_id, None)
        data = {"id": message_id, "channel_id": channel["id"], "guild_id": channel.get("guild_id")}
        self.dispatch("MESSAGE_DELETE", data)

    async def drop(self) -> None:
        """Close every gateway connection so that the client resumes."""
        for socket in list(self._sockets):
            await socket.close(code=4000)

    def interact(self, channel: Json, user: Json, kind: int, data: Json, **more: Any) -> str:
        """Send an interaction (2 command, 3 component, 5 modal); its token."""
        iid, token = snowflake(), f"token-{snowflake()}"
        payload: Json = {
            "id": iid, "token": token, "application_id": self.world.bot["id"], "type": kind,
            "channel_id": channel["id"], "channel": channel, "data": data, "version": 1,
            "locale": "en-US", "entitlements": [], "attachment_size_limit": 10 << 20,
            "authorizing_integration_owners": {}, "context": 0, "app_permissions": "0", **more,
        }  # fmt: skip
        if guild_id := channel.get("guild_id"):
            member = self.world.members[guild_id, user["id"]]
            payload |= {"guild_id": guild_id, "member": {**member, "permissions": "0"}}
        else:
            payload["user"] = user
        self.rest.interactions[token] = {
            "id": iid, "channel_id": channel["id"], "sent_at": asyncio.get_running_loop().time(),
        }  # fmt: skip
        self.dispatch("INTERACTION_CREATE", payload)
        return token

    def command(self, channel: Json, user: Json, name: str, **options: Any) -> str:
        """Use a slash command; its token."""
        listed = [{"name": k, "type": 3, "value": v} for k, v in options.items()]
        data = {"id": "1", "name": name, "type": 1, "options": listed}
        return self.interact(channel, user, 2, data)

    def click(self, channel: Json, user: Json, message: Json, custom_id: str, **data: Any) -> str:
        """Press a button, or choose `values` in a menu."""
        component = {"custom_id": custom_id, "component_type": 3 if data else 2, **data}
        shown = self.world.message_payload(channel, self.world.bot)
        shown |= {k: v for k, v in message.items() if k != "id"}
        return self.interact(channel, user, 3, component, message=shown)

    def sent(self, channel: Json) -> list[Json]:
        """The bot's messages in `channel`, oldest first."""
        found = self.world.messages[channel["id"]].values()
        return [m for m in found if m["author"]["id"] == self.world.bot["id"]]
