"""What the cache saves: the typical run, as the local server bills it.

The run: 1,500 tokens of tools and system prompt, 300 of facts, 3,000 of history, then four rounds
of one tool call (150 tokens) and its result (1,500), then the answer. "Uncached" is every input
token of the five calls at its full price; a cached token costs a tenth, a written one five
quarters. "Warm" means that another conversation used the same tools and prompt just before.

    python -m bench.cost [--json]
"""

import argparse
import asyncio
import json
import time
from collections.abc import Sequence
from itertools import count
from typing import Any

from pydantic import BaseModel

from bench.loop import MODEL, answer
from core.agent import Agent
from core.errors import ToolError
from core.history import Turn
from core.model import AnthropicModel
from core.prompt import question_messages
from core.protocols import Document, Hit, Passage, ToolContext, ToolResult
from core.run_state import Task
from core.tools import define_tool
from core.tools.read_doc import make_read_doc
from core.tools.search_docs import make_search_docs
from core.types import Author, Conversation, Limits, Message, Session
from tests.anthropic_cache import Billed, tokens
from tests.anthropic_script import Reply, Text, ToolUse
from tests.anthropic_server import AnthropicServer

GOAL_COLD, GOAL_WARM = 0.43, 0.39
PREFIX, FACTS, HISTORY, RESULT, CALL, ROUNDS = 1_500, 300, 3_000, 1_500, 150, 4
WRITE, READ = 1.25, 0.1
_WORDS = "the resume names who you are and what you did in plain words that a reader finds fast "


async def main() -> None:
    """Measures and prints."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    options = parser.parse_args()
    figures = await measure()
    if options.json:
        print(json.dumps(figures))
        return
    for name, goal in (("cold", GOAL_COLD), ("warm", GOAL_WARM)):
        run = figures[name]
        print(
            f"{name}: {run['billed']:,.0f} of {run['uncached']:,} input tokens billed, "
            f"ratio {run['ratio']:.3f} (goal: at most {goal}); "
            f"{run['total_tokens']:,} tokens in all, ${run['cost_usd']:.5f}, {run['stop_reason']}"
        )


async def measure() -> dict[str, Any]:
    """Both runs, and the sizes that they really had."""
    async with AnthropicServer() as server:
        model = AnthropicModel("bench", MODEL, base_url=server.url)
        library = Passages()
        search, read = make_search_docs(library, 3), make_read_doc(library)
        bare = Agent(model, {tool.name: tool for tool in (search, read)}, library)
        prefix = await prefix_tokens(server, bare)
        filler = define_tool("look_up", text_of(PREFIX - prefix - 60), NoArguments, nothing)
        agent = Agent(model, {tool.name: tool for tool in (search, read, filler)}, library)
        figures: dict[str, Any] = {"prefix_tokens": await prefix_tokens(server, agent)}
        server.cache.clear()
        for conversation, name in enumerate(("cold", "warm")):
            figures[name] = await typical_run(server, agent, conversation)
        await model.close()
    return figures


async def typical_run(server: AnthropicServer, agent: Agent, conversation: int) -> dict[str, Any]:
    """One typical run of a conversation, and what it was billed."""
    server.requests.clear()
    queries = (text_of(CALL - 27, offset=round_) for round_ in range(ROUNDS))
    rounds = [Reply([ToolUse("search_docs", {"query": query})]) for query in queries]
    server.script(*rounds, [Text(text_of(CALL), (0,))])
    run = await answer(agent, make_task(conversation))
    billed = [request.billed for request in server.requests if request.billed is not None]
    cost = sum(map(price, billed))
    uncached = sum(part.total for part in billed)
    return {
        "stop_reason": run.stop_reason.value,
        "turns": run.turns,
        "uncached": uncached,
        "billed": cost,
        "ratio": cost / uncached,
        "total_tokens": run.usage.total,
        "cost_usd": run.cost_usd,
    }


async def prefix_tokens(server: AnthropicServer, agent: Agent) -> int:
    """The tokens of tools and system prompt, by the server's own estimate."""
    server.script([Text("ok")])
    await answer(agent, make_task(99))
    body = server.requests[-1].body
    parts = [*body["tools"], {"type": "text", "text": body["system"][0]["text"]}]
    return sum(
        tokens(json.dumps(part, separators=(",", ":"), ensure_ascii=False)) for part in parts
    )


def price(billed: Billed) -> float:
    """Input tokens weighed by what they cost."""
    return billed.input + WRITE * billed.cache_write + READ * billed.cache_read


def make_task(conversation: int) -> Task:
    """A question with three thousand tokens of history and three hundred of facts."""
    session = Session("bench", "W1", "C1", f"U{conversation}")
    asked = Message(
        id=f"m{conversation}",
        conversation=Conversation("bench", "W1", "C1", f"T{conversation}"),
        session=session,
        author=Author(session.user, session.user),
        text="What goes at the top of my resume?",
        sent_at=0.0,
    )
    # Different words for each conversation, so that only tools and prompt can be warm.
    history = [
        Turn(session.user, session.user, *history_texts(conversation, turn), f"r{turn}", 0.0)
        for turn in range(6)
    ]
    facts = {f"fact_{place}": text_of(FACTS // 6 - 8, offset=place) for place in range(6)}
    return Task(
        goal=asked.text,
        messages=question_messages(asked, history, facts, now=time.time()),
        context=ToolContext(f"run{conversation}", session, 0, (asked.text,), asked.id),
        limits=Limits(),
    )


def history_texts(conversation: int, turn: int) -> tuple[str, str]:
    """A question and its answer, 500 tokens together."""
    size = HISTORY // 6
    question = f"{conversation}.{turn} {text_of(size // 5 - 9)}"
    return question, text_of(size * 4 // 5 - 8, offset=turn)


def text_of(size: int, *, offset: int = 0) -> str:
    """About `size` tokens of prose; another `offset` gives another text."""
    words = _WORDS[offset:] + _WORDS[:offset]
    return (words * (size * 4 // len(words) + 1))[: size * 4].strip()


class NoArguments(BaseModel):
    """The filler takes none."""


async def nothing(_arguments: NoArguments, _context: ToolContext) -> ToolResult:
    """The filler is never called; it stands for a team's own tools."""
    raise ToolError("not in this bench")


class Passages:
    """A library that finds three new passages for every query, 1,500 tokens together."""

    def __init__(self) -> None:
        self._numbers = count()

    async def search(self, query: str, k: int) -> Sequence[Hit]:
        """Three passages that no earlier search gave."""
        return [Hit(self._passage(), score=1.0, is_good=True) for _ in range(k)]

    async def read(self, path: str, start_line: int, max_chars: int) -> Document:
        """No document can be read here."""
        raise ToolError(f"There is no document {path!r}.")

    def _passage(self) -> Passage:
        number = next(self._numbers)
        text = text_of(RESULT // 3 - 55, offset=number % len(_WORDS))
        return Passage(f"article-{number}.md", f"Article {number}", "Top", text, line=1)


if __name__ == "__main__":
    asyncio.run(main())
