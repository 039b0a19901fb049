"""The whole of core in one process, with a scripted model and a reply that records."""

import asyncio
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from core.app import App
from core.config import Settings
from core.protocols import ChatMessage, Model, ModelEvent, Ref
from core.transcript import question_of
from core.types import Message, Run, Usage
from tests.support import Reply

DOCS = {
    "top.md": "# The top\n\nPut your name at the top of the resume.\n",
    "ats.md": "# Tracking systems\n\nSoftware reads the resume before a person does.\n",
}


class Posted:
    """What people see of one answer."""

    def __init__(self, message: Message, ref: Ref | None) -> None:
        self.message = message
        self.taken_over = ref
        self.text = ""
        self.statuses: list[str] = []
        self.runs: list[Run] = []


class RecordingAdapter:
    """Answers platform "test", workspace "W1"; `posted` holds every reply opened, in order."""

    platform = "test"
    workspaces: Sequence[str] = ("W1",)

    def __init__(self) -> None:
        self.posted: list[Posted] = []
        self.fail_closes = 0
        self.fail_appends = 0
        self.enriched: Callable[[Message], Message] = lambda message: message
        self.before_close: Callable[[], Any] | None = None

    @property
    def done(self) -> list[tuple[str, Run]]:
        """(question, run) of every answer closed, in the order of closing within a reply."""
        return [(item.message.text, run) for item in self.posted for run in item.runs]

    def run_for(self, text: str) -> Run | None:
        """The run that answered `text`, once it has."""
        return next((run for asked, run in self.done if asked == text), None)

    async def enrich(self, message: Message) -> Message:
        return self.enriched(message)

    async def open_reply(self, message: Message, ref: Ref | None) -> "RecordingReply":
        self.posted.append(Posted(message, ref))
        return RecordingReply(self, self.posted[-1], ref)


class RecordingReply:
    def __init__(self, adapter: RecordingAdapter, posted: Posted, ref: Ref | None) -> None:
        self._adapter = adapter
        self._posted = posted
        self._ref = ref

    @property
    def ref(self) -> Ref | None:
        return self._ref

    def _post(self) -> None:
        if self._ref is None:
            self._ref = {"aliases": [f"bot-{self._posted.message.id}"]}

    async def status(self, text: str) -> None:
        self._posted.statuses.append(text)

    async def append(self, delta: str) -> None:
        if self._adapter.fail_appends:
            self._adapter.fail_appends -= 1
            raise ConnectionError("the platform is at db.internal:5432")
        self._post()
        self._posted.text += delta

    async def reset(self, text: str) -> None:
        self._posted.text = text

    async def close(self, run: Run) -> None:
        if self._adapter.fail_closes:
            self._adapter.fail_closes -= 1
            raise ConnectionError("the platform is at db.internal:5432")
        if self._adapter.before_close is not None:
            await self._adapter.before_close()
        self._post()
        self._posted.runs.append(run)


class RuledModel:
    """Replies by what the newest question is; `gates` hold a question's reply until set."""

    id = "ruled"
    has_citations = True

    def __init__(self, rules: Mapping[str, Sequence[Reply]] | None = None) -> None:
        self.rules = dict(rules or {})
        self.requests: list[list[ChatMessage]] = []
        self.asked: dict[str, int] = {}
        self.gates: dict[str, asyncio.Event] = {}
        self.echo = False

    def cost_usd(self, usage: Usage) -> float | None:
        return 0.0

    def requests_for(self, question: str) -> list[list[ChatMessage]]:
        return [request for request in self.requests if question_of(request) == question]

    async def stream(
        self,
        system: str,
        messages: Sequence[ChatMessage],
        tools: Sequence[Mapping[str, Any]],
        max_tokens: int,
    ) -> AsyncGenerator[ModelEvent]:
        question = question_of(messages)
        self.requests.append([dict(item) for item in messages])
        count = self.asked.get(question, 0)
        self.asked[question] = count + 1
        if gate := self.gates.get(question):
            await gate.wait()
        replies = self.rules.get(question)
        if self.echo:
            reply = Reply(f"{system}\n{messages}")
        elif replies:
            reply = replies[min(count, len(replies) - 1)]
        else:
            reply = Reply(f"Answer to {question}")
        async for event in reply.events():
            yield event


class Running:
    """An open app whose workers run; `stop` ends them as SIGTERM would."""

    def __init__(self, app: App, adapter: RecordingAdapter) -> None:
        self.app = app
        self.chat = app.chat
        self.adapter = adapter
        self._stop = asyncio.Event()
        self.serving = asyncio.create_task(app.serve([adapter], self._stop))

    async def stop(self) -> None:
        self._stop.set()
        await self.serving


@asynccontextmanager
async def running(
    redis_url: str | None, folder: Path, model: Model, **settings: Any
) -> AsyncGenerator[Running]:
    """The app with its workers, on documents of its own."""
    docs = folder / "docs"
    docs.mkdir(exist_ok=True)
    for name, text in DOCS.items():
        (docs / name).write_text(text, encoding="utf-8")
    known = Settings(
        redis_url=redis_url,  # type: ignore[arg-type]
        data_dir=folder / "data",
        docs_path=docs,
        **{"lease_s": 2.0, "grace_s": 1.0, **settings},
    )
    app = await App.open(known, model=model)
    runner = Running(app, RecordingAdapter())
    try:
        yield runner
    finally:
        await runner.stop()
        await app.close()
