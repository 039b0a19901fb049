"""A run as JSON, and as the turn of history that remains of it.

It must not know where either is kept.
"""

import json
import re
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from core.guard import redact
from core.history import Turn
from core.run_state import change_from_json, step_to_json
from core.types import Message, Run, Source, Step, StopReason, Usage

_MARK = re.compile(r" ?\[\d{1,3}\](?!\()")


def run_to_json(run: Run) -> str:
    """A run for its record; what is not ours in it is redacted already, its text here."""
    data: dict[str, Any] = {
        "id": run.id,
        "text": redact(run.text),
        "sources": [asdict(source) for source in run.sources],
        "trace": [step_to_json(step) | {"summary": step.summary} for step in run.trace],
        "turns": run.turns,
        "stop_reason": run.stop_reason.value,
        "usage": asdict(run.usage),
        "cost_usd": run.cost_usd,
        "started_at": run.started_at,
        "duration_ms": run.duration_ms,
        "facts_saved": [asdict(change) for change in run.facts_saved],
        "model": run.model,
        "note": run.note,
        "is_gap": run.is_gap,
    }
    return json.dumps(data, ensure_ascii=False)


def run_from_json(text: str) -> Run:
    """The inverse of `run_to_json`."""
    data: Mapping[str, Any] = json.loads(text)
    return Run(
        id=data["id"],
        text=data["text"],
        sources=tuple(Source(**source) for source in data["sources"]),
        trace=tuple(Step(**step) for step in data["trace"]),
        turns=data["turns"],
        stop_reason=StopReason(data["stop_reason"]),
        usage=Usage(**data["usage"]),
        cost_usd=data["cost_usd"],
        started_at=data["started_at"],
        duration_ms=data["duration_ms"],
        facts_saved=tuple(change_from_json(change) for change in data["facts_saved"]),
        model=data["model"],
        note=data["note"],
        is_gap=data["is_gap"],
    )


def turn_of(message: Message, run: Run) -> Turn | None:
    """What history keeps: text only, no secrets, no citation marks; None for a blank question.

    An answer that was cut short says so, so that no later run takes it for a complete one.
    """
    text = redact(message.text.strip())
    if not text:
        return None
    answer = _MARK.sub("", redact(run.text.strip()))
    if run.stop_reason is not StopReason.DONE:
        answer = f"{answer}\n\n(This answer was cut short: {run.stop_reason.value}.)".strip()
    return Turn(
        author_id=message.author.id,
        author_name=message.author.name,
        text=text,
        answer=answer,
        run_id=run.id,
        at=message.sent_at,
    )
