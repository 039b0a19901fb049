"""A reply under the lease: asks before it posts, saves where it posted, survives a bad stream.

It must not know any platform: a `Reply` renders.
"""

import asyncio
import logging
import time
from typing import Any, cast

from core.errors import StoreError
from core.inbox import Inbox
from core.lease import Held
from core.protocols import Adapter, Ref, Reply
from core.types import Message, Run
from core.work import LeaseLost

log = logging.getLogger(__name__)

POST_TIMEOUT_S = 30.0
CLOSE_TIMEOUT_S = 180.0
BLIND_S = 5.0
"""How long Redis is not asked again after it could not be."""


class Delivery:
    """Wraps the adapter's reply. Everything but `close` may fail: `close` carries it all again."""

    def __init__(self, inbox: Inbox, held: Held) -> None:
        self._inbox = inbox
        self._held = held
        self._reply: Reply | None = None
        self._saved_ref: Ref | None = held.taken.ref
        self._blind_until = 0.0
        self._is_closed = False

    @property
    def is_open(self) -> bool:
        """Whether there is a reply to close."""
        return self._reply is not None

    @property
    def aliases(self) -> tuple[str, ...]:
        """The ids of what was posted, which the conversation is known by from now on."""
        ref = self._reply.ref if self._reply is not None else None
        ids = cast("list[Any]", ref.get("aliases", [])) if ref else []
        return tuple(str(item) for item in ids)

    async def open(self, adapter: Adapter, message: Message, timeout_s: float) -> None:
        """Opens the adapter's reply, or finds what another process had begun.

        Raises:
            LeaseLost: another worker has the message.
        """
        async with asyncio.timeout(timeout_s):
            self._reply = await adapter.open_reply(message, self._held.taken.ref)

    async def status(self, text: str) -> None:
        """Shows what is going on until the reply is closed; a failure is logged alone."""
        if self._is_closed:
            return
        await self._post("status", text)

    async def append(self, delta: str) -> None:
        """Streams more of the answer; a failure is logged, `close` has the whole text."""
        await self._post("append", delta)

    async def reset(self, text: str) -> None:
        """Replaces what was streamed."""
        await self._post("reset", text)

    async def close(self, run: Run) -> None:
        """Finishes the reply, under the lease; whatever fails here is the caller's to retry."""
        reply = self._opened()
        await self._ask()
        async with asyncio.timeout(CLOSE_TIMEOUT_S):
            await reply.close(run)
        self._is_closed = True

    async def _post(self, what: str, text: str) -> None:
        reply = self._opened()
        await self._ask()
        try:
            async with asyncio.timeout(POST_TIMEOUT_S):
                await getattr(reply, what)(text)
        except Exception:
            log.exception("run %s: %s failed", self._held.taken.run_id, what)
        if reply.ref != self._saved_ref:
            await self._save_ref(reply)

    async def _ask(self) -> None:
        """Asks Redis whether the message is still ours, unless the lease cannot have run out.

        A Redis that cannot be asked has no say: nobody else can take the message from it either,
        and an answer that people wait for is worth more than the chance that only we are cut off.
        """
        now = time.monotonic()
        if self._held.is_fresh or now < self._blind_until:
            return
        try:
            if not await self._inbox.owns(self._held.taken):
                raise LeaseLost
        except StoreError:
            self._blind_until = now + BLIND_S

    async def _save_ref(self, reply: Reply) -> None:
        self._saved_ref = reply.ref
        if self._saved_ref is None:
            return
        try:
            await self._inbox.save_ref(self._held.taken, self._saved_ref, self.aliases)
        except StoreError as err:
            log.warning(
                "run %s: where it was posted is not saved: %s", self._held.taken.run_id, err
            )

    def _opened(self) -> Reply:
        if self._reply is None:
            raise RuntimeError("the reply is not open")
        return self._reply
