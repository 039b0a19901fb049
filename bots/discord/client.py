"""The bot in Discord: takes events, hands questions to core, lets people cancel and mute.

It must not render answers (reply.py) nor decide what a message is (ingress.py).
"""

import asyncio
import logging
from dataclasses import replace
from typing import Any
from weakref import WeakValueDictionary

import discord

from bots.discord.adapter import DiscordAdapter
from bots.discord.catchup import CatchUp
from bots.discord.commands import Commands, make_tree
from bots.discord.gate import REFUSAL, Gate
from bots.discord.ingress import NOTHING, Heard, hear
from bots.discord.intents import make_intents
from bots.discord.places import Place, find_place, place_of
from bots.discord.posts import NO_MENTIONS
from bots.discord.recent import Recent
from bots.discord.settings import DiscordSettings
from bots.discord.sync import sync
from bots.text import Command
from core.chat import Chat
from core.errors import StoreError
from core.types import Conversation, Message

log = logging.getLogger(__name__)

STOP = "🛑"
MUTED, UNMUTED = "🔇", "🔔"
SUBMIT_RETRIES_S = (0.5, 1.0, 2.0, 4.0, 8.0, 15.0)
USAGE = "Ask me something, and I will look it up in the documents."
PRIVATE_COMMAND = "Please use `/{name}` here: only you will see what it shows."
MUTE_NOT_HERE = "Here nobody but you writes to me, so I answer all of it and cannot be muted."
MUTE_WHERE = "Please say that in the thread, or in a reply to my answer."
NOT_TAKEN = "I could not take your question just now. Please ask again in a minute."
BLANK = "I can only read messages that mention me here. Please mention me each time."


