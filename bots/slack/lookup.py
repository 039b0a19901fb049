"""Finds what was posted for a question before, by the metadata that every post of ours carries.

It must not know what is done with it, nor keep anything between two questions.
"""

import logging
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from bots.slack.api import Identity, SlackApi, SlackFault
from bots.slack.place import Place

log = logging.getLogger(__name__)

Kind = Literal["answer", "trace", "notice"]
MAX_MESSAGES = 200
READ_TIMEOUT_S = 4.0


@dataclass(frozen=True, slots=True)
class Found:
    """`answers`: timestamp → whether it is a stream still open; `trace`: its timestamp."""

    answers: Mapping[str, bool] = field(default_factory=dict[str, bool])
    trace: str | None = None


def metadata(message_id: str, kind: Kind) -> dict[str, Any]:
    """What a post carries: the question it is for. Any app in the workspace can read it."""
    return {"event_type": "footnote", "event_payload": {"message_id": message_id, "kind": kind}}


async def find_posts(api: SlackApi, place: Place, message_id: str, identity: Identity) -> Found:
    """Our posts for this question, newer than it; nothing when the thread cannot be read."""
    try:
        answer: Any = await api.call(
            "conversations.replies",
            channel=place.channel,
            ts=place.thread,
            oldest=place.question,
            include_all_metadata=True,
            limit=MAX_MESSAGES,
        )
    except SlackFault as fault:
        log.warning("what was posted before cannot be looked up: %s", fault)
        return Found()
    answers: dict[str, bool] = {}
    trace: str | None = None
    messages: list[dict[str, Any]] = answer.get("messages", [])
    for message in messages:
        ts = str(message["ts"])
        is_own = identity.user == message.get("user") or identity.bot == message.get("bot_id", "")
        if not is_own or float(ts) <= float(place.question):
            continue
        note: dict[str, Any] | None = message.get("metadata")
        if not note:
            # A stream gets its metadata when it stops: without any it is still open, and as a
            # thread's answers come one after the other, it is this question's.
            answers[ts] = True
            continue
        payload: dict[str, Any] = note.get("event_payload", {})
        if payload.get("message_id") != message_id:
            continue
        if payload.get("kind") == "trace":
            trace = ts
        elif payload.get("kind") == "answer":
            answers[ts] = False
    return Found(answers, trace)


async def is_deleted(api: SlackApi, place: Place) -> bool:
    """Whether the question is gone from its thread; False where Slack does not tell.

    A root that has replies leaves a tombstone.
    """
    try:
        answer: Any = await api.call(
            "conversations.replies",
            is_patient=False,
            timeout_s=READ_TIMEOUT_S,
            channel=place.channel,
            ts=place.thread,
            oldest=place.question,
            latest=place.question,
            inclusive=True,
            limit=MAX_MESSAGES,
        )
    except SlackFault as fault:
        return fault.code in ("thread_not_found", "message_not_found")
    messages: list[dict[str, Any]] = answer.get("messages", [])
    return not any(
        message["ts"] == place.question and message.get("subtype") != "tombstone"
        for message in messages
    )
