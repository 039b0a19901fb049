"""Where in Slack an answer goes, and the JSON-safe note by which a message remembers it.

It must not know how anything is posted there.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from core.types import Message


@dataclass(frozen=True, slots=True)
class Place:
    """A thread, the question in it, and for whom the answer is (the person's own team)."""

    channel: str
    thread: str
    question: str
    user: str
    team: str

    @property
    def is_dm(self) -> bool:
        """Direct messages need no recipient."""
        return self.channel.startswith("D")


def place_of(message: Message) -> Place:
    """The place that `note` wrote into the message's `extra`."""
    extra = message.extra
    return Place(
        channel=message.conversation.channel,
        thread=str(extra["thread"]),
        question=str(extra["ts"]),
        user=message.author.id,
        team=str(extra["team"]),
    )


def note(
    event: Mapping[str, Any], team: str, files: list[dict[str, Any]], *, is_mention: bool
) -> dict[str, Any]:
    """What a message must carry for its answer: thread, own timestamp, the person's team, files."""
    ts = str(event["ts"])
    return {
        "ts": ts,
        "thread": str(event.get("thread_ts") or ts),
        "team": team,
        "files": files,
        "is_mention": is_mention,
    }
