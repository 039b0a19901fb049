"""The thread off an answer: opened once, named from the question, with the trace in it.

It must not know the answer's text.
"""

import asyncio
import logging
from typing import Any

import discord

from bots.discord.posts import CALL_TIMEOUT_S, NO_MENTIONS, buttons_view
from bots.discord.render import thread_name, trace_post
from core.protocols import Ref
from core.types import Message, Run

log = logging.getLogger(__name__)

EXISTS = 160004
NO_PLACE = 50024
TOO_MANY = 160006
MISSING_ACCESS, MISSING_PERMISSIONS = 50001, 50013


class ThreadError(Exception):
    """No thread here; `missing` names the permission to ask for, where it is that."""

    def __init__(self, missing: str | None) -> None:
        super().__init__(missing or "no thread")
        self.missing = missing


class Threads:
    """The thread of one answer. `noted` is its part of the reply's ref."""

    def __init__(self, client: discord.Client, message: Message, ref: Ref | None) -> None:
        self._client = client
        self._message = message
        given = dict(ref or {})
        self._thread = int(given["thread"]) if given.get("thread") else None
        self._has_trace = bool(given.get("trace"))

    @property
    def noted(self) -> dict[str, Any]:
        """JSON-safe: the thread's id, and whether the trace is posted."""
        noted: dict[str, Any] = {"thread": str(self._thread)} if self._thread else {}
        return noted | ({"trace": True} if self._has_trace else {})

    def missing_permission(self) -> str | None:
        """The name of a permission without which no thread can be opened here; None: all there.

        Asked of the cache, so that no request is made only to be refused.
        """
        channel = self._client.get_channel(int(self._message.extra["channel"]))
        if not isinstance(channel, discord.TextChannel):
            return None
        allowed = channel.permissions_for(channel.guild.me)
        if not allowed.create_public_threads:
            return "Create Public Threads"
        return None if allowed.send_messages_in_threads else "Send Messages in Threads"

    async def post_trace(self, run: Run, answer: int | None) -> None:
        """Opens the thread off message `answer` (None: we are in it) and posts the trace there.

        A trace that cannot be posted is logged: it must not stand in the answer's way.

        Raises:
            ThreadError: there can be no thread; the answer needs a button instead.
        """
        try:
            async with asyncio.timeout(CALL_TIMEOUT_S):
                if answer is None:
                    self._thread = int(self._message.extra["channel"])
                elif self._thread is None:
                    await self._open(answer)
                if not self._has_trace and self._thread is not None:
                    await self._send(run, self._thread)
                    self._has_trace = True
        except (discord.HTTPException, OSError, TimeoutError) as err:
            log.warning("the trace of run %s was not posted: %s", run.id, type(err).__name__)
            if self._thread is None:
                raise ThreadError(None) from err

    async def _open(self, answer: int) -> None:
        guild = self._message.extra.get("guild")
        channel = self._client.get_partial_messageable(
            int(self._message.extra["channel"]), guild_id=int(guild) if guild else None
        )
        try:
            thread = await channel.get_partial_message(answer).create_thread(
                name=thread_name(self._message)
            )
            self._thread = thread.id
        except ValueError as err:
            # The library no longer knows the server: the bot was removed from it meanwhile.
            raise ThreadError(None) from err
        except discord.HTTPException as err:
            if err.code == EXISTS:
                # A thread off a message has the message's id.
                self._thread = answer
            elif err.code in (MISSING_ACCESS, MISSING_PERMISSIONS):
                raise ThreadError("Create Public Threads") from err
            elif err.code in (NO_PLACE, TOO_MANY):
                raise ThreadError(None) from err
            else:
                raise

    async def _send(self, run: Run, thread: int) -> None:
        post = trace_post(run)
        more: dict[str, Any] = {}
        if view := buttons_view(post.buttons):
            more["view"] = view
        await self._client.get_partial_messageable(thread).send(
            post.text,
            nonce=f"{self._message.id}-t",
            allowed_mentions=NO_MENTIONS,
            suppress_embeds=True,
            **more,
        )
