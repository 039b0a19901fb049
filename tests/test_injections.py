"""Documents that try to plant facts, through the whole loop with a model that obeys them all."""

import json
from collections.abc import AsyncGenerator, Mapping, Sequence
from pathlib import Path
from typing import Any

from core.protocols import Block, ChatMessage, ModelBlockEnd, ModelEvent, ModelReply, ModelText
from core.transcript import NOTE_SOURCE, blocks_of
from core.types import StopReason, Usage
from tests.support import call, wait_until
from tests.support_chat import running
from tests.support_injections import QUESTION, Injection, write_documents
from tests.support_redis import a_message, a_session, serve, texts

PER_RUN = 6


class ObedientModel:
    """Reads the documents that the question names, and saves whatever they ask it to save."""

    id = "obedient"
    has_citations = True

    def __init__(self, by_path: Mapping[str, Injection]) -> None:
        self._by_path = by_path
        self.obeyed: list[str] = []
        self.refusals: list[str] = []

    def cost_usd(self, usage: Usage) -> float | None:
        return 0.0

    async def stream(
        self,
        system: str,
        messages: Sequence[ChatMessage],
        tools: Sequence[Mapping[str, Any]],
        max_tokens: int,
    ) -> AsyncGenerator[ModelEvent]:
        newest = blocks_of(messages[-1])
        calls: list[Block] = []
        if newest[0]["type"] == "text":
            paths = [word for word in str(newest[-1]["text"]).split() if word.endswith(".md")]
            calls = [call("read_doc", {"path": path}) for path in paths]
        else:
            for path in _paths(newest):
                injection = self._by_path[path]
                self.obeyed.append(injection.id)
                calls.append(call("remember", {"key": injection.key, "value": injection.value}))
            self.refusals += [
                str(result["content"][0]["text"]) for result in newest if result["is_error"]
            ]
        usage = Usage(input=10, output=10)
        if calls:
            yield ModelReply(calls, "tool_use", usage)
            return
        yield ModelText("Done.")
        yield ModelBlockEnd(())
        yield ModelReply([{"type": "text", "text": "Done."}], "end_turn", usage)


def _paths(results: Sequence[Block]) -> list[str]:
    return [
        str(block["source"]).partition("#")[0]
        for result in results
        for block in result["content"]
        if block["type"] == "search_result" and block["source"] != NOTE_SOURCE
    ]


async def test_no_document_plants_a_fact_through_a_model_that_obeys(tmp_path: Path) -> None:
    docs = tmp_path / "docs"
    by_path = write_documents(docs)
    model = ObedientModel(by_path)
    names = sorted(by_path)
    with serve() as server:
        async with running(server.url, tmp_path, model) as bot:
            for start in range(0, len(names), PER_RUN):
                question = f"{QUESTION} {' '.join(names[start : start + PER_RUN])}"
                await bot.chat.submit(a_message(question))
                await wait_until(lambda asked=question: bot.adapter.run_for(asked) is not None)
            assert dict(await bot.chat.facts(a_session())) == {}
            planted = [key for key in await texts(bot.app.store) if ":mem:" in key]
            runs = [run for _, run in bot.adapter.done]
    assert planted == []
    assert sorted(model.obeyed) == sorted(injection.id for injection in by_path.values())
    assert len(by_path) >= 40
    assert len(model.refusals) == len(by_path)
    assert all(run.stop_reason is StopReason.DONE and not run.facts_saved for run in runs)


async def test_the_same_facts_are_kept_when_the_user_says_them(tmp_path: Path) -> None:
    # what would make the test above pass for the wrong reason: a memory that keeps nothing
    document = "# Length\n\nOne page. The user works at Globex."
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "a.md").write_text(document)
    injection = Injection("a", "plain", "en", "employer", "works at Globex", document)
    model = ObedientModel({"a.md": injection})
    with serve() as server:
        async with running(server.url, tmp_path, model) as bot:
            await bot.chat.submit(a_message("She works at Globex, I work at Globex. Read a.md"))
            await wait_until(lambda: len(bot.adapter.done) == 1)
            facts = await bot.chat.facts(a_session())
    assert json.dumps({key: fact.value for key, fact in facts.items()}) == (
        '{"employer": "works at Globex"}'
    )
