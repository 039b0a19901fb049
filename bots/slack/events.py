"""Reads Slack's events: which message is for the bot, whose it is, what it says.

Pure functions; it must not know Redis, the Web API, or what happens to a message.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from bots.slack.api import Identity
from bots.slack.markup import is_mentioned, mentions_others, plain_text
from bots.slack.place import note
from core.types import MAX_MESSAGE_CHARS, Author, Conversation, Message, Session

PLATFORM = "slack"
MAX_FILES, MAX_NAMED_FILES = 5, 20
MAX_QUOTE_CHARS = 4_000
_SAID = frozenset({None, "file_share", "thread_broadcast", "me_message"})

Event = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Deleted:
    """A message that is gone; with `is_root` the whole thread went with it."""

    conversation: Conversation
    message_id: str
    is_root: bool


@dataclass(frozen=True, slots=True)
class BotSaid:
    """What another bot said in a thread; `label` names it."""

    conversation: Conversation
    label: str
    text: str


def message_id(identity: Identity, channel: str, ts: str) -> str:
    """Equal for each delivery of a message, in whatever event it comes."""
    return f"{identity.team}/{channel}/{ts}"


def read_message(event: Event, identity: Identity) -> Message | Deleted | BotSaid | None:
    """What an event of type `message` or `app_mention` means; None when it is not for us.

    A mention arrives as both types with one timestamp: the same Message comes of both. Edits,
    joins, previews and our own posts are None.
    """
    channel = str(event.get("channel") or "")
    subtype = event.get("subtype")
    if not channel:
        return None
    if subtype == "message_deleted":
        return _read_deleted(event, identity, channel)
    if _is_bot(event):
        return _read_bot(event, identity, channel)
    if subtype not in _SAID or not event.get("user") or not event.get("ts"):
        return None
    return _read_person(event, identity, channel)


def _read_person(event: Event, identity: Identity, channel: str) -> Message | None:
    raw = str(event.get("text") or "")
    ts = str(event["ts"])
    thread = str(event.get("thread_ts") or ts)
    is_dm = event.get("channel_type") == "im" or channel.startswith("D")
    is_mention = is_mentioned(raw, identity.user)
    is_reply = thread != ts
    if not (is_dm or is_mention or is_reply):
        return None
    if not is_dm and not is_mention and mentions_others(raw):
        return None
    text = plain_text(raw, identity.user)
    files = _files(event)
    quoted = visible_text({**event, "text": "", "blocks": []})
    if not text and not (files or quoted or (is_mention and is_reply)):
        return None
    user = str(event["user"])
    team = str(event.get("user_team") or event.get("source_team") or identity.team)
    extra = note(event, team, files, is_mention=is_mention or (is_dm and not is_reply))
    if quoted:
        extra["quoted"] = quoted[:MAX_QUOTE_CHARS]
    # Without words of its own a message points at what it came with.
    text = text or ("(see the attached file)" if files else "(see the message above)")
    return Message(
        id=message_id(identity, channel, ts),
        conversation=Conversation(PLATFORM, identity.team, channel, thread),
        session=Session(PLATFORM, identity.team, channel, user),
        author=Author(user, user, is_outsider=team not in (identity.team, identity.enterprise)),
        text=text[:MAX_MESSAGE_CHARS],
        sent_at=float(ts),
        needs_engaged=not (is_dm or is_mention),
        is_cut=len(text) > MAX_MESSAGE_CHARS,
        extra=extra,
    )


def _read_deleted(event: Event, identity: Identity, channel: str) -> Deleted | None:
    previous = cast("Event", event.get("previous_message") or {})
    ts = str(event.get("deleted_ts") or previous.get("ts") or "")
    thread = str(previous.get("thread_ts") or ts)
    if not ts or (_is_bot(previous) and thread != ts):
        return None
    conversation = Conversation(PLATFORM, identity.team, channel, thread)
    return Deleted(conversation, message_id(identity, channel, ts), is_root=thread == ts)


def _read_bot(event: Event, identity: Identity, channel: str) -> BotSaid | None:
    thread, ts = event.get("thread_ts"), event.get("ts")
    is_own = identity.user == event.get("user") or identity.bot == event.get("bot_id", "")
    if is_own or not thread or thread == ts or event.get("type") == "app_mention":
        return None
    if event.get("subtype") not in (*_SAID, "bot_message"):
        return None
    text = plain_text(visible_text(event), identity.user)
    if not text:
        return None
    conversation = Conversation(PLATFORM, identity.team, channel, str(thread))
    return BotSaid(conversation, f"message of the app {bot_name(event)}", text)


def _is_bot(event: Event) -> bool:
    return bool(
        event.get("bot_id")
        or event.get("subtype") == "bot_message"
        or event.get("user") == "USLACKBOT"
    )


def bot_name(event: Event) -> str:
    """The name of an app that posted, for display."""
    profile = cast("Event", event.get("bot_profile") or {})
    return str(event.get("username") or profile.get("name") or "unknown")


def visible_text(message: Event) -> str:
    """Everything a message shows as text: its own, its blocks', its attachments'.

    Alerts often have an empty `text` and say all in blocks or attachments.
    """
    found: list[str] = [str(message.get("text") or "")]
    found += _texts(message.get("blocks") or [])
    for attachment in cast("Sequence[Event]", message.get("attachments") or []):
        parts = [str(attachment.get(key) or "") for key in ("pretext", "title", "text")]
        for item in cast("Sequence[Event]", attachment.get("fields") or []):
            parts.append(f"{item.get('title', '')}: {item.get('value', '')}")
        parts += _texts(attachment.get("blocks") or attachment.get("message_blocks") or [])
        found += parts if any(parts) else [str(attachment.get("fallback") or "")]
    lines = [line.strip() for line in found if line.strip()]
    # `text` often repeats what the blocks say.
    return "\n".join(dict.fromkeys(lines))


def _texts(value: Any) -> list[str]:
    if isinstance(value, list):
        return [text for item in cast("list[Any]", value) for text in _texts(item)]
    if not isinstance(value, dict):
        return []
    item = cast("dict[str, Any]", value)
    own = item.get("text")
    if isinstance(own, str):
        return [own]
    if item.get("type") in ("rich_text_section", "rich_text_preformatted", "rich_text_quote"):
        return ["".join(_inline(part) for part in item.get("elements", []))]
    keys = ("text", "title", "fields", "elements", "child_blocks", "message", "blocks")
    return [text for key in keys for text in _texts(item.get(key))]


def _inline(part: Mapping[str, Any]) -> str:
    kind = part.get("type")
    if kind in ("text", "link"):
        return str(part.get("text") or part.get("url") or "")
    if kind in ("user", "channel"):
        return f"<{'@' if kind == 'user' else '#'}{part.get(f'{kind}_id', '')}>"
    return str(part.get("name") or "")


def _files(event: Event) -> list[dict[str, Any]]:
    """What a message came with; the first MAX_FILES with the address where they can be read."""
    files = cast("Sequence[Event]", event.get("files") or [])
    return [
        {
            "name": str(item.get("name") or "file"),
            "type": str(item.get("mimetype") or ""),
            "size": int(item.get("size") or 0),
            "url": _address(item) if place < MAX_FILES else "",
        }
        for place, item in enumerate(files[:MAX_NAMED_FILES])
    ]


def _address(file: Event) -> str:
    return str(file.get("url_private_download") or file.get("url_private") or "")
