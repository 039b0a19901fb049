"""How long Discord's users wait, what an answer costs in requests, and the pace of edits.

    python bench/discord.py [--json] [--questions 30] [--at-once 20]

The real process answers on a local Discord (tests/discord_server.py), whose rate limits are on,
with the offline model; for many answers at once a local Anthropic streams slowly. For comparison a
bare discord.py bot replies a fixed text on the same server. Times are taken where Discord would
see them; a request that was refused with 429 is not counted as an edit.
"""

import argparse
import asyncio
import json
import os
import re
import statistics
import sys
import tempfile
import time
from collections import Counter
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from tests.anthropic_script import Reply, Text
from tests.anthropic_server import AnthropicServer
from tests.discord_server import DiscordServer
from tests.support_discord_limits import PER_WINDOW, WINDOW_S
from tests.support_discord_rest import Call
from tests.support_discord_world import Json

ROOT = Path(__file__).resolve().parent.parent
QUESTION = "What should I put at the top of my resume?"
BARE = """
import discord, sys
discord.http.Route.BASE = sys.argv[1]
intents = discord.Intents(guilds=True, guild_messages=True, message_content=True)
client = discord.AutoShardedClient(intents=intents, max_messages=None)
@client.event
async def on_message(message):
    if client.user in message.mentions:
        await message.reply("A fixed text. Stopped:", mention_author=False)
client.run("t", log_handler=None)
"""


