"""The commands, the message menu and the clicks: what each leads to.

It must not hold a rule of its own; memory is in memory.py, everything else in core.
"""

import asyncio
import io
import logging
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Literal

import discord
from discord import app_commands

from bots.discord.context import asked_about
from bots.discord.gate import REFUSAL, Gate
from bots.discord.interact import STORE_FAILED, Interaction, acknowledge, tell
from bots.discord.memory import OwnMemory, Scope
from bots.discord.places import interaction_place
from bots.discord.posts import NO_MENTIONS
from bots.discord.render import full_trace, trace_post
from core.chat import Chat
from core.errors import StoreError
from core.types import MAX_MESSAGE_CHARS, Author, Conversation, Message

log = logging.getLogger(__name__)

ADMIT_TIMEOUT_S = 1.5
UNSURE = "Discord did not tell me in time whether you may use me. Please try again in a minute."


def make_tree(
    client: discord.Client, commands: "Callable[[], Commands]"
) -> app_commands.CommandTree[discord.Client]:
    """/ask, /memory, /forget and the message menu "Ask about this", in servers and DMs alike.

    `commands` is asked for when a command is used, so that the tree can be compared without one.
    """
    tree = app_commands.CommandTree(
        client,
        allowed_contexts=app_commands.AppCommandContext(guild=True, dm_channel=True),
        allowed_installs=app_commands.AppInstallationType(guild=True, user=False),
    )

    async def ask(interaction: Interaction, question: app_commands.Range[str, 1, 2000]) -> None:
        await commands().ask(interaction, question)

    async def memory(interaction: Interaction) -> None:
        await commands().memory(interaction)

    async def forget(
        interaction: Interaction, scope: Literal["this channel", "everywhere"] = "this channel"
    ) -> None:
        await commands().forget(interaction, "everywhere" if scope == "everywhere" else "channel")

    async def ask_about(interaction: Interaction, message: discord.Message) -> None:
        await commands().ask_about(interaction, message)

    app_commands.describe(question="What do you want to know?")(ask)
    app_commands.describe(scope="Where to forget; this channel with its threads if left out")(
        forget
    )
    tree.command(description="Ask privately: only you see the answer")(ask)
    tree.command(description="See what I remember about you here, and delete any of it")(memory)
    tree.command(description="Make me forget what I keep about you")(forget)
    tree.context_menu(name="Ask about this")(ask_about)
    return tree


class Commands:
    """Commands and clicks of one client."""

    def __init__(self, chat: Chat, gate: Gate, workspace: str) -> None:
        self._chat = chat
        self._gate = gate
        self._workspace = workspace
        self._memory = OwnMemory(chat, workspace)

    async def memory(self, interaction: Interaction) -> None:
        """/memory"""
        if await self._is_admitted(interaction):
            await self._memory.show(interaction)

    async def forget(self, interaction: Interaction, scope: Scope) -> None:
        """/forget"""
        if await self._is_admitted(interaction):
            await self._memory.preview(interaction, scope)

    async def ask(
        self, interaction: Interaction, question: str, target: discord.Message | None = None
    ) -> None:
        """/ask, and the modal of "Ask about this" with the message in question."""
        if await self._is_admitted(interaction):
            await self._ask(interaction, question, target)

    async def ask_about(self, interaction: Interaction, message: discord.Message) -> None:
        """The message menu: asks for the question first."""
        if await self._is_admitted(interaction):
            await interaction.response.send_modal(_AskModal(self, message))

    async def click(self, interaction: Interaction) -> None:
        """A button or a menu, told apart by its custom_id, so that it survives a restart."""
        data = interaction.data or {}
        custom_id = str(data.get("custom_id", ""))
        values = data.get("values") or [""]  # type: ignore[assignment]
        name, _, rest = custom_id.partition(":")
        if not await self._is_admitted(interaction):
            return
        match name:
            case "trace":
                await self._trace(interaction, rest)
            case "facts":
                await self._memory.saved(interaction, rest)
            case "undo":
                run_id, _, key = rest.partition(":")
                await self._memory.undo(interaction, run_id, key)
            case "fact-delete":
                await self._memory.delete(interaction, str(values[0]))
            case "forget":
                await self._memory.forget(interaction, rest)
            case "forget-not":
                await self._memory.keep(interaction)
            case _:
                log.info("a click on something that is not ours was ignored")

    async def _is_admitted(self, interaction: Interaction) -> bool:
        """Whether whoever used this may; else they are told so, privately."""
        user = interaction.user
        if user.bot:
            return False
        refusal = REFUSAL
        try:
            # In a direct message Discord is asked, and a command has 3 s to be acknowledged.
            async with asyncio.timeout(ADMIT_TIMEOUT_S):
                if await self._gate.admits(interaction.guild_id, user.id):
                    return True
        except TimeoutError:
            refusal = UNSURE
        try:
            await interaction.response.send_message(
                refusal, ephemeral=True, allowed_mentions=NO_MENTIONS
            )
        except discord.HTTPException as err:
            log.info("a refusal could not be shown: code %s", err.code)
        return False

    async def _ask(
        self, interaction: Interaction, question: str, target: discord.Message | None
    ) -> None:
        response = await acknowledge(interaction)
        if response is None:
            return
        message = self._question(interaction, question, response.message_id or 0)
        if target is not None:
            # Taken along, since the bot may not be able to read it where it stands.
            about = [[each.label, each.text] for each in await asked_about(target)]
            message = replace(message, extra={**message.extra, "target": about})
        try:
            await self._chat.submit(message)
        except StoreError:
            await tell(interaction, STORE_FAILED)

    def _question(self, interaction: Interaction, question: str, shown: int) -> Message:
        place = interaction_place(interaction)
        session = place.session(self._workspace, interaction.user.id)
        conversation = Conversation(
            session.platform, self._workspace, session.channel, str(interaction.id)
        )
        return Message(
            id=str(interaction.id),
            conversation=conversation,
            session=session,
            author=Author(session.user, interaction.user.display_name),
            text=question[:MAX_MESSAGE_CHARS],
            sent_at=time.time(),
            extra={
                "kind": "private",
                "channel": str(place.channel),
                "interaction": {
                    "token": interaction.token,
                    "application": str(interaction.application_id),
                    "message": str(shown),
                },
            },
        )

    async def _trace(self, interaction: Interaction, run_id: str) -> None:
        if not await acknowledge(interaction):
            return
        try:
            run = await self._chat.run_of(self._memory.session(interaction), run_id)
        except StoreError:
            await tell(interaction, STORE_FAILED)
            return
        if run is None:
            await tell(interaction, "Only whoever asked can see this trace, for a few days.")
            return
        text = trace_post(run).text
        file = discord.File(io.BytesIO(full_trace(run).encode()), filename="trace.md")
        await tell(interaction, text, files=[file])


class _AskModal(discord.ui.Modal, title="Ask about this message"):
    question: discord.ui.TextInput["_AskModal"] = discord.ui.TextInput(
        label="Your question", default="What does this mean?", max_length=1_000
    )

    def __init__(self, commands: Commands, target: discord.Message) -> None:
        super().__init__(timeout=900)
        self._commands = commands
        self._target = target

    async def on_submit(self, interaction: Interaction) -> None:
        await self._commands.ask(interaction, str(self.question.value), self._target)
