"""`python -m bots.discord` as real processes, against local servers of everything else."""

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from tests.anthropic_script import Answer, question, sensible_model
from tests.anthropic_server import AnthropicServer
from tests.discord_server import DiscordServer
from tests.support_discord import settle, wait_until
from tests.support_discord_world import Json
from tests.support_redis import Server, serve

ROOT = Path(__file__).resolve().parent.parent


class Bot:
    """One process."""

    def __init__(self, environment: Mapping[str, str], log: Path) -> None:
        self._environment = environment
        self._log = log
        self.process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        with self._log.open("ab") as log:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "bots.discord"],
                env=dict(self._environment),
                stderr=log,
                # away from a developer's .env
                cwd=self._log.parent,
            )

    @property
    def log(self) -> str:
        return self._log.read_text()

    @property
    def has_ended(self) -> bool:
        return self.process is None or self.process.poll() is not None

    def kill(self) -> None:
        """As kill -9 does."""
        assert self.process is not None
        self.process.kill()
        self.process.wait()

    async def end(self, timeout_s: float = 75.0) -> int:
        """SIGTERM; the exit code. The last resort of a process that hangs comes first."""
        assert self.process is not None
        self.process.terminate()
        return await self.ended(timeout_s)

    async def ended(self, timeout_s: float = 60.0) -> int:
        """The exit code; what still runs then fails the test with its log."""
        assert self.process is not None
        try:
            return await asyncio.to_thread(self.process.wait, timeout_s)
        except subprocess.TimeoutExpired:
            raise AssertionError(f"still running after {timeout_s} s:\n{self.log}") from None


class Town:
    """A local Discord with one server, a local Anthropic, a real Valkey; bots on demand."""

    def __init__(
        self, server: DiscordServer, model: AnthropicServer, redis: Server, folder: Path
    ) -> None:
        self.server = server
        self.model = model
        self.redis = redis
        self.ann, self.ben = server.world.user("ann"), server.world.user("ben")
        self.guild = server.world.guild(self.ann, self.ben)
        # What the model says to a question that holds the key, the last of them for ever; anything
        # else is answered by a model that searches and cites.
        self.rules: dict[str, list[Answer]] = {}
        model.respond = self._respond
        self.usual: dict[str, str] = {}
        self._folder = folder
        self._bots: list[Bot] = []

    def _respond(self, body: Mapping[str, Any]) -> Answer:
        asked = question(body)
        for key, answers in self.rules.items():
            if key in asked:
                return answers.pop(0) if len(answers) > 1 else answers[0]
        return sensible_model(body)

    def asked(self, text: str) -> list[str]:
        """The whole of each request to the model whose newest question holds `text`."""
        bodies = [request.body for request in self.model.requests]
        return [json.dumps(body, ensure_ascii=False) for body in bodies if text in question(body)]

    def channel(self) -> Json:
        """A channel that no other test uses."""
        made = self.server.world.channel(self.guild)
        self.server.dispatch("CHANNEL_CREATE", made)
        return made

    @property
    def me(self) -> str:
        return f"<@{self.server.world.bot['id']}>"

    def bot(self, **more: str) -> Bot:
        """A process, not started yet."""
        kept = {name: os.environ[name] for name in ("PATH", "HOME", "LANG") if name in os.environ}
        environment = {
            **kept,
            "PYTHONPATH": str(ROOT),
            "DISCORD_TOKEN": "t",
            "DISCORD_API_URL": self.server.api_url,
            "ANTHROPIC_API_KEY": "sk-ant-test",
            "ANTHROPIC_BASE_URL": self.model.url,
            "REDIS_URL": self.redis.url,
            "DATA_DIR": str(self._folder / "data"),
            "LEASE_S": "4",
            "LOG_LEVEL": "INFO",
            **self.usual,
            **more,
        }
        made = Bot(environment, self._folder / f"bot{len(self._bots)}.log")
        self._bots.append(made)
        return made

    async def start(self, **more: str) -> Bot:
        """A process that is connected."""
        bot, before = self.bot(**more), len(self.server.identifies)
        bot.start()
        await wait_until(lambda: len(self.server.identifies) > before or bot.has_ended, 60)
        await wait_until(lambda: self.server.is_connected or bot.has_ended, 20)
        assert not bot.has_ended, bot.log
        return bot

    async def ready(self) -> Bot:
        """The process that the last test left behind, or a new one."""
        return self._bots[-1] if self._bots and not self._bots[-1].has_ended else await self.start()

    def keep_one(self) -> None:
        """Ends all processes but the newest."""
        for bot in self._bots[:-1]:
            if not bot.has_ended:
                bot.kill()

    def answers(self, channel: Json) -> list[Json]:
        """The bot's answers in `channel`, traces left out."""
        sent = self.server.sent(channel)
        return [post for post in sent if not post["content"].startswith("**Trace")]

    async def answered(self, channel: Json, count: int = 1) -> list[Json]:
        """The answers, once there are `count` with a footer."""

        def is_done() -> bool:
            return sum("Stopped: " in post["content"] for post in self.answers(channel)) >= count

        await wait_until(is_done, 40)
        return self.answers(channel)

    def say(self, channel: Json, user: Json, text: str, **more: Any) -> Json:
        """A mention."""
        return self.server.say(channel, user, f"{self.me} {text}", **more)

    async def ask(self, channel: Json, user: Json, text: str, **more: Any) -> Json:
        """A mention, and its finished answer."""
        count = len(self.answers(channel)) + 1
        self.say(channel, user, text, **more)
        return (await self.answered(channel, count))[-1]

    async def thread(self, answer: Json) -> Json:
        """The thread off an answer, with its trace."""
        channels = self.server.world.channels
        thread = await wait_until(lambda: channels.get(answer["id"]), 20)
        await wait_until(lambda: self.server.sent(thread), 20)
        return thread

    async def calm(self) -> None:
        await settle(self.server, 0.5)

    def close(self) -> None:
        for bot in self._bots:
            if not bot.has_ended:
                bot.kill()


@asynccontextmanager
async def open_town(folder: Path) -> AsyncGenerator[Town]:
    """Everything but the bot; its processes are ended with it."""
    with serve() as redis:
        server = DiscordServer()
        await server.start()
        async with AnthropicServer() as model:
            town = Town(server, model, redis, folder)
            try:
                yield town
            finally:
                town.close()
                await server.stop()
