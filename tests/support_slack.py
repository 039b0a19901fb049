"""What Slack tests share: replies on the local Slack, runs and messages to render."""

import asyncio
import itertools
import json
import os
import subprocess
import sys
import time
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from bots.slack.api import Identity, SlackApi
from bots.slack.events import read_message
from bots.slack.pace import Pace
from bots.slack.reply import SlackReply
from bots.slack.tasks import Tasks
from core.types import FactChange, Message, Run, Session, Source, Step, StopReason, Usage
from tests.anthropic_script import Answer, question, sensible_model
from tests.anthropic_server import AnthropicServer
from tests.slack_server import APP_TOKEN, BOT_TOKEN, BOT_USER, SlackServer
from tests.support import wait_until
from tests.support_redis import Server, serve

ROOT = Path(__file__).resolve().parent.parent

CHANNEL = "C1"
SESSION = Session("slack", "T1", CHANNEL, "U1")
STEP = Step(
    turn=1,
    tool="search_docs",
    input={"query": "resume top"},
    output="<result>Put your name first.</result>",
    is_error=False,
    ms=12,
    summary="resume top",
)
SOURCE = Source(1, "Resumes", "resumes.md", "The top", "https://docs.example.com/resumes", "Name")


class Desktop:
    """The parts of the adapter that render, against one local Slack."""

    def __init__(self, slack: SlackServer, api: SlackApi, identity: Identity) -> None:
        self.slack = slack
        self.api = api
        self.identity = identity
        self.tasks = Tasks()
        self.pace = Pace()
        self.withdrawn: set[str] = set()

    def ask(self, text: str = "What goes on top?", *, user: str = "U1", **fields: Any) -> Message:
        """A question that lies in the channel, as the adapter reads it."""
        event = self.slack.put(
            fields.pop("channel", CHANNEL), user, f"<@{BOT_USER}> {text}", **fields
        )
        message = read_message(event, self.identity)
        assert isinstance(message, Message)
        return message

    def reply(self, message: Message) -> SlackReply:
        """A fresh reply, as the adapter opens it."""
        is_withdrawn = self.withdrawn.__contains__
        return SlackReply(self.api, self.tasks, self.pace, message, is_withdrawn)

    def answers(self, message: Message) -> list[str]:
        return self.slack.answers(message.conversation.channel, str(message.extra["thread"]))

    def traces(self, message: Message) -> list[str]:
        return self.slack.traces(message.conversation.channel, str(message.extra["thread"]))


@asynccontextmanager
async def open_desktop(**options: Any) -> AsyncGenerator[Desktop]:
    """A local Slack and the rendering half of the adapter."""
    async with SlackServer(**options) as slack:
        api = SlackApi(BOT_TOKEN, slack.url)
        try:
            desktop = Desktop(slack, api, await api.identity())
            yield desktop
            await desktop.tasks.close()
        finally:
            await api.close()


def make_run(
    text: str = "Put your name on top. [1]",
    *,
    reason: StopReason = StopReason.DONE,
    trace: Sequence[Step] = (STEP,),
    facts: Sequence[FactChange] = (),
    **fields: Any,
) -> Run:
    run = Run(
        id="run1",
        text=text,
        sources=(SOURCE,) if text else (),
        trace=tuple(trace),
        turns=2,
        stop_reason=reason,
        usage=Usage(input=1_400, output=82),
        cost_usd=0.0004,
        started_at=0.0,
        duration_ms=3_100,
        facts_saved=tuple(facts),
        model="m",
    )
    return replace(run, **fields)


# The real process ------------------------------------------------------------------------------


class Bot:
    """`python -m bots.slack` as a process of its own, against local servers."""

    def __init__(self, environment: Mapping[str, str], log: Path) -> None:
        self._environment = environment
        self._log = log
        self.process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        with self._log.open("ab") as log:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "bots.slack"],
                env=self._environment,
                stderr=log,
                # Away from a developer's .env.
                cwd=self._log.parent,
            )

    @property
    def log(self) -> str:
        return self._log.read_text()

    def kill(self) -> None:
        """As kill -9 does."""
        assert self.process is not None
        self.process.kill()
        self.process.wait()

    async def end(self, timeout_s: float = 60.0) -> int:
        """SIGTERM; the exit code."""
        assert self.process is not None
        self.process.terminate()
        return await self.wait(timeout_s)

    async def wait(self, timeout_s: float = 60.0) -> int:
        assert self.process is not None
        return await asyncio.to_thread(self.process.wait, timeout_s)


