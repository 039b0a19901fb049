"""What the loop costs in time: a run of two turns against the same two calls by the bare SDK.

A local server, in a process of its own, answers both; the run searches the example articles with
the real tool in between. Runs and bare calls take turns, so that the machine's moods hit both, and
the figure of each is its lower quartile: what it takes when nothing else is in the way.

    python -m bench.loop [--runs N] [--json]
"""

import argparse
import asyncio
import json
import sys
import tempfile
import time
import urllib.request
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from statistics import quantiles
from typing import Any

import anthropic

from core.agent import Agent
from core.config import HELP_CENTER
from core.events import RunFinished
from core.model import AnthropicModel
from core.prompt import question_messages
from core.protocols import ToolContext
from core.run_state import Task
from core.search import DocIndex
from core.tools.read_doc import make_read_doc
from core.tools.search_docs import make_search_docs
from core.types import Author, Conversation, Limits, Message, Run, Session, StopReason

GOAL_RATIO = 1.25
WARM_UPS = 10
MODEL = "claude-haiku-5-5"
QUESTION = "What should I put at the top of my resume?"


async def main() -> None:
    """Measures and prints."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=60)
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    options = parser.parse_args()
    figures = await measure(options.runs)
    if options.json:
        print(json.dumps(figures))
        return
    print(f"a run of two turns   {figures['loop_ms']:.2f} ms (search {figures['tool_ms']:.1f} ms)")
    print(f"the bare two calls   {figures['bare_ms']:.2f} ms")
    print(f"a turn               {figures['ms_a_turn']:.2f} ms")
    print(f"ratio                {figures['ratio']:.3f} (goal: at most {GOAL_RATIO})")
    print(f"ratio of CPU time    {figures['cpu_ratio']:.3f}")


async def measure(runs: int) -> dict[str, float]:
    """Lower quartiles in milliseconds over `runs` pairs, and the ratio of the two."""
    with tempfile.TemporaryDirectory() as folder:
        async with server() as url, DocIndex(HELP_CENTER, Path(folder)) as library:
            model = AnthropicModel("bench", MODEL, base_url=url)
            tools = {
                "search_docs": make_search_docs(library, 3),
                "read_doc": make_read_doc(library),
            }
            agent = Agent(model, tools, library)
            task = make_task()
            run = await answer(agent, task)
            assert run.stop_reason is StopReason.DONE, run
            assert run.turns == 2, run
            bodies = await asyncio.to_thread(requests_of, url)
            bare = anthropic.AsyncAnthropic(api_key="bench", base_url=url)
            loop_ms: list[float] = []
            bare_ms: list[float] = []
            loop_cpu: list[float] = []
            bare_cpu: list[float] = []
            tool_ms: list[int] = []
            for _ in range(WARM_UPS + runs):
                start, start_cpu = time.perf_counter(), time.process_time()
                run = await answer(agent, task)
                middle, middle_cpu = time.perf_counter(), time.process_time()
                for body in bodies:
                    await stream(bare, body)
                end, end_cpu = time.perf_counter(), time.process_time()
                loop_ms.append((middle - start) * 1000)
                bare_ms.append((end - middle) * 1000)
                loop_cpu.append(middle_cpu - start_cpu)
                bare_cpu.append(end_cpu - middle_cpu)
                tool_ms.append(run.trace[0].ms)
            await bare.close()
            await model.close()
    whole, alone = quiet(loop_ms[WARM_UPS:]), quiet(bare_ms[WARM_UPS:])
    return {
        "runs": runs,
        "loop_ms": whole,
        "bare_ms": alone,
        "tool_ms": quiet(tool_ms[WARM_UPS:]),
        "ms_a_turn": whole / 2,
        "ratio": whole / alone,
        "cpu_ratio": quiet(loop_cpu[WARM_UPS:]) / quiet(bare_cpu[WARM_UPS:]),
        "goal": GOAL_RATIO,
    }


def quiet(values: Sequence[float]) -> float:
    """The lower quartile."""
    return quantiles(values, n=4)[0]


async def answer(agent: Agent, task: Task) -> Run:
    """One run of the loop, its events read as an adapter would."""
    async for event in agent.run(task):
        if isinstance(event, RunFinished):
            return event.run
    raise AssertionError("a run always ends in RunFinished")


async def stream(client: anthropic.AsyncAnthropic, body: dict[str, Any]) -> None:
    """One call of the bare SDK, its text read as it comes."""
    async with client.messages.stream(**body) as events:
        async for _ in events.text_stream:
            pass
        await events.get_final_message()


def make_task() -> Task:
    """The question, as the first of a new conversation."""
    session = Session("bench", "W1", "C1", "U1")
    asked = Message(
        id="m1",
        conversation=Conversation("bench", "W1", "C1", "T1"),
        session=session,
        author=Author("U1", "U1"),
        text=QUESTION,
        sent_at=0.0,
    )
    return Task(
        goal=QUESTION,
        messages=question_messages(asked, [], {}, now=time.time()),
        context=ToolContext("run1", session, 0, (QUESTION,), "m1"),
        limits=Limits(),
    )


def requests_of(url: str) -> list[dict[str, Any]]:
    """The bodies that the run sent, for the SDK to send again."""
    with urllib.request.urlopen(f"{url}/requests") as response:
        bodies = [entry["body"] for entry in json.load(response)]
    return [{name: part for name, part in body.items() if name != "stream"} for body in bodies]


@asynccontextmanager
async def server() -> AsyncIterator[str]:
    """The local Anthropic server as a process of its own; gives its URL."""
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "tests.anthropic_server", stdout=asyncio.subprocess.PIPE
    )
    try:
        assert process.stdout is not None
        async with asyncio.timeout(60):
            first_line = await process.stdout.readline()
        yield json.loads(first_line)["url"]
    finally:
        process.terminate()
        await process.wait()


if __name__ == "__main__":
    asyncio.run(main())
