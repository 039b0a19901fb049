"""The connection: acknowledged only when accepted, signed requests alone, dead sockets replaced.

What is accepted is recorded by a stand-in for the door to core.
"""

import asyncio
import hashlib
import hmac
import json
import time
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from types import SimpleNamespace
from typing import Any

import aiohttp
import pytest

from bots.health import health_page
from bots.process import watch
from bots.slack import app as slack_app
from bots.slack.app import SlackLink, connect
from bots.slack.settings import SlackSettings
from core.config import load_settings
from core.errors import ConfigError, StoreError
from core.types import Conversation, Message
from tests.slack_server import APP_TOKEN, BOT_TOKEN, SlackServer
from tests.support import wait_until

SECRET = "0123456789abcdef0123456789abcdef"


class Door:
    """Stands in for core.chat.Chat; the first `faults` submissions fail as Redis does."""

    def __init__(self) -> None:
        self.submitted: list[Message] = []
        self.notes: list[tuple[Conversation, str, str]] = []
        self.withdrawn: list[str] = []
        self.faults = 0

    async def submit(self, message: Message) -> None:
        if self.faults:
            self.faults -= 1
            raise StoreError("not saved")
        self.submitted.append(message)

    async def note(self, conversation: Conversation, label: str, text: str) -> None:
        self.notes.append((conversation, label, text))

    async def withdraw(self, conversation: Conversation, message_id: str) -> None:
        self.withdrawn.append(message_id)


@asynccontextmanager
async def _linked(slack: SlackServer, door: Door, **given: Any) -> AsyncGenerator[SlackLink]:
    settings = load_settings(
        SlackSettings,
        {
            "slack_bot_token": BOT_TOKEN,
            "slack_app_token": APP_TOKEN,
            "slack_api_url": slack.url,
            **given,
        },
    )
    app: Any = SimpleNamespace(chat=door)
    link = await connect(settings, app)
    try:
        await link.open()
        yield link
    finally:
        await link.close()


@pytest.fixture
async def slack() -> AsyncGenerator[SlackServer]:
    async with SlackServer(retry_s=0.2) as slack:
        yield slack


async def test_event_is_not_acknowledged_until_it_is_accepted(slack: SlackServer):
    door = Door()
    door.faults = 2
    async with _linked(slack, door):
        event = slack.put("C1", "U1", "<@UBOT> hello")
        envelope = await slack.event({**event, "type": "app_mention"})
        await wait_until(lambda: envelope.acks == 1)
        assert envelope.deliveries == 3
        [message] = door.submitted
        assert (message.text, message.conversation.thread) == ("hello", event["ts"])


async def test_every_event_is_acknowledged_and_most_are_nothing_to_us(slack: SlackServer):
    door = Door()
    events: list[dict[str, Any]] = [
        {"type": "message", "subtype": "channel_join", "channel": "C1", "user": "U1"},
        {"type": "message", "subtype": "message_changed", "channel": "C1", "message": {}},
        {"type": "message", "subtype": "message_replied", "channel": "C1"},
        {"type": "message", "channel": "C1", "user": "USLACKBOT", "text": "<@UBOT>", "ts": "1.1"},
        {"type": "message", "channel": "C1", "user": "UBOT", "text": "<@UBOT>", "ts": "1.2"},
        {"type": "message", "channel": "C1", "bot_id": "BBOT", "text": "<@UBOT>", "ts": "1.3"},
        {"type": "reaction_added", "reaction": "eyes", "user": "U1", "item": {"type": "file"}},
        {"type": "app_home_opened", "user": "U1", "tab": "messages"},
        {"type": "tokens_revoked", "tokens": {}},
        {"type": "something_new", "user": "U1"},
    ]
    async with _linked(slack, door):
        for event in events:
            envelope = await slack.event(event)
            await wait_until(lambda envelope=envelope: envelope.acks == 1)
            assert envelope.deliveries == 1, event
        assert door.submitted == []
        assert slack.own("C1") == []


