"""The Discord adapter under test: a client on the local server, and a door that records.

The door stands in for core where a test is about the adapter alone; what core does with the same
calls is tested in its own tests and in test_discord_process.py.
"""

import asyncio
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from typing import Any, cast

from discord.http import Route

from bots.discord.client import FootnoteClient
from bots.discord.settings import DiscordSettings
from core.chat import Chat
from core.errors import StoreError
from core.forget import ForgetReport
from core.memory import Fact
from core.types import Conversation, Message, Run, Session, Source, Step, StopReason, Usage
from core.work import Accepted
from tests.discord_server import DiscordServer
from tests.support_discord_world import Json


async def wait_until(check: Callable[[], Any], timeout_s: float = 10.0) -> Any:
    """What `check` gives once it is truthy."""
    deadline = time.monotonic() + timeout_s
    while not (found := check()):
        if time.monotonic() > deadline:
            raise AssertionError(f"not within {timeout_s} s")
        await asyncio.sleep(0.01)
    return found


async def settle(server: DiscordServer, quiet_s: float = 0.3) -> None:
    """Returns when the bot has made no request for a while: what was not done, is not done."""
    last, since = -1, time.monotonic()
    while time.monotonic() - since < quiet_s:
        if len(server.rest.calls) != last:
            last, since = len(server.rest.calls), time.monotonic()
        await asyncio.sleep(0.02)


def make_run(text: str = "The answer.", **more: Any) -> Run:
    """A finished run."""
    run = Run(
        id="run-1",
        text=text,
        sources=(),
        trace=(),
        turns=1,
        stop_reason=StopReason.DONE,
        usage=Usage(1_000, 482),
        cost_usd=0.0004,
        started_at=time.time(),
        duration_ms=3_100,
        model="scripted",
    )
    return replace(run, **more)


STEP = Step(1, "search_docs", {"query": "vpn"}, "found", False, 12, "vpn")
SOURCE = Source(1, "VPN", "vpn.md", "VPN > Setup", "https://docs.example/vpn", "Use the VPN.")


@dataclass
class Door:
    """Records what the adapter asks of core. `down_s` delays, `failures` fails the next calls."""

    accepted: list[Message] = field(default_factory=list[Message])
    calls: list[tuple[Any, ...]] = field(default_factory=list[tuple[Any, ...]])
    outcome: str = "queued"
    failures: int = 0
    delay_s: float = 0.0
    kept: dict[str, Fact] = field(default_factory=dict[str, Fact])
    runs: dict[tuple[str, str], Run] = field(default_factory=dict[tuple[str, str], Run])
    report: ForgetReport = field(default_factory=lambda: ForgetReport(facts=2, turns=1))

    async def _reach(self) -> None:
        await asyncio.sleep(self.delay_s)
        if self.failures:
            self.failures -= 1
            raise StoreError("down")

    async def submit(self, message: Message) -> Accepted:
        await self._reach()
        if any(message.id == each.id for each in self.accepted):
            return Accepted(cast("Any", "duplicate"), message.conversation)
        self.accepted.append(message)
        return Accepted(cast("Any", self.outcome), message.conversation)

    async def cancel(self, conversation: Conversation, by: str) -> bool:
        await self._reach()
        self.calls.append(("cancel", conversation, by))
        return True

    async def withdraw(self, conversation: Conversation, message_id: str) -> bool:
        await self._reach()
        self.calls.append(("withdraw", conversation, message_id))
        return True

    async def mute(self, conversation: Conversation, is_muted: bool) -> None:
        await self._reach()
        self.calls.append(("mute", conversation, is_muted))

    async def note(self, conversation: Conversation, label: str, text: str) -> None:
        await self._reach()
        self.calls.append(("note", conversation, label, text))

    async def facts(self, session: Session) -> Mapping[str, Fact]:
        await self._reach()
        self.calls.append(("facts", session))
        return self.kept

    async def sessions(self, platform: str, workspace: str, user: str) -> Sequence[Session]:
        await self._reach()
        return [Session(platform, workspace, "999", user)]

    async def delete_fact(self, session: Session, key: str, digest: str | None = None) -> bool:
        await self._reach()
        self.calls.append(("delete_fact", session, key, digest))
        return self.kept.pop(key, None) is not None

    async def undo(self, session: Session, run_id: str, key: str) -> bool:
        await self._reach()
        self.calls.append(("undo", session, run_id, key))
        return True

    async def forget_preview(
        self, session: Session, scope: str, key: str | None = None
    ) -> ForgetReport:
        await self._reach()
        return self.report

    async def forget(self, session: Session, scope: str, key: str | None = None) -> ForgetReport:
        await asyncio.sleep(self.delay_s)
        self.calls.append(("forget", session, scope))
        return self.report

    async def run_of(self, session: Session, run_id: str) -> Run | None:
        await self._reach()
        return self.runs.get((session.user, run_id))


