"""What Slack tests share: replies on the local Slack, runs and messages to render."""

from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

from bots.slack.api import Identity, SlackApi
from bots.slack.events import read_message
from bots.slack.posts import Pace
from bots.slack.reply import SlackReply
from bots.slack.tasks import Tasks
from core.types import FactChange, Message, Run, Session, Source, Step, StopReason, Usage
from tests.slack_server import BOT_TOKEN, BOT_USER, SlackServer

CHANNEL = "C1"
SESSION = Session("slack", "T1", CHANNEL, "U1")
STEP = Step(
    1, "search_docs", {"query": "resume top"}, "<result>Put your name first.</result>", False, 12
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
