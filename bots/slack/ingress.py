"""What happens to each Slack event: a message is submitted, everything else goes its own way.

It holds no business rule: core.chat decides. The event listener makes one call to it and nothing
else; all other work runs beside, so that Slack gets its answer in time.
"""

import logging
from collections import OrderedDict
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from bots.slack.api import Identity, SlackApi, SlackFault
from bots.slack.desk import Desk
from bots.slack.events import PLATFORM, BotSaid, Deleted, message_id, read_message
from bots.slack.lookup import metadata
from bots.slack.place import place_of
from bots.slack.settings import SlackSettings
from bots.slack.tasks import Tasks
from bots.text import Command, parse_command
from core.errors import StoreError
from core.types import Conversation, Message

if TYPE_CHECKING:
    from core.chat import Chat

log = logging.getLogger(__name__)

STOP_EMOJI = frozenset({"octagonal_sign", "stop_sign"})
MAX_RECENT = 5_000
REFUSAL = "Sorry, I only answer members of this workspace."
NOT_HERE = "Sorry, I am not set up to answer here."
MUTED = "I will be quiet in this thread until somebody mentions me. Say “unmute” to me to undo it."
UNMUTED = "I am listening in this thread again."
NO_MUTE = "Here I answer whatever you write. In a thread of a channel, “mute” keeps me quiet."
NOT_DONE = "That did not work just now. Please try again in a minute."


class Recent:
    """The newest ids seen, at most `MAX_RECENT`."""

    def __init__(self) -> None:
        self._ids: OrderedDict[str, None] = OrderedDict()

    def add(self, item: str) -> bool:
        """Whether `item` is new."""
        is_new = item not in self._ids
        self._ids[item] = None
        self._ids.move_to_end(item)
        if len(self._ids) > MAX_RECENT:
            self._ids.popitem(last=False)
        return is_new

    def __contains__(self, item: object) -> bool:
        return item in self._ids


class Ingress:
    """One per process. `withdrawn` names the questions that were deleted."""

    def __init__(
        self,
        chat: "Chat",
        api: SlackApi,
        identity: Identity,
        settings: SlackSettings,
        tasks: Tasks,
        desk: Desk,
    ) -> None:
        self._chat = chat
        self._api = api
        self._identity = identity
        self._settings = settings
        self._tasks = tasks
        self._desk = desk
        self._handled = Recent()
        self.withdrawn = Recent()

    async def on_message(self, event: Mapping[str, Any]) -> None:
        """A `message` or `app_mention` event.

        Raises:
            StoreError: it was not accepted; Slack must deliver it again.
        """
        match read_message(event, self._identity):
            case Message() as message:
                await self._on_person(message, str(event.get("type")))
            case Deleted(conversation, deleted_id, is_root):
                self.withdrawn.add(deleted_id)
                await self._chat.withdraw(conversation, deleted_id, is_whole_thread=is_root)
            case BotSaid(conversation, label, text):
                await self._chat.note(conversation, label, text)
            case None:
                log.debug("an event was not for us")

    async def _on_person(self, message: Message, event_type: str) -> None:
        if refusal := self._refusal(message):
            self._once(message, event_type, self._say(message, refusal), "refusing")
            return
        command = None if message.needs_engaged else parse_command(message.text)
        if command is not None:
            self._once(message, event_type, self._command(command, message), "a command")
            return
        await self._chat.submit(message)

    def _refusal(self, message: Message) -> str:
        settings = self._settings
        if message.author.is_outsider and not settings.slack_allow_external:
            return REFUSAL
        channels, users = settings.allowed_channels, settings.allowed_users
        is_allowed_channel = not channels or message.session.channel in channels
        is_allowed_user = not users or message.author.id in users
        return "" if is_allowed_channel and is_allowed_user else NOT_HERE

    def _once(self, message: Message, event_type: str, work: Any, what: str) -> None:
        # A mention comes as two events, maybe to two processes: its `message` is left alone.
        is_first = event_type == "app_mention" or place_of(message).is_dm
        if message.needs_engaged or not is_first or not self._handled.add(message.id):
            work.close()
            return
        self._tasks.start(work, what)

    async def _command(self, command: Command, message: Message) -> None:
        if command in ("mute", "unmute"):
            await self._say(message, await self._mute(message, is_muted=command == "mute"))
        elif command == "memory":
            await self._desk.show_memory(message.session, place_of(message).thread)
        else:
            await self._desk.show_forget(message.session, place_of(message).thread)

    async def _mute(self, message: Message, *, is_muted: bool) -> str:
        if place_of(message).is_dm:
            return NO_MUTE
        try:
            await self._chat.mute(message.conversation, is_muted)
        except StoreError as err:
            log.warning("mute was not saved: %s", err)
            return NOT_DONE
        return MUTED if is_muted else UNMUTED

    async def _say(self, message: Message, text: str) -> None:
        """A notice in the thread. It mentions nobody, and no bot ever gets one."""
        place = place_of(message)
        await self._api.call(
            "chat.postMessage",
            channel=place.channel,
            thread_ts=place.thread,
            text=text,
            metadata=metadata(message.id, "notice"),
        )

    async def on_reaction(self, event: Mapping[str, Any]) -> None:
        """🛑 on a question or its answer, by the asker: its run stops, or never begins."""
        item: Mapping[str, Any] = event.get("item") or {}
        if event.get("reaction") not in STOP_EMOJI or item.get("type") != "message":
            return
        self._tasks.start(
            self._stop_at(str(item["channel"]), str(item["ts"]), str(event["user"])), "stopping"
        )

    async def _stop_at(self, channel: str, ts: str, user: str) -> None:
        if await self._chat.cancel(self._conversation(channel, ts), user):
            return
        # The message may be a follow-up, or an answer that is not known as an alias yet.
        try:
            answer: Any = await self._api.call(
                "conversations.replies", is_patient=False, channel=channel, ts=ts, limit=1
            )
        except SlackFault as fault:
            log.info("the thread of a reaction is not known: %s", fault)
            return
        messages: list[dict[str, Any]] = answer.get("messages", [])
        found = next((message for message in messages if message.get("ts") == ts), None)
        thread = str(found.get("thread_ts") or "") if found else ""
        if not found or not thread or thread == ts:
            return
        conversation = self._conversation(channel, thread)
        if found.get("user") == self._identity.user:
            await self._chat.cancel(conversation, user)
        elif found.get("user") == user:
            # It may wait behind another question, which must not be stopped in its place.
            await self._chat.withdraw(conversation, self.message_id(channel, ts))

    async def on_stop(self, event: Mapping[str, Any]) -> None:
        """The Stop button of the session."""
        channel, thread = event.get("channel"), event.get("thread_ts")
        if channel and thread:
            conversation = self._conversation(str(channel), str(thread))
            await self._chat.cancel(conversation, str(event.get("user") or ""))

    async def on_home(self, event: Mapping[str, Any]) -> None:
        """The App Home tab was opened."""
        if event.get("tab") == "home":
            self._tasks.start(self._desk.publish_home(str(event["user"])), "the home tab")

    def _conversation(self, channel: str, thread: str) -> Conversation:
        return Conversation(PLATFORM, self._identity.team, channel, thread)

    def message_id(self, channel: str, ts: str) -> str:
        """The id under which a message of this workspace is known."""
        return message_id(self._identity, channel, ts)
