"""What comes with a question and is not the user's text: files, embeds, forwards, quoted posts.

It must not decide what is answered. Everything is capped, and every cap is said in the label.
"""

import asyncio
import logging
import re
from collections.abc import Iterable
from dataclasses import replace
from pathlib import PurePath

import discord

from core.types import ContextText, Message

log = logging.getLogger(__name__)

TIMEOUT_S = 10.0
MAX_FILE_BYTES = 1 << 20
MAX_TEXT_CHARS = 6_000
MAX_FILES = 4
_TEXT_SUFFIX = re.compile(
    r"\.(?:txt|md|log|[ct]sv|json|ya?ml|toml|ini|cfg|conf|xml|html?|diff|patch|sql|sh|py|js|ts|go"
    r"|rs|java|[ch]|cpp|rb|php)"
)
_TEXT_TYPES = ("text/", "application/json", "application/xml", "application/yaml")


async def enrich(client: discord.Client, message: Message, me_id: int) -> Message:
    """`message` with what was shown beside it; as it was when Discord does not tell."""
    if target := message.extra.get("target"):
        return replace(message, context=tuple(ContextText(*each) for each in target))
    if not message.extra.get("has_context"):
        return message
    try:
        async with asyncio.timeout(TIMEOUT_S):
            context = await _collect(client, message, me_id)
    except (discord.HTTPException, TimeoutError, OSError) as err:
        log.warning("the context of message %s was not read: %s", message.id, type(err).__name__)
        return message
    return replace(message, context=(*message.context, *context))


async def asked_about(raw: discord.Message) -> list[ContextText]:
    """The message that somebody chose to ask about, whoever wrote it, and what it carries."""
    label = "the message asked about"
    said = f"{raw.author.display_name}: {raw.content}"
    found = [_capped(label, said)] if raw.content.strip() else []
    try:
        async with asyncio.timeout(TIMEOUT_S):
            return found + await _beside(raw, f" in {label}")
    except (discord.HTTPException, TimeoutError, OSError) as err:
        log.warning("what message %s carries was not read: %s", raw.id, type(err).__name__)
        return [*found, ContextText(label, "(what it carries could not be read)")]


async def _collect(client: discord.Client, message: Message, me_id: int) -> list[ContextText]:
    channel_id = int(message.extra["channel"])
    channel = client.get_partial_messageable(channel_id)
    raw = await channel.fetch_message(int(message.id))
    found: list[ContextText] = []
    if message.extra["kind"] == "thread":
        starter = await _starter(client, channel_id, int(message.session.channel))
        if starter is not None and starter.id != raw.id:
            found += await _shown(starter, "the post that opened this thread", me_id)
    resolved = raw.reference.resolved if raw.reference else None
    if raw.type is discord.MessageType.reply and isinstance(resolved, discord.Message):
        found += await _shown(resolved, "the message replied to", me_id)
    found += await _beside(raw, "")
    return found


async def _starter(
    client: discord.Client, thread_id: int, parent_id: int
) -> discord.Message | None:
    """A thread's first post: in the parent channel, or in the thread itself in a forum."""
    for channel_id in (parent_id, thread_id):
        try:
            return await client.get_partial_messageable(channel_id).fetch_message(thread_id)
        except (discord.NotFound, discord.Forbidden):
            continue
        except discord.HTTPException as err:
            # a forum has no messages of its own; the next place may have the post
            log.debug("no first post in %s: %s", channel_id, err.code)
    return None


async def _shown(raw: discord.Message, label: str, me_id: int) -> list[ContextText]:
    """Another message: its text and what it carries. Our own are in the history already."""
    if raw.author.id == me_id:
        return []
    found = [_capped(label, raw.content)] if raw.content.strip() else []
    return found + await _beside(raw, f" in {label}")


async def _beside(raw: discord.Message, where: str) -> list[ContextText]:
    found = [_capped(f"embed{where}", text) for text in embed_texts(raw.embeds)]
    for snapshot in raw.message_snapshots:
        if snapshot.content.strip():
            found.append(_capped(f"forwarded message{where}", snapshot.content))
        texts = embed_texts(snapshot.embeds)
        found += [_capped(f"embed of a forwarded message{where}", text) for text in texts]
    files = [*raw.attachments, *(a for s in raw.message_snapshots for a in s.attachments)]
    for file in files[:MAX_FILES]:
        found.append(await _file(file, where))
    if len(files) > MAX_FILES:
        found.append(ContextText(f"files{where}", f"{len(files) - MAX_FILES} more were not read."))
    return found


async def _file(file: discord.Attachment, where: str) -> ContextText:
    label = f"attachment {file.filename}{where}"
    if not is_text_file(file.filename, file.content_type):
        return ContextText(label, "(not a text file; it was not read)")
    if file.size > MAX_FILE_BYTES:
        return ContextText(label, f"(over {MAX_FILE_BYTES >> 20} MB; it was not read)")
    data = await file.read()
    if b"\x00" in data:
        return ContextText(label, "(not a text file; it was not read)")
    return _capped(label, data.decode("utf-8-sig", errors="replace"))


def is_text_file(name: str, content_type: str | None) -> bool:
    """Whether a file is worth reading; a long paste arrives as message.txt without a type."""
    if content_type is not None and content_type.startswith(_TEXT_TYPES):
        return True
    return _TEXT_SUFFIX.fullmatch(PurePath(name).suffix.lower()) is not None


def embed_texts(embeds: Iterable[discord.Embed]) -> list[str]:
    """The words of each embed that has any."""
    texts: list[str] = []
    for embed in embeds:
        parts = [embed.author.name, embed.title, embed.description]
        parts += [f"{field.name}: {field.value}" for field in embed.fields]
        parts.append(embed.footer.text)
        text = "\n".join(part for part in parts if part)
        texts += [text] if text.strip() else []
    return texts


def _capped(label: str, text: str) -> ContextText:
    if len(text) <= MAX_TEXT_CHARS:
        return ContextText(label, text)
    return ContextText(f"{label} (truncated)", text[:MAX_TEXT_CHARS])
