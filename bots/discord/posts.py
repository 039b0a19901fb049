"""The messages of one answer: sent once each, edited in place, found again after a takeover.

It must not know what they say. A repeated send is harmless, because each has a nonce made from
the question and its number; when that is too old to help, the question's replies are looked up.
"""

import asyncio
import io
import logging
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import discord

from bots.discord.pace import Pace
from core.protocols import Ref
from core.types import Message

log = logging.getLogger(__name__)

CALL_TIMEOUT_S = 30.0
NONCE_TRUSTED_S = 120.0
LOOK_BACK = 100
NO_MENTIONS = discord.AllowedMentions.none()
UNKNOWN_MESSAGE, ARCHIVED, LOCKED, NO_HISTORY = 10008, 50083, 160005, 160002


class Undeliverable(Exception):
    """Discord refuses for good: the channel is gone, or the bot may not write there."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """What one message should be. `buttons` are pairs of custom_id and label."""

    text: str
    buttons: tuple[tuple[str, str], ...] = ()
    file: tuple[str, bytes] | None = None


@dataclass(slots=True)
class _Post:
    """A message that exists; `shown` is None where another process wrote it."""

    id: int
    shown: Wanted | None


def buttons_view(buttons: Sequence[tuple[str, str]]) -> discord.ui.View | None:
    """A view with these (custom_id, label) buttons; clicks are told apart by their custom_id."""
    if not buttons:
        return None
    view = discord.ui.View(timeout=None)
    for custom_id, label in buttons:
        view.add_item(discord.ui.Button(custom_id=custom_id, label=label))
    # Clicks are routed by their id, so the library need not keep the view.
    view.stop()
    return view


class Posts:
    """The answer's messages in `channel`, oldest first."""

    def __init__(
        self,
        client: discord.Client,
        pace: Pace,
        message: Message,
        ref: Ref | None,
        on_post: Callable[[int], None],
    ) -> None:
        self._client = client
        self._pace = pace
        self._message = message
        self._on_post = on_post
        self._is_taken_over = ref is not None
        self._has_looked = False
        self._is_reply_refused = False
        self._epoch = 0
        given: Mapping[str, Any] = ref or {}
        self.channel = int(given.get("channel") or message.extra["channel"])
        self._posts = [_Post(int(post), None) for post in given.get("posts", ())]
        self.is_calling = False

    @property
    def ids(self) -> list[int]:
        """The messages posted so far."""
        return [post.id for post in self._posts]

    async def show(
        self,
        render: Callable[[], Sequence[Wanted]],
        *,
        is_final: bool,
        is_over: Callable[[], bool] = lambda: False,
    ) -> None:
        """Sends and edits until the messages are what `render` wants, or `is_over`.

        `render` is asked again before each call, so that the newest text wins.

        Raises:
            Undeliverable: for good.
            discord.HTTPException, OSError, TimeoutError: this time; it may be repeated.
        """
        while (number := self._first_stale(render())) is not None:
            kind = "edit" if number < len(self._posts) else "send"
            await self._pace.turn(f"{kind} {self.channel}", is_final=is_final)
            if is_over():
                return
            wanted = render()
            number = self._first_stale(wanted)
            if number is None:
                return
            self.is_calling = True
            try:
                async with asyncio.timeout(CALL_TIMEOUT_S):
                    await self._apply(number, wanted[number])
            finally:
                self.is_calling = False

    async def trim(self, count: int) -> None:
        """Deletes messages beyond the first `count`, left from a longer text."""
        while len(self._posts) > count:
            post = self._posts.pop()
            await self._delete(post.id)

    def _first_stale(self, wanted: Sequence[Wanted]) -> int | None:
        for number, want in enumerate(wanted):
            if number >= len(self._posts) or self._posts[number].shown != want:
                return number
        return None

    async def _apply(self, number: int, want: Wanted) -> None:
        if not self._posts and not self._is_taken_over and not self._has_looked:
            self._has_looked = True
            if time.time() - self._message.sent_at > NONCE_TRUSTED_S:
                self._posts = [_Post(found, None) for found in await self._find_earlier()]
        if number < len(self._posts):
            await self._edit(self._posts[number], want)
        else:
            await self._send(number, want)

    async def _find_earlier(self) -> list[int]:
        """Our reply to the question, from a process that died before it could say so."""
        question = discord.Object(int(self._message.id))
        channel = self._client.get_partial_messageable(self.channel)
        me = self._client.user
        try:
            async for raw in channel.history(limit=LOOK_BACK, after=question, oldest_first=True):
                is_ours = me is not None and raw.author.id == me.id and raw.reference is not None
                if is_ours and raw.reference and raw.reference.message_id == question.id:
                    return [raw.id]
        except discord.Forbidden:
            log.warning("no permission to read the history of channel %s", self.channel)
        return []

    async def _send(self, number: int, want: Wanted) -> None:
        guild = self._message.extra.get("guild")
        channel = self._client.get_partial_messageable(
            self.channel, guild_id=int(guild) if guild else None
        )
        more: dict[str, Any] = {}
        is_here = self.channel == int(self._message.extra["channel"])
        if number == 0 and is_here and not self._is_reply_refused:
            more["reference"] = discord.MessageReference(
                message_id=int(self._message.id), channel_id=self.channel, fail_if_not_exists=False
            )
        if view := buttons_view(want.buttons):
            more["view"] = view
        if want.file is not None:
            more["file"] = _file(want.file)
        try:
            sent = await channel.send(
                want.text,
                nonce=f"{self._message.id}-{number}{'r' * self._epoch}"[:25],
                allowed_mentions=NO_MENTIONS,
                mention_author=False,
                suppress_embeds=True,
                **more,
            )
        except (discord.Forbidden, discord.NotFound) as err:
            if err.code == LOCKED and self._move_to_parent():
                return
            raise Undeliverable(f"code {err.code}") from err
        except discord.HTTPException as err:
            if err.code != NO_HISTORY or self._is_reply_refused:
                raise
            # Replying needs the permission to read the history; speaking does not.
            self._is_reply_refused = True
            return
        self._on_post(sent.id)
        post = _Post(sent.id, want)
        self._posts.append(post)
        if sent.content.strip() != want.text.strip():
            # The nonce was known: this is the message of a process that died.
            post.shown = None

    def _move_to_parent(self) -> bool:
        """A thread was locked meanwhile: the answer goes to its channel."""
        parent = int(self._message.session.channel)
        if self.channel == parent:
            return False
        self.channel = parent
        self._posts.clear()
        self._epoch += 1
        return True

    async def _edit(self, post: _Post, want: Wanted) -> None:
        channel = self._client.get_partial_messageable(self.channel)
        more: dict[str, Any] = {}
        if want.file is not None:
            more["attachments"] = [_file(want.file)]
        try:
            await channel.get_partial_message(post.id).edit(
                content=want.text,
                view=buttons_view(want.buttons),
                allowed_mentions=NO_MENTIONS,
                **more,
            )
        except discord.HTTPException as err:
            if err.code == ARCHIVED:
                # Only a new message opens an archived thread again; nonces start afresh with it.
                stale = [each.id for each in self._posts]
                self._posts.clear()
                self._epoch += 1
                await self._send(0, want)
                for old in stale:
                    await self._delete(old)
                return
            if err.code != UNKNOWN_MESSAGE:
                if isinstance(err, discord.Forbidden):
                    raise Undeliverable(f"code {err.code}") from err
                raise
            log.info("message %s was deleted by somebody; it stays deleted", post.id)
        post.shown = want

    async def _delete(self, message_id: int) -> None:
        channel = self._client.get_partial_messageable(self.channel)
        try:
            async with asyncio.timeout(CALL_TIMEOUT_S):
                await channel.get_partial_message(message_id).delete()
        except (discord.HTTPException, OSError, TimeoutError) as err:
            log.warning("message %s could not be deleted: %s", message_id, type(err).__name__)


def _file(named: tuple[str, bytes]) -> discord.File:
    return discord.File(io.BytesIO(named[1]), filename=named[0])