async def main() -> None:
    """Runs all parts and prints the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--questions", type=int, default=30)
    parser.add_argument("--at-once", type=int, default=20)
    options = parser.parse_args()
    bare = await _bare(options.questions)
    ours = await _one_by_one(options.questions)
    ratio = ours["finished_ms"]["p50"] / bare["finished_ms"]["p50"]
    figures = {
        "questions": options.questions,
        **ours,
        "bare_bot_finished_ms": bare["finished_ms"],
        "ratio_to_bare_bot": round(ratio, 1),
        **await _at_once(options.at_once),
    }
    print(json.dumps(figures) if options.json else _table(figures))


class Bench:
    """A local Discord with one server and one person, and a bot on it."""

    def __init__(self, server: DiscordServer) -> None:
        self.server = server
        self.person = server.world.user("ann")
        self.guild = server.world.guild(self.person)

    def channel(self) -> Json:
        made = self.server.world.channel(self.guild)
        self.server.dispatch("CHANNEL_CREATE", made)
        return made

    def ask(self, channel: Json, text: str = QUESTION) -> float:
        """Asks; when, in monotonic seconds."""
        asked_at = time.monotonic()
        self.server.say(channel, self.person, f"<@{self.server.world.bot['id']}> {text}")
        return asked_at

    def calls(self, channel: Json) -> list[Call]:
        """Requests about a channel, and about the threads that are named after its messages."""
        ids = [channel["id"], *self.server.world.messages[channel["id"]]]
        return [c for c in self.server.rest.calls if any(each in c.path for each in ids)]

    async def until(self, check: Callable[[], Any], timeout_s: float = 120.0) -> Any:
        async with asyncio.timeout(timeout_s):
            while not (found := check()):  # noqa: ASYNC110 - any request may make it true
                await asyncio.sleep(0.002)
            return found


@asynccontextmanager
async def _open(*command: str, **environment: str) -> AsyncGenerator[Bench]:
    """A `Bench` with the bot that `command` starts."""
    server = DiscordServer()
    await server.start()
    server.rest.limits.is_on = True
    bench = Bench(server)
    with tempfile.TemporaryDirectory() as folder:
        kept = {name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ}
        values = {
            "PYTHONPATH": str(ROOT),
            "DISCORD_TOKEN": "t",
            "DISCORD_API_URL": server.api_url,
            "DATA_DIR": f"{folder}/data",
            **environment,
        }
        arguments = [part.replace("{api}", server.api_url) for part in command]
        process = await asyncio.create_subprocess_exec(
            sys.executable, *arguments, env=kept | values, cwd=folder
        )
        try:
            await bench.until(lambda: server.is_connected or process.returncode is not None)
            if process.returncode is not None:
                raise SystemExit("the bot did not start")
            yield bench
        finally:
            if process.returncode is None:
                process.terminate()
            await process.wait()
            await server.stop()


async def _bare(questions: int) -> dict[str, Any]:
    async with _open("-c", BARE, "{api}") as bench:
        return {"finished_ms": _quantiles(await _finished(bench, questions + 3))}


async def _finished(bench: Bench, questions: int) -> list[float]:
    """Seconds from each question to its reply, the first three (warming up) left out."""
    waits: list[float] = []
    for _ in range(questions):
        channel = bench.channel()
        asked_at = bench.ask(channel)
        call = await bench.until(lambda channel=channel: _last_text(bench, channel))
        waits.append(call.at - asked_at)
    return waits[3:]


def _last_text(bench: Bench, channel: Json) -> Call | None:
    """The request that finished the answer, if it came."""
    ends = [c for c in bench.calls(channel) if "Stopped:" in str(c.body.get("content", ""))]
    return ends[0] if ends else None


async def _one_by_one(questions: int) -> dict[str, Any]:
    typing: list[float] = []
    first: list[float] = []
    finished: list[float] = []
    traced: list[float] = []
    kinds: Counter[str] = Counter()
    async with _open("-m", "bots.discord", OFFLINE="true") as bench:
        for number in range(questions + 3):
            channel = bench.channel()
            asked_at = bench.ask(channel)
            end = await bench.until(lambda channel=channel: _last_text(bench, channel))
            trace = await bench.until(lambda channel=channel: _trace(bench, channel))
            if number < 3:
                continue
            calls = bench.calls(channel)
            kinds.update(_kind(call) for call in calls)
            typing.append(next(c.at for c in calls if c.path.endswith("/typing")) - asked_at)
            first.append(next(c.at for c in calls if "content" in c.body) - asked_at)
            finished.append(end.at - asked_at)
            traced.append(trace.at - asked_at)
    return {
        "typing_ms": _quantiles(typing),
        "first_text_ms": _quantiles(first),
        "finished_ms": _quantiles(finished),
        "trace_ms": _quantiles(traced),
        "requests_per_answer": round(sum(kinds.values()) / questions, 2),
        "requests_by_kind": {kind: round(n / questions, 2) for kind, n in sorted(kinds.items())},
    }


def _trace(bench: Bench, channel: Json) -> Call | None:
    found = [c for c in bench.calls(channel) if "**Trace" in str(c.body.get("content", ""))]
    return found[0] if found else None


def _kind(call: Call) -> str:
    return f"{call.method} {re.sub(r'[0-9]+', '*', call.path)}"


async def _at_once(answers: int) -> dict[str, Any]:
    """Many answers streaming in one channel, against the documented five in five seconds."""
    async with AnthropicServer() as model:
        words = Text("These are words of an answer that takes its time to come. " * 12)
        model.respond = lambda _: Reply([words], delta_s=0.25)
        keys = {"ANTHROPIC_API_KEY": "sk-ant-bench", "ANTHROPIC_BASE_URL": model.url}
        async with _open("-m", "bots.discord", **keys) as bench:
            channel = bench.channel()
            began = time.monotonic()
            for number in range(answers):
                bench.ask(channel, f"question {number}")
            await bench.until(lambda: sum(_is_end(c) for c in bench.calls(channel)) >= answers, 300)
            took = time.monotonic() - began
            path = f"/channels/{channel['id']}/messages"
            calls = [c for c in bench.server.rest.calls if c.path.startswith(path)]
            edits = [c.at for c in calls if c.method == "PATCH" and c.status == 200]
            return {
                "at_once": answers,
                "at_once_all_finished_s": round(took, 1),
                "at_once_edits": len(edits),
                "at_once_edits_per_s": round(len(edits) / took, 2),
                "at_once_most_edits_in_5_s": _most(edits),
                "at_once_allowed_in_5_s": PER_WINDOW,
                "at_once_refused_429": bench.server.rest.limits.refused,
            }


def _is_end(call: Call) -> bool:
    return "Stopped:" in str(call.body.get("content", ""))


def _most(times: Sequence[float]) -> int:
    """The most requests in any window."""
    return max((sum(0 <= t - start < WINDOW_S for t in times) for start in times), default=0)


def _quantiles(seconds: Sequence[float]) -> dict[str, float]:
    cuts = statistics.quantiles(seconds, n=100)
    return {name: round(cuts[at] * 1000, 1) for name, at in (("p50", 49), ("p95", 94))}


def _table(figures: dict[str, Any]) -> str:
    return "\n".join(f"{name:28} {value}" for name, value in figures.items())


if __name__ == "__main__":
    asyncio.run(main())