class FootnoteClient(discord.AutoShardedClient):
    """discord.py's client with Footnote's events. `adapter` is what core renders with."""

    def __init__(
        self, chat: Chat, settings: DiscordSettings, *, has_content: bool = True, **options: Any
    ) -> None:
        super().__init__(
            intents=make_intents(has_content=has_content),
            allowed_mentions=NO_MENTIONS,
            member_cache_flags=discord.MemberCacheFlags.none(),
            max_messages=None,
            **options,
        )
        self.tree = make_tree(self, self._commands)
        self.adapter = DiscordAdapter(self, settings.lease_s)
        self.gate = Gate(self, settings.guild_ids)
        self._chat = chat
        self._settings = settings
        self._asked = Recent[int, Conversation](5_000)
        self._told_blank = Recent[int, bool](1_000)
        self._mute_warned = Recent[int, bool](1_000)
        self._catch_up = CatchUp(self, settings, self.take_late)
        self._locks = WeakValueDictionary[int, asyncio.Lock]()
        self.is_paused = False
        self.connected = asyncio.Event()

    @property
    def workspace(self) -> str:
        """The application's id."""
        return str(self.application_id)

    async def setup_hook(self) -> None:
        """Before the gateway: the commands, written to Discord only when they changed."""
        await sync(self.tree)

    def _commands(self) -> Commands:
        return Commands(self._chat, self.gate, self.workspace)

    async def on_connect(self) -> None:
        """The gateway took us; servers are still coming in, but answers need not wait for them."""
        self.connected.set()

    async def on_ready(self) -> None:
        """At the start, and after a gap that the gateway could not replay."""
        await self._catch_up.run()

    async def on_message(self, raw: discord.Message) -> None:
        """A message as it happens, each channel's in their order, which a resume may hurry."""
        lock = self._locks.setdefault(raw.channel.id, asyncio.Lock())
        async with lock:
            await self.take(raw)

    async def take(self, raw: discord.Message) -> None:
        """A message: submitted, obeyed, kept as a note or answered with a line, as it needs."""
        heard, place = await self._hear(raw)
        if place is None or heard.kind == "nothing":
            return
        if heard.kind == "note":
            if await self.gate.admits(place.guild, raw.author.id):
                await self._note(raw, place)
            return
        if not self._may_answer(raw, place):
            return
        if not await self.gate.admits(place.guild, raw.author.id):
            is_asked = heard.message is None or not heard.message.needs_engaged
            if is_asked and self.gate.may_refuse(place.channel):
                await self._say(raw, REFUSAL)
            return
        await self._act(raw, place, heard)

    async def take_late(self, raw: discord.Message) -> None:
        """A message from the time the bot was away, or from before that.

        A question is claimed only once; everything else would be said or done again at each
        start, but for a mute that nobody has confirmed yet.
        """
        heard, place = await self._hear(raw)
        is_open = heard.command in ("mute", "unmute") and not any(r.me for r in raw.reactions)
        if place is None or not (heard.message or is_open) or not self._may_answer(raw, place):
            return
        if await self.gate.admits(place.guild, raw.author.id):
            await self._act(raw, place, heard)

    async def _hear(self, raw: discord.Message) -> tuple[Heard, Place | None]:
        if self.user is None or self.is_paused or raw.author.id == self.user.id:
            return NOTHING, None
        place = await self._place(raw)
        if place is None:
            return NOTHING, None
        return hear(raw, place, self.workspace, self.user), place

    async def _act(self, raw: discord.Message, place: Place, heard: Heard) -> None:
        if heard.message is not None:
            await self._submit(raw, heard.message)
        elif heard.command is not None:
            await self._command(raw, place, heard.command)
        elif heard.kind == "empty":
            await self._say(raw, USAGE)
        elif heard.kind == "blank":
            if not self._told_blank.get(0):
                self._told_blank.put(0, True)
                log.warning(
                    "a follow-up came without its text: the message-content intent is off, so "
                    "people must mention the bot each time"
                )
            if not self._told_blank.get(place.channel):
                self._told_blank.put(place.channel, True)
                await self._say(raw, BLANK)

    async def _place(self, raw: discord.Message) -> Place | None:
        if not isinstance(raw.channel, discord.PartialMessageable):
            return place_of(raw.channel, self)
        guild_id = raw.guild.id if raw.guild else None
        try:
            return await find_place(self, raw.channel.id, guild_id)
        except (discord.HTTPException, OSError) as err:
            log.warning("channel %s could not be looked up: %s", raw.channel.id, type(err).__name__)
            return None

    def _may_answer(self, raw: discord.Message, place: Place) -> bool:
        """Whether the bot may write here; refused requests in numbers get an address banned."""
        channel = raw.channel
        if not isinstance(channel, discord.Thread | discord.abc.GuildChannel):
            return True
        try:
            allowed = channel.permissions_for(channel.guild.me)
        except discord.ClientException:
            # a thread whose parent is not in the cache: Discord itself will say
            return True
        is_thread = isinstance(channel, discord.Thread)
        if allowed.send_messages_in_threads if is_thread else allowed.send_messages:
            return True
        if not self._mute_warned.get(place.channel):
            self._mute_warned.put(place.channel, True)
            name = "Send Messages in Threads" if is_thread else "Send Messages"
            log.warning("no answer in channel %s: the permission %r is missing", channel.id, name)
        return False

    async def _submit(self, raw: discord.Message, message: Message) -> None:
        """Hands it to core; Discord delivers nothing twice, so patience is ours."""
        known = self._known(int(message.conversation.thread), int(message.reply_to or 0))
        if known is not None:
            message = replace(message, conversation=known)
        for pause_s in (*SUBMIT_RETRIES_S, None):
            try:
                accepted = await self._chat.submit(message)
            except StoreError as err:
                if pause_s is None:
                    log.warning("message %s was not accepted: %s", message.id, err)
                    await self._say(raw, NOT_TAKEN)
                    return
                await asyncio.sleep(pause_s)
                continue
            if accepted.outcome in ("queued", "duplicate"):
                self._asked.put(raw.id, accepted.conversation)
            return

    def _known(self, *ids: int) -> Conversation | None:
        """The conversation of one of our posts or of a question, as this process knows it."""
        for each in ids:
            if found := self.adapter.desk.posted.get(each) or self._asked.get(each):
                return found
        return None

    async def _note(self, raw: discord.Message, place: Place) -> None:
        """Another bot's words in our thread: context for the next person's question."""
        label = f"{raw.author.display_name} (a bot)"
        try:
            conversation = place.conversation(self.workspace, raw.id)
            await self._chat.note(conversation, label, raw.content)
        except StoreError as err:
            log.warning("another bot's message was not kept: %s", err)

    async def _command(self, raw: discord.Message, place: Place, command: Command) -> None:
        if command in ("forget", "memory"):
            await self._say(raw, PRIVATE_COMMAND.format(name=command))
            return
        if place.kind == "dm":
            await self._say(raw, MUTE_NOT_HERE)
            return
        conversation = place.conversation(self.workspace, raw.id)
        if place.kind in ("channel", "other"):
            root = raw.reference.message_id if raw.reference else None
            if root is None:
                await self._say(raw, MUTE_WHERE)
                return
            conversation = place.conversation(self.workspace, root)
        try:
            await self._chat.mute(conversation, command == "mute")
        except StoreError as err:
            log.warning("mute was not saved: %s", err)
            await self._say(raw, NOT_TAKEN)
            return
        try:
            await raw.add_reaction(MUTED if command == "mute" else UNMUTED)
        except discord.HTTPException:
            await self._say(raw, "Done." if command == "unmute" else "I am quiet until mentioned.")

    async def _say(self, raw: discord.Message, text: str) -> None:
        """One plain line in reply, never to a bot."""
        if raw.author.bot:
            return
        try:
            reference = raw.to_reference(fail_if_not_exists=False)
            await raw.channel.send(
                text, reference=reference, mention_author=False, allowed_mentions=NO_MENTIONS
            )
        except (discord.HTTPException, OSError) as err:
            log.warning("a notice could not be posted: %s", type(err).__name__)

    async def on_raw_reaction_add(self, event: discord.RawReactionActionEvent) -> None:
        """🛑 by the asker stops the run."""
        if str(event.emoji) != STOP or (self.user and event.user_id == self.user.id):
            return
        if event.member is not None and event.member.bot:
            return
        try:
            place = await find_place(self, event.channel_id, event.guild_id)
            known = self._known(event.message_id)
            conversation = known or place.conversation(self.workspace, event.message_id)
            await self._chat.cancel(conversation, str(event.user_id))
        except (StoreError, discord.HTTPException, OSError) as err:
            log.warning("a stop was not carried out: %s", type(err).__name__)

    async def on_raw_message_delete(self, event: discord.RawMessageDeleteEvent) -> None:
        """A question that was deleted is not answered."""
        await self._withdraw(event.message_id)

    async def on_raw_bulk_message_delete(self, event: discord.RawBulkMessageDeleteEvent) -> None:
        """The same for many."""
        for message_id in event.message_ids:
            await self._withdraw(message_id)

    async def _withdraw(self, message_id: int) -> None:
        conversation = self._asked.get(message_id)
        if conversation is None:
            return
        self.adapter.desk.withdrawn.put(str(message_id), True)
        try:
            await self._chat.withdraw(conversation, str(message_id))
        except StoreError as err:
            log.warning("a deleted question was not withdrawn: %s", err)

    async def on_interaction(self, interaction: discord.Interaction[discord.Client]) -> None:
        """Clicks; commands and modals go through the library."""
        if interaction.type is discord.InteractionType.component:
            await self._commands().click(interaction)


def run(settings: DiscordSettings) -> int:
    """Serves Discord until it is told to stop; the exit code."""
    from bots.discord.link import run_discord

    return run_discord(settings)
