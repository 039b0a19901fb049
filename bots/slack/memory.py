"""What people see of their own memory: the list, the preview of forgetting, the result, the Home.

It renders and reads button values; it must not know how memory is kept.
"""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from bots.slack.blocks import Block, button, context, plain, section
from core.types import Session

DELETE_FACT = "fact_delete"
FORGET_CHANNEL, FORGET_EVERYWHERE, FORGET_CANCEL = "forget_channel", "forget_everywhere", "cancel"
MAX_HOME_BLOCKS = 95

NOTHING_KEPT = "I remember nothing about you here."
HOW = "Tell me to remember something, as in: remember that I prefer remote jobs."


@dataclass(frozen=True, slots=True)
class Counts:
    """How much there is to forget, or was forgotten, by kind."""

    facts: int
    turns: int
    others: int
    is_complete: bool = True

    @property
    def words(self) -> str:
        """`3 facts, 1 question with its answer and 2 internal records`."""
        items = [
            f"{number} {one if number == 1 else many}"
            for number, one, many in (
                (self.facts, "fact", "facts"),
                (self.turns, "question with its answer", "questions with their answers"),
                (self.others, "internal record", "internal records"),
            )
            if number
        ]
        if not items:
            return "nothing"
        return items[0] if len(items) == 1 else f"{', '.join(items[:-1])} and {items[-1]}"


def fact_id(session: Session, key: str, value: str) -> str:
    """An opaque name for one fact with its value: it changes with the value, and tells neither."""
    parts = (session.workspace, session.channel, session.user, key, value)
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:24]


def memory_blocks(session: Session, facts: Mapping[str, str]) -> list[Block]:
    """The list of a session's facts, each with its delete button."""
    if not facts:
        return [section(NOTHING_KEPT), context(HOW)]
    rows = [_fact_row(session, key, value) for key, value in facts.items()]
    return [section("What I remember about you here:"), *rows, context("Only you can see this.")]


def home_view(
    known: Sequence[tuple[Session, Mapping[str, str]]], everywhere: Counts, notice: str = ""
) -> Block:
    """The App Home tab: a user's sessions with their facts, what is kept, the way to forget all.

    `notice` stands on top: the Home has no other place to say how a button's work went.
    """
    blocks: list[Block] = []
    for session, facts in known:
        if facts:
            blocks += [{"type": "divider"}, _where(session)]
            blocks += [_fact_row(session, key, value) for key, value in facts.items()]
    if not blocks:
        blocks += [section("Nothing so far."), context(HOW)]
    elif len(blocks) > MAX_HOME_BLOCKS:
        blocks = [*blocks[: MAX_HOME_BLOCKS - 1], context("… and more; /memory lists a channel.")]
    blocks.append(context(f"In this whole workspace I keep {everywhere.words} of yours."))
    return _home([section(notice), *blocks] if notice else blocks)


def unread_home(notice: str) -> Block:
    """The App Home tab while memory cannot be read: `notice` says so."""
    return _home([section(notice)])


def _home(blocks: Sequence[Block]) -> Block:
    header: Block = {"type": "header", "text": plain("What I remember about you", 150)}
    forget: Block = {
        "type": "actions",
        "elements": [_forget_button("Forget everything", FORGET_EVERYWHERE)],
    }
    return {"type": "home", "blocks": [header, *blocks, forget]}


def forget_blocks(here: Counts, everywhere: Counts) -> list[Block]:
    """The private preview: what each scope would delete, with buttons that ask once more."""
    buttons = [
        _forget_button("Forget this channel", FORGET_CHANNEL),
        _forget_button("Forget everywhere", FORGET_EVERYWHERE),
        button("Cancel", FORGET_CANCEL, FORGET_CANCEL),
    ]
    return [
        section(
            f"In this channel and its threads I keep {here.words} of yours.\n"
            f"In this whole workspace: {everywhere.words}."
        ),
        {"type": "actions", "elements": buttons},
        context("Only you can see this. What is forgotten cannot be brought back."),
    ]


def forgotten_text(counts: Counts, scope: str) -> str:
    """The true result, also when it is not the one that was hoped for."""
    where = "in this channel and its threads" if scope == "channel" else "in this whole workspace"
    if counts.is_complete:
        return f"Forgotten {where}: {counts.words}."
    return (
        f"I could not forget everything {where}: so far {counts.words}, and the rest is still "
        "there. Please try again in a minute."
    )


def _fact_row(session: Session, key: str, value: str) -> Block:
    name = f"{session.channel}/{fact_id(session, key, value)}"
    delete = button("Delete", DELETE_FACT, name, confirm=f"Forget “{key}”?", is_danger=True)
    return section(f"{key}: {value}", delete)


def _where(session: Session) -> Block:
    if session.channel.startswith("D"):
        return context("In direct messages with me")
    # Made of Slack's own id, so that people see the channel's name.
    channel = "".join(char for char in session.channel if char.isalnum())
    return {"type": "context", "elements": [{"type": "mrkdwn", "text": f"In <#{channel}>"}]}


def _forget_button(label: str, action: str) -> Block:
    confirm = "This deletes it for good: facts, questions and the answers to them."
    return button(label, action, action, confirm=confirm, is_danger=True)
