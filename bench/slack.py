"""What Slack answers cost: time to first status, first text and the end, Web API calls, mentions/s.

The real process answers on the local Slack, Valkey and Anthropic servers of the tests; the model
answers at once: one search, then 1,000 characters. Beside it, in the same run, a bare Bolt app
posts one fixed message of that length, so that the figures are ratios.

    python -m bench.slack [--mentions N] [--burst N] [--json]
"""

import argparse
import asyncio
import json
import logging
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from statistics import median
from typing import Any

from tests.anthropic_server import Reply, Text, ToolUse
from tests.slack_server import APP_TOKEN, BOT_TOKEN, SlackServer
from tests.support import wait_until
from tests.support_slack import ROOT, World, open_world

GOAL_CALLS = 6
ANSWER = ("Put your name on top. " * 50)[:1_000]
WARM_UPS = 3
FIRST_STATUS, FIRST_TEXT = "assistant.threads.setStatus", "chat.startStream"
LAST_TEXT, POST = "chat.stopStream", "chat.postMessage"


async def main() -> None:
    """Measures and prints."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--mentions", type=int, default=30, help="one after the other")
    parser.add_argument("--burst", type=int, default=100, help="all at once")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_argument("--bare", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.bare:
        await serve_bare()
        return
    figures = await measure(options.mentions, options.burst)
    if options.json:
        print(json.dumps(figures))
        return
    ours, bare, ratio = figures["footnote"], figures["bare"], figures["ratio"]
    print(f"                      Footnote   bare Bolt   ratio   ({options.mentions} mentions)")
    print(f"first status, ms      {ours['first_status_ms']:8.0f}")
    print(f"first text, ms        {ours['first_text_ms']:8.0f}")
    print(
        f"finished, ms          {ours['finished_ms']:8.0f}   {bare['finished_ms']:9.0f}"
        f"   {ratio['finished']:5.1f}"
    )
    print(
        f"mentions a second     {ours['mentions_per_s']:8.1f}   {bare['mentions_per_s']:9.1f}"
        f"   {ratio['mentions_per_s']:5.2f}"
    )
    print(
        f"API calls an answer   {ours['calls']:8.1f}   {bare['calls']:9.1f}   goal ≤ {GOAL_CALLS}"
    )


async def measure(mentions: int, burst: int) -> dict[str, Any]:
    """All figures: milliseconds are medians, calls a mean."""
    with tempfile.TemporaryDirectory() as folder:
        logs = Path(folder) / "logs"
        logs.mkdir()
        async with open_world(logs) as world:
            world.model.respond = _respond
            await world.start(LEASE_S="10")
            ours = await _figures(world.slack, mentions, burst, LAST_TEXT)
            world.close()
            await wait_until(lambda: not world.slack.sockets)
            bare = await _bare(world, mentions, burst)
    ratio = {
        "finished": ours["finished_ms"] / bare["finished_ms"],
        "mentions_per_s": ours["mentions_per_s"] / bare["mentions_per_s"],
    }
    return {"footnote": ours, "bare": bare, "ratio": ratio, "goal_calls": GOAL_CALLS}


def _respond(body: Mapping[str, Any]) -> Reply:
    content: Any = body["messages"][-1]["content"]
    if any(block["type"] == "tool_result" for block in content):
        return Reply([Text(ANSWER)])
    return Reply([ToolUse("search_docs", {"query": "top of a resume"})])


async def _figures(slack: SlackServer, mentions: int, burst: int, last: str) -> dict[str, float]:
    for _ in range(WARM_UPS):
        await _mention(slack, "CWARM", last)
    calls_before = len(slack.calls)
    timings = [await _mention(slack, "CONE", last) for _ in range(mentions)]
    # The trace follows the answer: count it too.
    await asyncio.sleep(0.5)
    calls = (len(slack.calls) - calls_before) / mentions
    started = time.monotonic()
    done_before = slack.count()[last]
    await asyncio.gather(*(slack.mention("CMANY", f"U{n % 8}", "go") for n in range(burst)))
    await wait_until(lambda: slack.count()[last] >= done_before + burst, 120, 0.02)
    elapsed_s = time.monotonic() - started
    found = {name: median(values) for name, values in _columns(timings).items() if any(values)}
    return {**found, "calls": calls, "mentions_per_s": burst / elapsed_s}


async def _mention(slack: SlackServer, channel: str, last: str) -> dict[str, float]:
    first_call, started = len(slack.calls), time.monotonic()
    ts = await slack.mention(channel, "U1", "What should I put at the top of my resume?")
    await wait_until(lambda: _at(slack, first_call, last) is not None, 60, 0.001)
    times = {
        "first_status_ms": _at(slack, first_call, FIRST_STATUS),
        "first_text_ms": _at(slack, first_call, FIRST_TEXT),
        "finished_ms": _at(slack, first_call, last),
    }
    if last == LAST_TEXT:
        await wait_until(lambda: bool(slack.traces(channel, ts)), 60)
    return {name: (at - started) * 1_000 if at else 0.0 for name, at in times.items()}


def _at(slack: SlackServer, first_call: int, method: str) -> float | None:
    calls = slack.calls[first_call:]
    return next((call.at for call in calls if call.method == method and call.answer), None)


def _columns(rows: list[dict[str, float]]) -> dict[str, list[float]]:
    return {name: [row[name] for row in rows] for name in rows[0]}


async def _bare(world: World, mentions: int, burst: int) -> dict[str, float]:
    process = _start_bare(world)
    try:
        await wait_until(lambda: bool(world.slack.sockets), 60)
        return await _figures(world.slack, mentions, burst, POST)
    finally:
        process.kill()
        process.wait()


def _start_bare(world: World) -> subprocess.Popen[bytes]:
    environment = {**os.environ, "SLACK_API_URL": world.slack.url, "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-m", "bench.slack", "--bare"]
    return subprocess.Popen(command, env=environment)


async def serve_bare() -> None:
    """A Bolt app that posts one fixed message to each mention."""
    from slack_bolt.adapter.socket_mode.aiohttp import AsyncSocketModeHandler
    from slack_bolt.app.async_app import AsyncApp
    from slack_sdk.web.async_client import AsyncWebClient

    logging.getLogger("slack_bolt").setLevel(logging.ERROR)
    client = AsyncWebClient(BOT_TOKEN, base_url=os.environ["SLACK_API_URL"])
    app: Any = AsyncApp(client=client)

    @app.event("app_mention")
    async def answer(event: dict[str, Any]) -> None:  # pyright: ignore[reportUnusedFunction] - Bolt keeps it
        channel, ts = event["channel"], event["ts"]
        await client.chat_postMessage(channel=channel, thread_ts=ts, text=ANSWER)

    @app.event("message")
    async def ignore() -> None:  # pyright: ignore[reportUnusedFunction] - Bolt keeps it
        return

    await AsyncSocketModeHandler(app, APP_TOKEN).start_async()


if __name__ == "__main__":
    asyncio.run(main())
