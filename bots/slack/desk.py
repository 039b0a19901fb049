"""Commands and buttons: memory, forgetting, undo, full traces, thumbs; answered privately.

Whoever presses acts on what is their own: every session here is made of the presser's id, so a
button that somebody else got hold of does nothing to its owner.
"""

import asyncio
import logging
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import aiohttp

from bots.slack.api import Identity, SlackApi, SlackFault
from bots.slack.blocks import FEEDBACK, TRACE, UNDO, Block
from bots.slack.events import PLATFORM
from bots.slack.memory import (
    DELETE_FACT,
    FORGET_CANCEL,
    FORGET_CHANNEL,
    FORGET_EVERYWHERE,
    Counts,
    fact_id,
    forget_blocks,
    forgotten_text,
    home_view,
    memory_blocks,
    unread_home,
)
from bots.slack.trace import trace_view
from core.errors import StoreError
from core.forget import ForgetReport, Scope
from core.types import Session

if TYPE_CHECKING:
    from core.chat import Chat

log = logging.getLogger(__name__)

RESPOND_TIMEOUT_S = 10.0
FAILED = "That did not work just now, because my memory is not reachable. Please try again."
NOT_RATED = "Only whoever asked can rate this answer, and only for some days."

Payload = Mapping[str, Any]


