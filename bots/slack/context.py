"""Fills in what a question points at: the thread it was asked in, files, the asker's name.

Read when a run starts, never at accept. Whatever cannot be read is left out, and said in the log.
"""

import asyncio
import logging
import time
from collections import OrderedDict
from collections.abc import Coroutine
from dataclasses import replace
from typing import Any
from urllib.parse import urlsplit

from bots.slack.api import Identity, SlackApi, SlackFault
from bots.slack.events import bot_name, visible_text
from bots.slack.markup import plain_text
from bots.slack.place import Place, place_of
from core.types import ContextText, Message

log = logging.getLogger(__name__)

READ_TIMEOUT_S = 4.0
"""An answer does not wait longer for what it can do without."""
MAX_FILE_BYTES = 64 * 1024
"""Of all files of a question together: twice as much uses up the tokens allowed for it."""
MAX_CONTEXT_CHARS = 8_000
MAX_THREAD_MESSAGES = 50
PAGE_MESSAGES = 1_000
"""As many as a page may hold: it begins with the oldest, and the newest are those wanted."""
NAME_TTL_S = 3_600.0
MAX_NAMES = 2_000
_TEXT_TYPES = ("application/json", "application/xml", "application/x-yaml", "application/yaml")
_TEXT_ENDINGS = (".txt", ".md", ".log", ".csv", ".json", ".yaml", ".yml", ".toml", ".ini", ".py")


class Context:
    """One per process; remembers people's names for an hour."""

    def __init__(self, api: SlackApi, identity: Identity) -> None:
        self._api = api
        self._identity = identity
        self._names: OrderedDict[str, tuple[str, float]] = OrderedDict()

    async def enrich(self, message: Message) -> Message:
        """`message` with its author's name and everything that it refers to."""
        files: list[dict[str, Any]] = message.extra.get("files", [])
        (name, thread), attached = await asyncio.gather(
            asyncio.gather(self._name(message.author.id), self._thread(message)),
            self._files(files),
        )
        quoted = str(message.extra.get("quoted") or "")
        quotes = (
            [ContextText("a message quoted by the user", self._plain(quoted))] if quoted else []
        )
        context = (*message.context, *thread, *quotes, *attached)
        return replace(message, author=replace(message.author, name=name), context=context)

    def _plain(self, text: str) -> str:
        return plain_text(text, self._identity.user)

    async def _name(self, user: str) -> str:
        known = self._names.get(user)
        if known and known[1] > time.monotonic():
            return known[0]
        try:
            answer: Any = await self._api.call(
                "users.info", is_patient=False, timeout_s=READ_TIMEOUT_S, user=user
            )
        except SlackFault as fault:
            log.info("the name of a user is not known: %s", fault)
            return user
        profile: dict[str, Any] = answer["user"].get("profile", {})
        found = (
            profile.get("display_name") or profile.get("real_name") or answer["user"].get("name")
        )
        name = " ".join(str(found or user).split())[:80]
        self._names[user] = (name, time.monotonic() + NAME_TTL_S)
        if len(self._names) > MAX_NAMES:
            self._names.popitem(last=False)
        return name

    async def _thread(self, message: Message) -> list[ContextText]:
        """What others said in a thread that the bot is mentioned in; its own part is history."""
        place = place_of(message)
        if not message.extra.get("is_mention") or place.thread == place.question:
            return []
        try:
            answer: Any = await self._api.call(
                "conversations.replies",
                is_patient=False,
                timeout_s=READ_TIMEOUT_S,
                channel=place.channel,
                ts=place.thread,
                latest=place.question,
                limit=PAGE_MESSAGES,
            )
        except SlackFault as fault:
            log.warning("the thread of a mention cannot be read: %s", fault)
            return []
        messages: list[dict[str, Any]] = answer.get("messages", [])
        return self._relevant(messages, place)

    def _relevant(self, messages: list[dict[str, Any]], place: Place) -> list[ContextText]:
        before = [m for m in messages if float(m["ts"]) < float(place.question)]
        own = [m for m in before if m.get("user") == self._identity.user]
        since = float(own[-1]["ts"]) if own else 0.0
        room = MAX_CONTEXT_CHARS
        found: list[ContextText] = []
        root = [m for m in before if m["ts"] == place.thread]
        others = [m for m in before if m["ts"] != place.thread and float(m["ts"]) > since]
        for message in [*root, *reversed(others[-MAX_THREAD_MESSAGES:])]:
            text = self._plain(visible_text(message))
            if (
                not text
                or message in own
                or (message in root and message.get("user") == place.user)
            ):
                continue
            by = f"the app {bot_name(message)}" if message.get("bot_id") else "somebody"
            where = "first message of this thread" if message in root else "message in this thread"
            kept = text[: max(room, 0)]
            room -= len(kept)
            if kept:
                cut = " (truncated)" if len(kept) < len(text) else ""
                found.append(ContextText(f"{where}, by {by}{cut}", kept))
        # The newest were taken first, while there was room; they are read in order.
        count = len([item for item in found if item.label.startswith("first")])
        return [*found[:count], *reversed(found[count:])]

    async def _files(self, files: list[dict[str, Any]]) -> list[ContextText]:
        room = MAX_FILE_BYTES
        reading: list[Coroutine[Any, Any, ContextText]] = []
        for file in files:
            limit = room if self._is_readable(file) else 0
            room -= min(int(file["size"]), limit)
            reading.append(self._file(file, limit))
        return await asyncio.gather(*reading)

    def _is_readable(self, file: dict[str, Any]) -> bool:
        is_text = str(file["type"]).startswith("text/") or file["type"] in _TEXT_TYPES
        is_text = is_text or str(file["name"]).lower().endswith(_TEXT_ENDINGS)
        return is_text and self._is_slack(file["url"])

    async def _file(self, file: dict[str, Any], limit: int) -> ContextText:
        """At most `limit` bytes of a file, or its name alone where that is 0."""
        name, size = str(file["name"])[:100], int(file["size"])
        if not limit:
            return ContextText(f"attachment {name} (not read)", f"{name}, {size:,} bytes")
        try:
            data, is_cut = await self._api.download(file["url"], limit)
        except SlackFault as fault:
            log.warning("an attachment cannot be read: %s", fault)
            return ContextText(f"attachment {name} (could not be read)", f"{name}, {size:,} bytes")
        cut = " (truncated)" if is_cut else ""
        return ContextText(f"attachment {name}{cut}", data.decode("utf-8", "replace"))

    def _is_slack(self, url: str) -> bool:
        """The token goes to Slack's own hosts alone, whatever a message claims as a file's URL."""
        file, api = urlsplit(url), urlsplit(str(self._api.client.base_url))
        host = file.hostname or ""
        is_own = file.scheme == "https" and host.endswith((".slack.com", ".slack-files.com"))
        return is_own or (file.scheme, file.netloc) == (api.scheme, api.netloc)
