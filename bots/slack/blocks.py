"""Block Kit for answers: footer, feedback, saved facts; each within Slack's limits.

Everything that a person or a document may have written goes into plain_text objects, in which
Slack parses no mention.
"""

from collections.abc import Sequence
from typing import Any

from bots.text import close_fence, footer, source_lines
from core.types import FactChange, Run, StopReason

Block = dict[str, Any]

MAX_SECTION = 3_000
MAX_CONTEXT = 1_500
MAX_BUTTON = 75
FEEDBACK, TRACE, UNDO = "feedback", "trace", "undo"


def plain(text: str, limit: int = MAX_SECTION) -> Block:
    """A plain_text object of at most `limit` characters."""
    text = text.strip() or "–"
    return {"type": "plain_text", "text": text if len(text) <= limit else text[: limit - 1] + "…"}


def section(text: str, accessory: Block | None = None) -> Block:
    """A paragraph of plain text, with a button beside it where one is given."""
    block: Block = {"type": "section", "text": plain(text)}
    return {**block, "accessory": accessory} if accessory else block


def context(*lines: str) -> Block:
    """Small grey text."""
    return {"type": "context", "elements": [plain(line, MAX_CONTEXT) for line in lines[:10]]}


def button(
    label: str, action: str, value: str, *, confirm: str = "", is_danger: bool = False
) -> Block:
    """A button; with `confirm` Slack asks that question first."""
    block: Block = {
        "type": "button",
        "text": plain(label, MAX_BUTTON),
        "action_id": action,
        "value": value,
    }
    if is_danger:
        block["style"] = "danger"
    if confirm:
        block["confirm"] = {
            "title": plain("Are you sure?", 100),
            "text": plain(confirm, 300),
            "confirm": plain("Yes", 30),
            "deny": plain("No", 30),
        }
    return block


def answer_text(run: Run) -> str:
    """The answer's Markdown: text, sources, and a note about what could not be done."""
    body = close_fence(run.text.strip()) or run.stop_reason.sentence
    pieces = [body]
    if run.sources:
        pieces.append("**Sources**\n" + "\n".join(source_lines(run.sources)))
    if run.note:
        pieces.append(f"_{run.note}_")
    return "\n\n".join(pieces)


def answer_blocks(run: Run) -> list[Block]:
    """What stands below an answer: saved facts by key alone, the footer, thumbs."""
    line = footer(run)
    if not run.text.strip():
        line = line.removeprefix(run.stop_reason.sentence).strip()
    keys = ", ".join(change.key for change in run.facts_saved)
    lines = [f"Remembered: {keys}", line] if keys else [line]
    blocks = [context(*lines)]
    if run.stop_reason is not StopReason.ERROR:
        blocks.append({"type": "context_actions", "elements": [_feedback(run.id)]})
    return blocks


def _feedback(run_id: str) -> Block:
    def thumb(label: str, value: str) -> Block:
        return {"text": plain(label, MAX_BUTTON), "value": f"{value}/{run_id}"}

    return {
        "type": "feedback_buttons",
        "action_id": FEEDBACK,
        "positive_button": thumb("Good answer", "good"),
        "negative_button": thumb("Bad answer", "bad"),
    }


def saved_blocks(run_id: str, changes: Sequence[FactChange]) -> list[Block]:
    """For the owner's eyes alone: each fact saved, with its Undo."""
    return [
        section(
            f"I will remember {change.key}: {change.value}",
            button("Undo", f"{UNDO}/{index}", f"{run_id}/{change.key}"),
        )
        for index, change in enumerate(changes[:20])
    ]