class Desk:
    """One per process."""

    def __init__(self, chat: "Chat", api: SlackApi, identity: Identity) -> None:
        self._chat = chat
        self._api = api
        self._identity = identity

    # Asked for ---------------------------------------------------------------------------------

    async def on_command(self, body: Payload) -> None:
        """`/memory` or `/forget` in a channel."""
        session = self._session(str(body["channel_id"]), str(body["user_id"]))
        is_forget = str(body["command"]).endswith("forget")
        await self._respond_with(body, self._forget(session) if is_forget else self._list(session))

    async def on_shortcut(self, body: Payload) -> None:
        """The message menu's way to forget, for threads, where slash commands do not work."""
        session = self._session(str(body["channel"]["id"]), str(body["user"]["id"]))
        await self._respond_with(body, self._forget(session))

    async def show_memory(self, session: Session, thread: str) -> None:
        """The list, for the session's user alone, in a thread."""
        await self._show(session, thread, self._list(session))

    async def show_forget(self, session: Session, thread: str) -> None:
        """The preview, for the session's user alone, in a thread."""
        await self._show(session, thread, self._forget(session))

    async def publish_home(self, user: str, notice: str = "") -> None:
        """The Home tab of `user`, as memory is now, with `notice` on top."""
        try:
            view = await self._home(user, notice)
        except StoreError as err:
            log.warning("the Home tab cannot be filled: %s", err)
            view = unread_home(notice or FAILED)
        await self._api.call("views.publish", user_id=user, view=view)

    # Pressed -----------------------------------------------------------------------------------

    async def on_action(self, body: Payload) -> None:
        """A button was pressed: in a message, in a private answer, or in the Home tab."""
        action: Payload = body["actions"][0]
        name, value = str(action["action_id"]).split("/")[0], str(action.get("value") or "")
        user = str(body["user"]["id"])
        # A button in the Home tab has no channel; what it may do names its own.
        place: Payload = body.get("channel") or {}
        session = self._session(str(place.get("id") or ""), user)
        try:
            await self._act(name, value, session, body)
        except StoreError as err:
            log.warning("a button could not do its work: %s", err)
            if body.get("view"):
                await self.publish_home(user, FAILED)
            else:
                await self._respond(body, FAILED, is_new=True)

    async def _act(self, name: str, value: str, session: Session, body: Payload) -> None:
        if name == TRACE:
            run = await self._chat.run_of(session, value)
            await self._api.call("views.open", trigger_id=body["trigger_id"], view=trace_view(run))
        elif name == FEEDBACK:
            thumb, _, run_id = value.partition("/")
            is_kept = await self._chat.feedback(session, run_id, thumb == "good")
            await self._respond(body, "Thank you, noted." if is_kept else NOT_RATED, is_new=True)
        elif name == UNDO:
            run_id, _, key = value.partition("/")
            is_undone = await self._chat.undo(session, run_id, key)
            done = f"Undone: I no longer keep “{key}” from this answer."
            gone = f"There is nothing to undo: “{key}” has changed since, or is gone."
            await self._respond(body, done if is_undone else gone, is_new=True)
        elif name == DELETE_FACT:
            await self._delete(value, session, body)
        elif name in (FORGET_CHANNEL, FORGET_EVERYWHERE):
            scope: Scope = "channel" if name == FORGET_CHANNEL else "everywhere"
            counts = _counts(await self._chat.forget(session, scope))
            text = forgotten_text(counts, scope)
            if body.get("view"):
                await self.publish_home(session.user, text)
            else:
                await self._respond(body, text)
        elif name == FORGET_CANCEL:
            await self._respond(body, "Nothing was forgotten.")

    async def _delete(self, value: str, presser: Session, body: Payload) -> None:
        channel, _, wanted = value.partition("/")
        session = self._session(channel, presser.user)
        facts = await self._chat.facts(session)
        for key, fact in facts.items():
            if fact_id(session, key, fact.value) == wanted:
                await self._chat.delete_fact(session, key, _digest(fact.value))
                break
        if body.get("view"):
            await self.publish_home(presser.user)
        else:
            blocks = memory_blocks(session, await self._values(session))
            await self._respond(body, "What I remember", blocks)

    # Shown -------------------------------------------------------------------------------------

    async def _list(self, session: Session) -> list[Block]:
        return memory_blocks(session, await self._values(session))

    async def _home(self, user: str, notice: str) -> Block:
        sessions, kept = await asyncio.gather(
            self._chat.sessions(PLATFORM, self._identity.team, user),
            self._chat.forget_preview(self._session("", user), "everywhere"),
        )
        facts = await asyncio.gather(*(self._values(session) for session in sessions))
        return home_view(list(zip(sessions, facts, strict=True)), _counts(kept), notice)

    async def _forget(self, session: Session) -> list[Block]:
        here, everywhere = await asyncio.gather(
            self._chat.forget_preview(session, "channel"),
            self._chat.forget_preview(session, "everywhere"),
        )
        return forget_blocks(_counts(here), _counts(everywhere))

    async def _values(self, session: Session) -> dict[str, str]:
        facts = await self._chat.facts(session)
        return {key: fact.value for key, fact in facts.items()}

    async def _respond_with(self, body: Payload, blocks: Any) -> None:
        try:
            await self._respond(body, "Your memory", await blocks, is_new=True)
        except StoreError as err:
            log.warning("a command could not do its work: %s", err)
            await self._respond(body, FAILED, is_new=True)

    async def _show(self, session: Session, thread: str, blocks: Any) -> None:
        shown: dict[str, Any] = {"text": FAILED}
        try:
            shown = {"text": "Your memory", "blocks": await blocks}
        except StoreError as err:
            log.warning("a command could not do its work: %s", err)
        await self._api.call(
            "chat.postEphemeral",
            channel=session.channel,
            user=session.user,
            thread_ts=thread,
            **shown,
        )

    async def _respond(
        self, body: Payload, text: str, blocks: list[Block] | None = None, *, is_new: bool = False
    ) -> None:
        """Answer privately: in place of what was pressed, or as a new message."""
        url = body.get("response_url")
        if not url:
            return
        payload: dict[str, Any] = {"text": text, "response_type": "ephemeral"}
        payload |= {"replace_original": False} if is_new else {"replace_original": True}
        payload |= {"blocks": blocks} if blocks else {}
        try:
            async with asyncio.timeout(RESPOND_TIMEOUT_S):
                async with self._api.session.post(str(url), json=payload) as response:
                    if response.status != 200:
                        log.warning("a private answer was refused: HTTP %d", response.status)
        except (aiohttp.ClientError, OSError, TimeoutError) as err:
            raise SlackFault("response_url", "connection") from err

    def _session(self, channel: str, user: str) -> Session:
        return Session(PLATFORM, self._identity.team, channel, user)


def _counts(report: ForgetReport) -> Counts:
    others = report.total - report.facts - report.turns
    return Counts(report.facts, report.turns, others, report.is_complete)


def _digest(value: str) -> str:
    from core.memory import value_digest

    return value_digest(value)
