"""How an answer was found: a collapsed reply for everyone, a full view for the asker alone.

It must not know how the answer itself is posted.
"""

import json
import logging
from collections.abc import Mapping
from typing import Any

from bots.slack.api import SlackApi, SlackFault
from bots.slack.blocks import TRACE, Block, button, context, plain, section
from bots.slack.lookup import metadata
from bots.slack.place import Place
from bots.text import defuse_slack, footer, trace_line, trace_title
from core.types import Run, Step

log = logging.getLogger(__name__)

STEPS_PER_CONTAINER = 10
MAX_STEPS = 60
MAX_VIEW_STEPS = 40
MAX_VIEW_CHARS = 12_000
MAX_FIELD_CHARS = 2_900
MAX_PLAIN_CHARS = 3_500
CUT = " … (cut)"


async def post_trace(api: SlackApi, place: Place, message_id: str, run: Run) -> str | None:
    """The trace's timestamp, or None when no form of it could be posted: never an error.

    Tried in order: collapsed containers, an attachment (which Slack folds), plain text.
    """
    title, lines = trace_title(run), _lines(run)
    text = "\n".join(lines)[:MAX_PLAIN_CHARS]
    forms: list[Mapping[str, Any]] = [
        {"text": title, "blocks": _containers(run, title, lines)},
        {"text": title, "attachments": [{"text": defuse_slack(text), "fallback": title}]},
        {"text": defuse_slack(f"{title}\n{text}")},
    ]
    for form in forms:
        try:
            answer = await api.call(
                "chat.postMessage",
                channel=place.channel,
                thread_ts=place.thread,
                metadata=metadata(message_id, "trace"),
                unfurl_links=False,
                unfurl_media=False,
                **form,
            )
        except SlackFault as fault:
            log.warning("a form of the trace was refused: %s", fault)
            if fault.code == "connection":
                # It may stand there already: better no trace than two.
                return None
        else:
            return await _kept(api, place, answer)
    return None


async def _kept(api: SlackApi, place: Place, answer: Mapping[str, Any]) -> str | None:
    """The timestamp of what was posted, unless its thread is gone: then it is taken away."""
    ts, message = str(answer["ts"]), answer.get("message")
    if not message or message.get("thread_ts") == place.thread:
        return ts
    try:
        await api.call("chat.delete", channel=place.channel, ts=ts)
    except SlackFault as fault:
        log.warning("a trace without its thread stays behind: %s", fault)
    return None


def _lines(run: Run) -> list[str]:
    lines = [trace_line(step) for step in run.trace[:MAX_STEPS]]
    left_out = len(run.trace) - len(lines)
    return [*lines, f"… and {left_out} more steps"] if left_out > 0 else lines


def _containers(run: Run, title: str, lines: list[str]) -> list[Block]:
    chunks = [
        lines[at : at + STEPS_PER_CONTAINER] for at in range(0, len(lines), STEPS_PER_CONTAINER)
    ]
    blocks: list[Block] = [
        {
            "type": "container",
            "title": plain(title if index == 0 else f"Trace, part {index + 1}", 150),
            "is_collapsible": True,
            "default_collapsed": True,
            "child_blocks": [context(line) for line in chunk],
        }
        for index, chunk in enumerate(chunks)
    ]
    details = button("Full trace", TRACE, run.id)
    return [*blocks, {"type": "actions", "elements": [details]}]


def trace_view(run: Run | None) -> Block:
    """A modal with inputs and outputs of every step; why not, when the run is not the asker's."""
    if run is None:
        blocks = [section("Only whoever asked can open this trace, and only for some days.")]
    else:
        blocks = _view_blocks(run)
    return {
        "type": "modal",
        "title": plain("Trace", 24),
        "close": plain("Close", 24),
        "blocks": blocks,
    }


def _view_blocks(run: Run) -> list[Block]:
    steps = run.trace[:MAX_VIEW_STEPS]
    room = min(MAX_FIELD_CHARS, MAX_VIEW_CHARS // max(len(steps), 1) - 200)
    blocks = [context(f"{footer(run)} · {run.model}".rstrip(" ·"))]
    for step in steps:
        blocks += _step_blocks(step, room)
    if len(run.trace) > len(steps):
        blocks.append(context(f"… and {len(run.trace) - len(steps)} more steps"))
    return blocks


def _step_blocks(step: Step, room: int) -> list[Block]:
    from core.guard import redact

    asked = redact(json.dumps(dict(step.input), ensure_ascii=False))
    outcome = "error" if step.is_error else "ok"
    given = redact(step.output)
    return [
        section(
            f"{step.turn} · {step.tool} · {outcome} · {step.ms:,} ms\n{_cut(asked, room // 3)}"
        ),
        context(_cut(given, min(room * 2 // 3, 1_400))),
    ]


def _cut(text: str, limit: int) -> str:
    return text if len(text) <= limit else text[: max(limit - len(CUT), 0)] + CUT