class World:
    """A local Slack, a local Anthropic, a real Valkey; processes of the bot on demand."""

    def __init__(
        self, slack: SlackServer, model: AnthropicServer, redis: Server, folder: Path
    ) -> None:
        self.slack = slack
        self.model = model
        self.redis = redis
        # What the model says to a question that holds the key: one after the other, the last for
        # ever; anything else is answered by a model that searches and cites.
        self.rules: dict[str, list[Answer]] = {}
        model.respond = self._respond
        self._folder = folder
        self._bots: list[Bot] = []
        self._channels = itertools.count(1)

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

    def channel(self, prefix: str = "C") -> str:
        """A channel that no other test uses."""
        return f"{prefix}{next(self._channels):03d}"

    def environment(self, **more: str) -> dict[str, str]:
        kept = {name: os.environ[name] for name in ("PATH", "HOME", "LANG") if name in os.environ}
        return {
            **kept,
            "PYTHONPATH": str(ROOT),
            "SLACK_BOT_TOKEN": BOT_TOKEN,
            "SLACK_APP_TOKEN": APP_TOKEN,
            "SLACK_API_URL": self.slack.url,
            "ANTHROPIC_API_KEY": "sk-ant-test",
            "ANTHROPIC_BASE_URL": self.model.url,
            "REDIS_URL": self.redis.url,
            # Shared by all modules of a test run: the index is built once.
            "DATA_DIR": str(self._folder.parent / "slack-data"),
            "LEASE_S": "1",
            "LOG_LEVEL": "INFO",
            **more,
        }

    def bot(self, **more: str) -> Bot:
        """A process, not started yet."""
        log = self._folder / f"bot{len(self._bots)}.log"
        bot = Bot(self.environment(**more), log)
        self._bots.append(bot)
        return bot

    async def start(self, **more: str) -> Bot:
        """A process that is connected to Slack."""
        bot, before = self.bot(**more), self.slack.connections
        bot.start()
        await wait_until(lambda: self.slack.connections > before or _ended(bot), 60)
        assert not _ended(bot), bot.log
        return bot

    async def run(self, count: int, **more: str) -> list[Bot]:
        """Exactly `count` processes, those that are still there included."""
        while len(alive := [bot for bot in self._bots if not _ended(bot)]) < count:
            await self.start(**more)
        for bot in alive[count:]:
            bot.kill()
        return alive[:count]

    async def answered(self, channel: str, ts: str, count: int = 1) -> list[str]:
        """The thread's answers, once there are `count` with a footer."""

        def is_done() -> bool:
            return sum("Stopped: " in answer for answer in self.slack.answers(channel, ts)) >= count

        await wait_until(is_done, 40)
        return self.slack.answers(channel, ts)

    async def ask(self, channel: str, user: str, text: str, **fields: Any) -> tuple[str, str]:
        """A mention in a new thread, and its finished answer: (ts, text)."""
        ts = await self.slack.mention(channel, user, text, **fields)
        [answer] = await self.answered(channel, ts)
        return ts, answer

    async def calm(self) -> None:
        """Returns once every delivery is acknowledged and nothing has been called for a while."""

        def is_calm() -> bool:
            newest = self.slack.calls[-1].at if self.slack.calls else 0.0
            is_quiet = time.monotonic() - newest > 0.25
            return is_quiet and all(e.acks for e in self.slack.envelopes.values())

        await wait_until(is_calm, 20)

    def close(self) -> None:
        for bot in self._bots:
            if bot.process is not None and bot.process.poll() is None:
                bot.kill()


def elements(blocks: Any, action: str = "") -> list[dict[str, Any]]:
    """Every button in `blocks` whose action begins with `action`."""
    if isinstance(blocks, list):
        return [found for block in blocks for found in elements(block, action)]
    if not isinstance(blocks, dict):
        return []
    own = [blocks] if str(blocks.get("action_id", "-")).startswith(action) else []
    return own + [found for value in blocks.values() for found in elements(value, action)]


def _ended(bot: Bot) -> bool:
    return bot.process is None or bot.process.poll() is not None


@asynccontextmanager
async def open_world(folder: Path, **options: Any) -> AsyncGenerator[World]:
    """Everything but the bot; its processes are ended with it."""
    with serve() as redis:
        async with SlackServer(**options) as slack, AnthropicServer() as model:
            world = World(slack, model, redis, folder)
            try:
                yield world
            finally:
                world.close()
