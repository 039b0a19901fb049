"""The forms that messages have in Redis, and how a worker's reply becomes a Taken.

It must not talk to Redis.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import fields, replace
from typing import Any, cast
from urllib.parse import unquote

from core.history import turn_from_data
from core.memory import facts_from_reply
from core.types import Author, ContextText, Conversation, Message, Session
from core.work import DeadLetter, Phase, Taken

_MESSAGE_FIELDS = frozenset(field.name for field in fields(Message))


def message_to_json(message: Message) -> str:
    """One line of JSON."""
    return json.dumps(message, default=_fields, ensure_ascii=False, separators=(",", ":"))


def _fields(value: Any) -> dict[str, Any]:
    """A dataclass or mapping within a message, for the encoder (asdict would copy all deeply)."""
    if isinstance(value, Mapping):
        return dict(cast("Mapping[str, Any]", value))
    return {name: getattr(value, name) for name in value.__dataclass_fields__}


def message_from_json(raw: str | bytes) -> Message:
    """The inverse of `message_to_json`."""
    # A newer version may have queued it, before this one was put back in its place.
    data: dict[str, Any] = {
        name: value for name, value in json.loads(raw).items() if name in _MESSAGE_FIELDS
    }
    data["conversation"] = Conversation(**data["conversation"])
    data["session"] = Session(**data["session"])
    data["author"] = Author(**data["author"])
    data["context"] = tuple(ContextText(**text) for text in data["context"])
    return Message(**data)


def item_parts(message: Message) -> tuple[str, str]:
    """What an inbox item is made of: its first line but for the time, and the message."""
    names = [message.id, message.session.user, message.session.key]
    return json.dumps(names, ensure_ascii=False)[1:], message_to_json(message)


def message_from_item(item: bytes, conversation: str) -> Message:
    """The message of an inbox item, in the conversation (its key) that it belongs to."""
    message = message_from_json(item.split(b"\n", 1)[1])
    channel, _, thread = conversation.partition("/")
    where = replace(message.conversation, channel=unquote(channel), thread=unquote(thread))
    return replace(message, conversation=where)


def taken_from_reply(head: Sequence[Any]) -> Taken | None:
    """A head as the scripts return it; None for one that is empty or lost."""
    if head[0] != b"item":
        return None
    _, conversation, entry, lease, item, state, checkpoint, ref, final, facts, turns, notes = head
    run_id, phase, attempts, elapsed, epoch, cancel = state.decode().split(" ")
    return Taken(
        message=message_from_item(item, conversation.decode()),
        run_id=run_id,
        phase=cast("Phase", phase),
        checkpoint=checkpoint.decode() or None,
        ref=cast("Mapping[str, Any]", json.loads(ref)) if ref else None,
        final=final.decode() or None,
        attempts=int(attempts),
        elapsed_ms=int(elapsed),
        is_cancelled=cancel == "1",
        epoch=int(epoch),
        facts=facts_from_reply(facts),
        turns=tuple(turn_from_data(turn) for turn in json.loads(turns)),
        notes=tuple(ContextText(*note) for note in json.loads(notes)),
        entry=entry.decode(),
        lease=lease.decode(),
    )


def letter_from_json(raw: bytes) -> DeadLetter:
    """A dead letter as it is kept."""
    data = json.loads(raw)
    return DeadLetter(
        id=data["id"],
        at=data["at"] / 1000,
        reason=data["reason"],
        attempts=data["attempts"],
        message=message_from_item(data["item"].encode(), data["conversation"]),
    )
