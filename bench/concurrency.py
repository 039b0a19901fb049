"""Many conversations at once in one process, with a provider that takes a second a reply.

The process answers through the whole of core (inbox, loop, search, the provider's SDK over HTTP);
wall time is compared with the ideal: two model calls of one second, all conversations side by side.
The provider is a small server in a process of its own that sends ready-made streams and checks
nothing (tests/anthropic_server.py checks everything and would itself be the bottleneck).

    python -m bench.concurrency [--conversations 500] [--json]
"""

import argparse
import asyncio
import json
import os
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from core.protocols import Ref
from core.types import Author, Conversation, Message, Run, Session

MODEL_S = 1.0
CALLS = 2
GOAL_RATIO, GOAL_MB = 1.5, 250
TIMEOUT_S = 120.0
QUESTION = "What should I put at the top of my resume?"


class CountingAdapter:
    """Counts answers and keeps nothing else."""

    platform = "bench"
    workspaces: Sequence[str] = ("W1",)

    def __init__(self, wanted: int) -> None:
        self._left = wanted
        self.all_done = asyncio.Event()
        self.reasons: dict[str, int] = {}

    async def enrich(self, message: Message) -> Message:
        return message

    async def open_reply(self, message: Message, ref: Ref | None) -> "CountingReply":
        return CountingReply(self)

    def count(self, run: Run) -> None:
        self.reasons[run.stop_reason.value] = self.reasons.get(run.stop_reason.value, 0) + 1
        self._left -= 1
        if not self._left:
            self.all_done.set()


class CountingReply:
    def __init__(self, adapter: CountingAdapter) -> None:
        self._adapter = adapter
        self._ref: Ref | None = None

    @property
    def ref(self) -> Ref | None:
        return self._ref

    async def status(self, text: str) -> None:
        return None

    async def append(self, delta: str) -> None:
        self._ref = {"posted": True}

    async def reset(self, text: str) -> None:
        return None

    async def close(self, run: Run) -> None:
        self._adapter.count(run)


async def measure(conversations: int, url: str, folder: Path) -> Mapping[str, float]:
    """The figures; runs in a process of its own, so that its peak memory is its own."""
    from core.app import App
    from core.config import Settings

    settings = Settings(
        anthropic_api_key="sk-bench",  # type: ignore[arg-type]
        anthropic_base_url=url,
        data_dir=folder,
        concurrent_runs=conversations,
        search_by_meaning="--words" not in sys.argv,
    )
    app = await App.open(settings)
    await app.library.embed()  # once for a folder; not what is measured here
    adapter = CountingAdapter(conversations)
    stop = asyncio.Event()
    serving = asyncio.create_task(app.serve([adapter], stop))
    try:
        began, cpu = time.monotonic(), time.process_time()
        async with asyncio.timeout(TIMEOUT_S):
            async with asyncio.TaskGroup() as group:
                for number in range(conversations):
                    group.create_task(app.chat.submit(_message(number)))
            await adapter.all_done.wait()
        seconds, cpu = time.monotonic() - began, time.process_time() - cpu
    finally:
        stop.set()
        await serving
        await app.close()
    ideal = MODEL_S * CALLS
    return {
        "conversations": conversations,
        "done": adapter.reasons.get("done", 0),
        "seconds": round(seconds, 2),
        "ratio_to_ideal": round(seconds / ideal, 2),
        "cpu_seconds": round(cpu, 2),
        "peak_mb": round(_peak_mb(), 1),
    }


def _message(number: int) -> Message:
    channel = f"C{number}"
    return Message(
        id=f"m{number}",
        conversation=Conversation("bench", "W1", channel, "T1"),
        session=Session("bench", "W1", channel, "U1"),
        author=Author("U1", "U1"),
        text=QUESTION,
        sent_at=time.time(),
    )


def _peak_mb() -> float:
    import resource

    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / (1 << 20 if sys.platform == "darwin" else 1 << 10)


