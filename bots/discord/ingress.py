"""Decides which Discord messages are for the bot, and turns those into `Message`s.

It must not know Redis or a run: all it says is what something is, `Heard`.
"""

import re
from dataclasses import dataclass
from typing import Literal

import discord

from bots.discord.places import Place
from bots.text import Command, parse_command
from core.types import MAX_MESSAGE_CHARS, Author, Message

WITHOUT_TEXT = "(no text of my own; please look at the message or file shown with this)"
_MENTION = re.compile(r"<@!?(\d+)>")
_ROLE = re.compile(r"<@&(\d+)>")
_CHANNEL = re.compile(r"<#(\d+)>")
_ACCEPTED = (discord.MessageType.default, discord.MessageType.reply)


@dataclass(frozen=True, slots=True)
class Heard:
    """What a message is to the bot.

    `question` has its `message`; `command` its `command`; `note` is another bot's text in one of
    our threads; `blank` a follow-up whose text Discord withheld; `empty` a bare mention.
    """

    kind: Literal["question", "command", "note", "blank", "empty", "nothing"]
    message: Message | None = None
    command: Command | None = None


NOTHING = Heard("nothing")


def hear(raw: discord.Message, place: Place, workspace: str, me: discord.ClientUser) -> Heard:
    """What `raw`, said in `place`, is to the bot `me`."""
    if raw.author.id == me.id or raw.type not in _ACCEPTED:
        return NOTHING
    if raw.author.bot or raw.webhook_id is not None:
        return Heard("note") if place.kind == "own" and raw.content.strip() else NOTHING
    is_addressed = place.kind == "dm" or is_mentioned(raw, me) or _replies_to(raw, me.id) is True
    if not is_addressed:
        is_followup = place.kind == "own" or _replies_to(raw, me.id) is None
        if not is_followup or raw.mentions or raw.role_mentions or raw.mention_everyone:
            return NOTHING
    text = plain_text(raw, me)
    has_more = bool(raw.attachments or raw.embeds or raw.message_snapshots)
    if not text and not has_more:
        if not is_addressed or (raw.reference is not None and not is_mentioned(raw, me)):
            return Heard("blank") if not raw.stickers and raw.poll is None else NOTHING
        has_more = place.kind == "thread" or _quotes(raw, me.id)
        if not has_more:
            return Heard("empty")
    command = parse_command(text) if is_addressed else None
    if command is not None:
        return Heard("command", command=command)
    return Heard("question", _message(raw, place, workspace, me, text, is_addressed=is_addressed))


def is_mentioned(raw: discord.Message, me: discord.ClientUser) -> bool:
    """Whether the bot itself or its managed role is mentioned; @everyone is not the bot."""
    if any(user.id == me.id for user in raw.mentions):
        return True
    own_role = raw.guild.self_role if raw.guild else None
    return own_role is not None and own_role in raw.role_mentions


def plain_text(raw: discord.Message, me: discord.ClientUser) -> str:
    """What was said, without the bot's mention, other mentions as names."""
    own_role = raw.guild.self_role if raw.guild else None
    names = {user.id: user.display_name for user in raw.mentions}
    roles = {role.id: role.name for role in raw.role_mentions}

    def user(match: re.Match[str]) -> str:
        user_id = int(match[1])
        return "" if user_id == me.id else f"@{names.get(user_id, 'someone')}"

    def role(match: re.Match[str]) -> str:
        role_id = int(match[1])
        is_own = own_role is not None and role_id == own_role.id
        return "" if is_own else f"@{roles.get(role_id, 'role')}"

    def channel(match: re.Match[str]) -> str:
        found = raw.guild.get_channel(int(match[1])) if raw.guild else None
        return f"#{found.name}" if found else "#channel"

    text = _MENTION.sub(user, raw.content)
    return _CHANNEL.sub(channel, _ROLE.sub(role, text)).strip()


def _replies_to(raw: discord.Message, me_id: int) -> bool | None:
    """Whether it replies to the bot; None when Discord did not say to whom."""
    if raw.type is not discord.MessageType.reply or raw.reference is None:
        return False
    resolved = raw.reference.resolved
    return resolved.author.id == me_id if isinstance(resolved, discord.Message) else None


def _quotes(raw: discord.Message, me_id: int) -> bool:
    return _replies_to(raw, me_id) is False and raw.reference is not None


def _message(
    raw: discord.Message,
    place: Place,
    workspace: str,
    me: discord.ClientUser,
    text: str,
    *,
    is_addressed: bool,
) -> Message:
    reply_to = (
        raw.reference.message_id
        if raw.type is discord.MessageType.reply and raw.reference
        else None
    )
    has_context = bool(
        raw.attachments
        or raw.embeds
        or raw.message_snapshots
        or place.kind == "thread"
        or _quotes(raw, me.id)
    )
    return Message(
        id=str(raw.id),
        conversation=place.conversation(workspace, raw.id),
        session=place.session(workspace, raw.author.id),
        author=Author(str(raw.author.id), raw.author.display_name),
        text=(text or WITHOUT_TEXT)[:MAX_MESSAGE_CHARS],
        sent_at=raw.created_at.timestamp(),
        reply_to=str(reply_to) if reply_to else None,
        needs_engaged=not is_addressed,
        is_cut=len(text) > MAX_MESSAGE_CHARS,
        extra={
            "channel": str(place.channel),
            "guild": str(place.guild) if place.guild else None,
            "kind": place.kind,
            "has_context": has_context,
        },
    )
