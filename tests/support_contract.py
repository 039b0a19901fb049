"""Slack, Discord and the terminal behind one face, so that one contract can be asked of all.

Each stage has the real adapter and core, a real Valkey and a local Anthropic; Slack and Discord run
as processes against local servers. `said` is all that people can read of an exchange.
"""

import asyncio
import io
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from bots.console import ConsoleAdapter, Screen, message_of, session_of
from core.app import App
from core.config import Settings
from core.types import Message
from tests.anthropic_script import Answer
from tests.support_discord import wait_until
from tests.support_discord_process import Town, open_town
from tests.support_discord_world import Json
from tests.support_slack import World, elements, open_world

WAIT_S = 40.0


@dataclass
class Exchange:
    """A question by `user` and what follows it; `where` and `root` are the platform's own."""

    user: str
    where: Any
    root: Any


class Stage(Protocol):
    """One platform. Users are "a" and "b"; `lacks` names what its people cannot do there."""

    lacks: frozenset[str]
    rules: dict[str, list[Answer]]

    def asked(self, text: str) -> list[str]: ...
    def said(self, at: Exchange) -> str: ...
    async def ask(self, user: str, text: str) -> Exchange: ...
    async def follow(self, at: Exchange, user: str, text: str) -> None: ...
    async def again(self, at: Exchange) -> None: ...
    async def echo(self, at: Exchange) -> None: ...
    async def other_bot(self, at: Exchange, text: str) -> None: ...
    async def outsider(self, text: str) -> Exchange: ...
    async def stop(self, at: Exchange, user: str) -> None: ...
    async def forget(self, at: Exchange, user: str) -> None: ...
    async def calm(self) -> None: ...


async def answers(stage: Stage, at: Exchange, count: int = 1) -> str:
    """What was said, once `count` answers have ended."""
    await wait_until(lambda: stage.said(at).count("Stopped: ") >= count, WAIT_S)
    return stage.said(at)


class SlackStage:
    """A workspace."""

    lacks = frozenset[str]()

    def __init__(self, world: World) -> None:
        self._world = world
        self._users = {"a": "U1", "b": "U2"}
        self.rules = world.rules
        self.asked = world.asked

    def said(self, at: Exchange) -> str:
        return "\n".join(self._world.slack.answers(at.where, at.root))

    async def ask(self, user: str, text: str) -> Exchange:
        channel = self._world.channel()
        ts = await self._world.slack.mention(channel, self._users[user], text)
        return Exchange(user, channel, ts)

    async def follow(self, at: Exchange, user: str, text: str) -> None:
        await self._world.slack.say(at.where, self._users[user], text, thread_ts=at.root)

    async def again(self, at: Exchange) -> None:
        slack = self._world.slack
        found: dict[str, Any] = slack.find(at.where, at.root) or {}
        event = {**found, "channel": at.where, "type": "app_mention"}
        await slack.event(event)
        await slack.event({**event, "type": "message"})

    async def echo(self, at: Exchange) -> None:
        for post in self._world.slack.own(at.where):
            await self._world.slack.event({**post, "type": "message", "channel": at.where})

    async def other_bot(self, at: Exchange, text: str) -> None:
        fields = {"bot_id": "B2", "username": "Deployer", "subtype": "bot_message"}
        await self._world.slack.say(at.where, "U9", text, thread_ts=at.root, **fields)

    async def outsider(self, text: str) -> Exchange:
        channel = self._world.channel()
        ts = await self._world.slack.mention(channel, "U7", text, user_team="T9")
        return Exchange("", channel, ts)

    async def stop(self, at: Exchange, user: str) -> None:
        item = {"type": "message", "channel": at.where, "ts": at.root}
        event = {"type": "reaction_added", "reaction": "octagonal_sign", "item": item}
        await self._world.slack.event({**event, "user": self._users[user]})

    async def forget(self, at: Exchange, user: str) -> None:
        slack = self._world.slack
        before = len(slack.responses)
        await slack.slash("/forget", self._users[user], at.where)
        await wait_until(lambda: len(slack.responses) > before, WAIT_S)
        button = elements(slack.responses[-1]["blocks"], "forget_channel")[0]
        await slack.click(self._users[user], at.where, button)
        await wait_until(lambda: len(slack.responses) > before + 1, WAIT_S)

    async def calm(self) -> None:
        await self._world.calm()