async def test_channels_and_users_outside_the_lists_are_told_once(slack: SlackServer):
    door = Door()
    async with _linked(slack, door, slack_channels="C1, C2", slack_users="U1"):
        await slack.mention("C1", "U1", "allowed")
        await wait_until(lambda: len(door.submitted) >= 1)
        for channel, user in (("C3", "U1"), ("C1", "U2")):
            ts = await slack.mention(channel, user, "not allowed")
            await wait_until(lambda channel=channel, ts=ts: bool(slack.thread(channel, ts)))
            assert slack.answers(channel, ts) == ["Sorry, I am not set up to answer here."]
        assert all(message.text == "allowed" for message in door.submitted)


async def test_dead_socket_is_replaced_and_events_arrive_again(
    slack: SlackServer, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(slack_app, "PING_EVERY_S", 0.2)
    door = Door()
    async with _linked(slack, door) as link:
        slack.is_deaf = True
        await wait_until(lambda: slack.connections >= 2)
        slack.is_deaf = False
        await slack.mention("C1", "U1", "are you there?")
        await wait_until(lambda: bool(door.submitted))
        await wait_until(link.is_alive)


async def test_watchdog_reconnects_where_the_client_gave_up(slack: SlackServer):
    door = Door()
    async with _linked(slack, door) as link:
        socket: Any = link._socket
        socket.auto_reconnect_enabled = socket.default_auto_reconnect_enabled = False
        for server_side in list(slack.sockets):
            await server_side.close()
        await wait_until(lambda: not slack.sockets)
        watching = asyncio.create_task(watch(link, asyncio.Event(), every_s=0.05))
        try:
            await wait_until(lambda: slack.connections >= 2)
            await slack.mention("C1", "U1", "are you there?")
            await wait_until(lambda: bool(door.submitted))
        finally:
            watching.cancel()
            await asyncio.gather(watching, return_exceptions=True)


def _signed(body: str, *, secret: str = SECRET, age_s: float = 0) -> dict[str, str]:
    stamp = str(int(time.time() - age_s))
    digest = hmac.new(secret.encode(), f"v0:{stamp}:{body}".encode(), hashlib.sha256).hexdigest()
    return {
        "X-Slack-Request-Timestamp": stamp,
        "X-Slack-Signature": f"v0={digest}",
        "Content-Type": "application/json",
    }


async def test_http_mode_takes_signed_requests_alone(slack: SlackServer):
    door = Door()
    given = {"slack_mode": "http", "slack_signing_secret": SECRET, "port": 0}
    event = {"type": "app_mention", "channel": "C1", "user": "U1", "ts": "1.5", "text": "<@UBOT> a"}
    body = json.dumps({"type": "event_callback", "team_id": "T1", "event": event})
    async with _linked(slack, door, **given) as link, aiohttp.ClientSession() as client:
        url = f"http://127.0.0.1:{link.port}/slack/events"

        async def send(headers: dict[str, str], text: str = body) -> int:
            async with client.post(url, data=text, headers=headers) as response:
                return response.status

        assert await send(_signed(body)) == 200
        assert len(door.submitted) == 1
        assert await send(_signed(body, secret="f" * 32)) == 401
        assert await send(_signed(body, age_s=600)) == 401
        assert await send({"Content-Type": "application/json"}) == 401
        assert await send(_signed(body), body.replace("U1", "U2")) == 401
        assert len(door.submitted) == 1
        door.faults = 1
        assert await send(_signed(body)) == 500
        challenge = json.dumps({"type": "url_verification", "challenge": "abc"})
        async with client.post(url, data=challenge, headers=_signed(challenge)) as response:
            assert "abc" in await response.text()


async def test_refused_token_at_the_connection_is_a_configuration_error(slack: SlackServer):
    slack.fail("auth.test", "invalid_auth")
    with pytest.raises(ConfigError, match="SLACK_BOT_TOKEN"):
        async with _linked(slack, Door()):
            pass


async def test_health_page_says_what_is_wrong_by_its_status():
    report = {"ok": True, "redis": True}

    async def probe() -> dict[str, bool]:
        return report

    async with health_page(0, probe) as port, aiohttp.ClientSession() as client:
        for is_ok, status in ((True, 200), (False, 503)):
            report["ok"] = is_ok
            async with client.get(f"http://127.0.0.1:{port}/healthz") as response:
                assert response.status == status
                assert (await response.json())["redis"] is True
        with pytest.raises(ConfigError, match="HEALTH_PORT"):
            async with health_page(port, probe):
                pass