def _sse(*events: Mapping[str, Any]) -> bytes:
    lines = [f"event: {event['type']}\ndata: {json.dumps(event)}\n\n" for event in events]
    return "".join(lines).encode()


def _reply(block: Mapping[str, Any], deltas: Sequence[Mapping[str, Any]], reason: str) -> bytes:
    """A whole streamed reply of one block."""
    usage = {"input_tokens": 900, "output_tokens": 40}
    message = {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": "claude-haiku-5-5",
        "content": [],
        "stop_reason": None,
        "stop_sequence": None,
        "usage": usage,
    }
    return _sse(
        {"type": "message_start", "message": message},
        {"type": "content_block_start", "index": 0, "content_block": block},
        *({"type": "content_block_delta", "index": 0, "delta": delta} for delta in deltas),
        {"type": "content_block_stop", "index": 0},
        {
            "type": "message_delta",
            "delta": {"stop_reason": reason, "stop_sequence": None},
            "usage": {"output_tokens": 40},
        },
        {"type": "message_stop"},
    )


CALL = _reply(
    {"type": "tool_use", "id": "toolu_1", "name": "search_docs", "input": {}},
    [{"type": "input_json_delta", "partial_json": json.dumps({"query": QUESTION})}],
    "tool_use",
)
ANSWER = _reply(
    {"type": "text", "text": ""},
    [{"type": "text_delta", "text": "Your name, and how to reach you. "} for _ in range(10)],
    "end_turn",
)


async def serve() -> None:
    """Answers each request a second later: first with a call, then with text."""

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(asyncio.IncompleteReadError, ConnectionError):
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).lower()
                length = int(head.split(b"content-length:")[1].split(b"\r\n")[0])
                body = await reader.readexactly(length)
                await asyncio.sleep(MODEL_S)
                stream = ANSWER if b'"tool_result"' in body else CALL
                writer.write(
                    b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n"
                    b"Content-Length: %d\r\n\r\n" % len(stream) + stream
                )
                await writer.drain()
        writer.close()

    server = await asyncio.start_server(handle, "127.0.0.1", 0, backlog=2048)
    host, port = server.sockets[0].getsockname()
    print(json.dumps({"url": f"http://{host}:{port}"}), flush=True)
    await server.serve_forever()


async def _start_server() -> tuple[asyncio.subprocess.Process, str]:
    server = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "bench.concurrency", "--serve"), stdout=asyncio.subprocess.PIPE
    )
    assert server.stdout is not None
    return server, str(json.loads(await server.stdout.readline())["url"])


async def run(conversations: int) -> Mapping[str, float]:
    """Starts the provider and the measured process, each on its own."""
    server, url = await _start_server()
    try:
        with tempfile.TemporaryDirectory(prefix="fn-bench-") as folder:
            measured = await asyncio.create_subprocess_exec(
                sys.executable,
                "-m",
                "bench.concurrency",
                "--measure",
                url,
                folder,
                "--conversations",
                str(conversations),
                *(["--words"] if "--words" in sys.argv else []),
                stdout=asyncio.subprocess.PIPE,
                env=os.environ | {"LOG_LEVEL": "ERROR"},
            )
            out, _ = await measured.communicate()
            return json.loads(out)
    finally:
        server.terminate()
        await server.wait()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--conversations", type=int, default=500)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--words", action="store_true", help="search by words alone")
    parser.add_argument("--measure", nargs=2, metavar=("URL", "FOLDER"), help=argparse.SUPPRESS)
    parser.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    known = parser.parse_args()
    if known.serve:
        asyncio.run(serve())
        return
    if known.measure:
        url, folder = known.measure
        print(json.dumps(asyncio.run(measure(known.conversations, url, Path(folder)))))
        return
    figures = asyncio.run(run(known.conversations))
    if known.json:
        print(json.dumps(figures))
        return
    for name, value in figures.items():
        print(f"{name:20} {value:>10}")
    print(f"goals: ratio ≤ {GOAL_RATIO}, peak ≤ {GOAL_MB} MB")


if __name__ == "__main__":
    main()
