"""What people do in the local Slack: say, mention, press, type commands; no bot is known here."""

import time
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tests.slack_server import Envelope

BOT_USER = "UBOT"


class People:
    """The half of the server that acts; the other half delivers and answers."""

    team: str
    port: int
    channels: dict[str, list[dict[str, Any]]]

    def __init__(self) -> None:
        self._next = int(time.time() * 1_000_000)

    async def deliver(self, kind: str, payload: dict[str, Any]) -> "Envelope":
        """Send an envelope until somebody acknowledges it."""
        raise NotImplementedError

    def find(self, channel: str, ts: str) -> dict[str, Any] | None:
        return next((m for m in self.channels[channel] if m["ts"] == ts), None)

    def next_ts(self) -> str:
        self._next = max(self._next + 1, int(time.time() * 1_000_000))
        return f"{self._next // 1_000_000}.{self._next % 1_000_000:06d}"

    def put(self, channel: str, user: str, text: str, **fields: Any) -> dict[str, Any]:
        """A person's message as it lies in the channel, not yet delivered to anyone."""
        kind = "im" if channel.startswith("D") else "channel"
        message = {
            "type": "message",
            "channel": channel,
            "channel_type": kind,
            "user": user,
            "text": text,
            "ts": self.next_ts(),
            "team": self.team,
            **fields,
        }
        self.channels[channel].append(message)
        return message

    async def say(self, channel: str, user: str, text: str, **fields: Any) -> str:
        """A person says something; delivered as `message`, a mention as `app_mention` too."""
        message = self.put(channel, user, text, **fields)
        if f"<@{BOT_USER}>" in text and not channel.startswith("D"):
            await self.event({**message, "type": "app_mention"})
        await self.event(message)
        return message["ts"]

    async def mention(self, channel: str, user: str, text: str, **fields: Any) -> str:
        return await self.say(channel, user, f"<@{BOT_USER}> {text}", **fields)

    async def event(self, event: dict[str, Any], **body: Any) -> "Envelope":
        """Deliver one event, again and again until it is acknowledged."""
        payload = {
            "type": "event_callback",
            "team_id": self.team,
            "api_app_id": "A1",
            "event_id": f"Ev{self.next_ts()}",
            "event_time": int(time.time()),
            "event": {"event_ts": event.get("ts", self.next_ts()), **event},
            "authorizations": [{"team_id": self.team, "user_id": BOT_USER, "is_bot": True}],
            **body,
        }
        return await self.deliver("events_api", payload)

    async def slash(self, command: str, user: str, channel: str, text: str = "") -> "Envelope":
        payload = {
            "command": command,
            "text": text,
            "user_id": user,
            "channel_id": channel,
            "team_id": self.team,
            "user_name": user.lower(),
            "trigger_id": "trig",
            "response_url": f"http://127.0.0.1:{self.port}/response/{self.next_ts()}",
        }
        return await self.deliver("slash_commands", payload)

    async def click(
        self,
        user: str,
        channel: str,
        element: dict[str, Any],
        *,
        message_ts: str = "",
        **extra: Any,
    ) -> "Envelope":
        """A person presses a button that some message or view shows."""
        payload = {
            "type": "block_actions",
            "user": {"id": user, "team_id": self.team},
            "team": {"id": self.team},
            "trigger_id": "trig",
            "api_app_id": "A1",
            "channel": {"id": channel},
            "container": {"type": "message", "message_ts": message_ts, "channel_id": channel},
            "actions": [{"type": element["type"], "block_id": "b", **element}],
            "response_url": f"http://127.0.0.1:{self.port}/response/{self.next_ts()}",
            **extra,
        }
        if "view" in extra:
            # In the Home tab there is neither a channel nor a place to respond to.
            del payload["channel"], payload["response_url"]
        return await self.deliver("interactive", payload)

    async def shortcut(self, callback: str, user: str, channel: str, ts: str) -> "Envelope":
        payload = {
            "type": "message_action",
            "callback_id": callback,
            "trigger_id": "trig",
            "user": {"id": user, "team_id": self.team},
            "team": {"id": self.team},
            "channel": {"id": channel},
            "message": self.find(channel, ts) or {"ts": ts},
            "response_url": f"http://127.0.0.1:{self.port}/response/{self.next_ts()}",
        }
        return await self.deliver("interactive", payload)