class DiscordStage:
    """A server."""

    lacks = frozenset[str]()

    def __init__(self, town: Town) -> None:
        self._town = town
        self._users = {"a": town.ann, "b": town.ben}
        self.rules = town.rules
        self.asked = town.asked

    def _thread(self, at: Exchange) -> Json | None:
        channels = self._town.server.world.channels
        found = [channels.get(post["id"]) for post in self._town.server.sent(at.where)]
        return next((each for each in found if each is not None), None)

    def said(self, at: Exchange) -> str:
        places = [at.where, self._thread(at)]
        posts = [post for place in places if place for post in self._town.answers(place)]
        return "\n".join(post["content"] for post in posts)

    async def ask(self, user: str, text: str) -> Exchange:
        channel = self._town.channel()
        return Exchange(user, channel, self._town.say(channel, self._users[user], text))

    async def follow(self, at: Exchange, user: str, text: str) -> None:
        thread, server = self._thread(at), self._town.server
        if thread is not None:
            server.say(thread, self._users[user], text)
        else:
            server.reply(at.where, self._users[user], f"{self._town.me} {text}", at.root)

    async def again(self, at: Exchange) -> None:
        self._town.server.dispatch("MESSAGE_CREATE", at.root)
        self._town.server.dispatch("MESSAGE_CREATE", at.root)

    async def echo(self, at: Exchange) -> None:
        for post in self._town.server.sent(at.where):
            self._town.server.dispatch("MESSAGE_CREATE", post)

    async def other_bot(self, at: Exchange, text: str) -> None:
        bot = self._town.server.world.user("deployer", is_bot=True)
        self._town.server.world.join(self._town.guild, bot)
        thread = await wait_until(lambda: self._thread(at), WAIT_S)
        self._town.server.say(thread, bot, text)

    async def outsider(self, text: str) -> Exchange:
        eve = self._town.server.world.user("eve")
        guild = self._town.server.world.guild(eve)
        self._town.server.dispatch("GUILD_CREATE", self._town.server.world.guild_payload(guild))
        channel = self._town.server.world.channel(guild)
        self._town.server.dispatch("CHANNEL_CREATE", channel)
        return Exchange("", channel, self._town.say(channel, eve, text))

    async def stop(self, at: Exchange, user: str) -> None:
        self._town.server.react(at.where, at.root["id"], self._users[user], "🛑")

    async def forget(self, at: Exchange, user: str) -> None:
        token = self._town.server.click(at.where, self._users[user], {}, "forget:channel")
        await wait_until(lambda: self._town.server.rest.responses.get(token), WAIT_S)

    async def calm(self) -> None:
        await self._town.calm()


class ConsoleStage:
    """A terminal on which two users sit down in turn, each with a session of their own."""

    lacks = frozenset({"others", "edits"})

    def __init__(self, app: App, world: "_Model") -> None:
        self._app = app
        self._sessions = {name: session_of(name) for name in ("a", "b")}
        self._screen = io.StringIO()
        self._begins: dict[str, int] = {}
        self._count = 0
        self.adapter = ConsoleAdapter(self._sessions["a"])
        self.adapter.workspaces = [each.workspace for each in self._sessions.values()]
        self.adapter.out = Screen(file=self._screen, soft_wrap=True, highlight=False)
        self.adapter.err = Screen(file=io.StringIO(), highlight=False)
        self.rules = world.rules
        self.asked = world.asked

    def said(self, at: Exchange) -> str:
        return self._screen.getvalue()[self._begins[at.where] :]

    async def _submit(self, message: Message) -> None:
        self.adapter.expect(message)
        await self._app.chat.submit(message)

    async def ask(self, user: str, text: str) -> Exchange:
        self._count += 1
        thread = f"t{self._count}"
        self._begins[thread] = len(self._screen.getvalue())
        message = message_of(self._sessions[user], thread, text)
        await self._submit(message)
        return Exchange(user, thread, message)

    async def follow(self, at: Exchange, user: str, text: str) -> None:
        await self._submit(message_of(self._sessions[user], at.where, text))

    async def again(self, at: Exchange) -> None:
        accepted = await self._app.chat.submit(at.root)
        assert accepted.outcome == "duplicate"

    async def echo(self, at: Exchange) -> None:
        raise NotImplementedError("what a terminal shows does not come back")

    async def other_bot(self, at: Exchange, text: str) -> None:
        raise NotImplementedError("a terminal has one person")

    async def outsider(self, text: str) -> Exchange:
        raise NotImplementedError("a terminal has one person")

    async def stop(self, at: Exchange, user: str) -> None:
        by = self._sessions[user].user if user == at.user else "somebody else"
        await self._app.chat.cancel(at.root.conversation, by)

    async def forget(self, at: Exchange, user: str) -> None:
        report = await self._app.chat.forget(self._sessions[user])
        assert report.is_complete

    async def calm(self) -> None:
        await asyncio.sleep(0)


class _Model(Protocol):
    """Where the rules of the local Anthropic are."""

    rules: dict[str, list[Answer]]

    def asked(self, text: str) -> list[str]: ...


@asynccontextmanager
async def open_slack(folder: Path) -> AsyncGenerator[Stage]:
    async with open_world(folder) as world:
        await world.start()
        yield SlackStage(world)


@asynccontextmanager
async def open_discord(folder: Path) -> AsyncGenerator[Stage]:
    async with open_town(folder) as town:
        await town.start(DISCORD_GUILDS=town.guild["id"])
        yield DiscordStage(town)


@asynccontextmanager
async def open_console(folder: Path) -> AsyncGenerator[Stage]:
    # The town is only there for its model and its Valkey; nothing connects to its Discord.
    async with open_town(folder) as town:
        settings = Settings(
            _env_file=None,  # type: ignore[call-arg]
            anthropic_api_key="sk-ant-test",  # type: ignore[arg-type]
            anthropic_base_url=town.model.url,
            redis_url=town.redis.url,  # type: ignore[arg-type]
            data_dir=folder / "data",
        )
        app = await App.open(settings)
        stop = asyncio.Event()
        stage = ConsoleStage(app, town)
        serving = asyncio.create_task(app.serve([stage.adapter], stop))
        try:
            yield stage
        finally:
            stop.set()
            await serving
            await app.close()


STAGES: Mapping[str, Callable[[Path], AbstractAsyncContextManager[Stage]]] = {
    "slack": open_slack,
    "discord": open_discord,
    "console": open_console,
}
