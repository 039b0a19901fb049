"""One answer that only the asker sees, in place of a command's "thinking" note.

It must not show the answer to anybody else: when the command's token has run out, the answer goes
to the asker's DMs, and where those are shut only a line without content goes to the channel.
"""

import asyncio
import io
import logging
from typing import Any, cast

import discord

from bots.discord.posts import CALL_TIMEOUT_S, NO_MENTIONS, Wanted, buttons_view
from bots.discord.render import facts_button, finished, streamed, trace_button
from bots.discord.stream import Stream
from core.protocols import Ref
from core.types import Message, Run

log = logging.getLogger(__name__)

EDIT_GAP_S = 1.5
UNKNOWN_WEBHOOK, UNKNOWN_INTERACTION, TOKEN_EXPIRED = 10015, 10062, 50027
_EXPIRED = (UNKNOWN_WEBHOOK, UNKNOWN_INTERACTION, TOKEN_EXPIRED)


class PrivateReply:
    """See `core.protocols.Reply`. `ref` counts the messages that are final."""

    def __init__(
        self, client: discord.Client, message: Message, ref: Ref | None, stale_s: float
    ) -> None:
        self._client = client
        self._message = message
        self._done = int((ref or {}).get("done", 0))
        self._has_begun = ref is not None
        self._text = ""
        self._shown = ""
        self._is_calling = False
        self._stream = Stream(
            self._flush, lambda: self._is_calling, gap_s=EDIT_GAP_S, stale_s=stale_s
        )
        token = message.extra["interaction"]["token"]
        self._original = int(message.extra["interaction"]["message"])
        application = int(message.extra["interaction"]["application"])
        self._webhook = discord.Webhook.partial(application, token, client=client)
        # Only an application's webhook may send what one person sees.
        self._webhook.type = discord.WebhookType.application

    @property
    def ref(self) -> Ref | None:
        """How many messages are final; None before anything is shown."""
        return {"done": self._done} if self._has_begun else None

    async def status(self, text: str) -> None:
        """Discord itself shows that the bot is thinking."""

    async def append(self, delta: str) -> None:
        """More text; an edit follows in its own time."""
        self._text += delta
        self._stream.feed()

    async def reset(self, text: str) -> None:
        """Other text; an edit follows in its own time."""
        self._text = text
        self._stream.feed()

    async def close(self, run: Run) -> None:
        """The whole answer, privately.

        Raises:
            discord.HTTPException, OSError, TimeoutError: Discord failed; it may be repeated.
        """
        await self._stream.end()
        buttons = [*trace_button(run), *facts_button(run)]
        final = finished(run, buttons=buttons)
        try:
            await self._deliver(final)
        except discord.HTTPException as err:
            if err.code not in _EXPIRED:
                raise
            await self._deliver_elsewhere(final)

    async def _deliver(self, final: list[Wanted]) -> None:
        while self._done < len(final):
            want = final[self._done]
            async with asyncio.timeout(CALL_TIMEOUT_S):
                if self._done == 0:
                    await self._edit_original(want)
                else:
                    await self._webhook.send(
                        want.text, ephemeral=True, allowed_mentions=NO_MENTIONS, **_extras(want)
                    )
            self._has_begun = True
            self._done += 1

    async def _edit_original(self, want: Wanted) -> None:
        more: dict[str, Any] = {}
        if want.file is not None:
            more["attachments"] = [discord.File(io.BytesIO(want.file[1]), want.file[0])]
        await self._webhook.edit_message(
            self._original,
            content=want.text,
            view=buttons_view(want.buttons),
            allowed_mentions=NO_MENTIONS,
            **more,
        )

    async def _deliver_elsewhere(self, final: list[Wanted]) -> None:
        """By DM; else a line in the channel that names nobody and says nothing of the answer."""
        asker = discord.Object(int(self._message.author.id))
        try:
            async with asyncio.timeout(CALL_TIMEOUT_S):
                dm = await self._client.create_dm(cast("discord.User", asker))
                for number, want in enumerate(final[self._done :], self._done):
                    nonce = f"{self._message.id}-{number}"
                    await dm.send(
                        want.text, nonce=nonce, allowed_mentions=NO_MENTIONS, **_extras(want)
                    )
                    self._done = number + 1
        except discord.Forbidden:
            channel = self._client.get_partial_messageable(int(self._message.extra["channel"]))
            text = "A private answer here took too long to be shown. Please ask again."
            try:
                async with asyncio.timeout(CALL_TIMEOUT_S):
                    await channel.send(
                        text, nonce=f"{self._message.id}-x", allowed_mentions=NO_MENTIONS
                    )
            except discord.Forbidden:
                log.warning("the private answer to %s has nowhere to go", self._message.id)

    async def _flush(self) -> None:
        # Only the first message can be edited, so a growing text is shown up to its limit.
        parts = streamed(self._text, "")
        if not parts or parts[0].text == self._shown or self._done:
            return
        self._is_calling = True
        try:
            async with asyncio.timeout(CALL_TIMEOUT_S):
                await self._edit_original(parts[0])
        finally:
            self._is_calling = False
        self._shown = parts[0].text
        self._has_begun = True


def _extras(want: Wanted) -> dict[str, Any]:
    more: dict[str, Any] = {}
    if view := buttons_view(want.buttons):
        more["view"] = view
    if want.file is not None:
        more["file"] = discord.File(io.BytesIO(want.file[1]), want.file[0])
    return more