@dataclass
class Scene:
    """One server with one channel and two people; the bot connected; core recorded."""

    server: DiscordServer
    door: Door
    client: FootnoteClient
    guild: Json
    channel: Json
    ann: Json
    ben: Json

    @property
    def bot(self) -> Json:
        return self.server.world.bot

    @property
    def me(self) -> str:
        return f"<@{self.bot['id']}>"

    def another_channel(self) -> Json:
        """A channel that nothing was posted in yet."""
        made = self.server.world.channel(self.guild)
        self.server.dispatch("CHANNEL_CREATE", made)
        return made

    def calls(self, method: str, part: str = "") -> list[Any]:
        return [c for c in self.server.rest.calls if c.method == method and part in c.path]

    async def asked(self, count: int = 1) -> Message:
        """The `count`-th message that core accepted."""
        await wait_until(lambda: len(self.door.accepted) >= count)
        return self.door.accepted[count - 1]

    async def ask(self, text: str = "how do I use the VPN?", **more: Any) -> Message:
        """Ann mentions the bot in the channel."""
        count = len(self.door.accepted) + 1
        self.server.say(more.pop("channel", self.channel), self.ann, f"{self.me} {text}", **more)
        return await self.asked(count)

    async def answer(self, message: Message, run: Run | None = None, ref: Any = None) -> Any:
        """Answers as core would, at once."""
        reply = await self.client.adapter.open_reply(message, ref)
        await reply.close(run or make_run())
        return reply


def make_settings(server: DiscordServer, **more: Any) -> DiscordSettings:
    values = {"discord_token": "t", "discord_api_url": server.api_url, "offline": True, **more}
    return DiscordSettings(_env_file=None, **values)  # type: ignore[call-arg]


@asynccontextmanager
async def connected(
    server: DiscordServer, door: Any, *, has_content: bool = True, **settings: Any
) -> AsyncGenerator[FootnoteClient]:
    """The client, signed in and ready."""
    Route.BASE = server.api_url
    client = FootnoteClient(
        cast("Chat", door),
        make_settings(server, **settings),
        has_content=has_content,
        guild_ready_timeout=0.05,
    )
    task: asyncio.Task[None] | None = None
    try:
        await client.login("t")
        task = asyncio.create_task(client.connect())
        await asyncio.wait_for(client.wait_until_ready(), 20)
        yield client
    finally:
        await client.close()
        if task is not None:
            await asyncio.wait([task], timeout=5)


Prepare = Callable[[DiscordServer, Json], Awaitable[None] | None]


@asynccontextmanager
async def scene(
    *,
    permissions: int | None = None,
    has_content: bool = True,
    prepare: Any = None,
    **settings: Any,
) -> AsyncGenerator[Scene]:
    """A `Scene`; `prepare(server, guild, channel, ann)` adds to the world before the bot comes."""
    server = DiscordServer()
    await server.start()
    try:
        ann, ben = server.world.user("ann"), server.world.user("ben")
        more = {} if permissions is None else {"permissions": permissions}
        guild = server.world.guild(ann, ben, **more)
        channel = server.world.channel(guild)
        if prepare is not None:
            prepare(server, guild, channel, ann)
        if settings.pop("is_listed", False):
            settings["discord_guilds"] = guild["id"]
        door = settings.pop("door", None) or Door()
        async with connected(server, door, has_content=has_content, **settings) as client:
            await wait_until(lambda: server.is_connected)
            yield Scene(server, door, client, guild, channel, ann, ben)
    finally:
        await server.stop()
