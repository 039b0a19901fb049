"""What a user sees and does about their own memory, privately: /memory, /forget, Undo.

It must not decide whose memory it is otherwise than by who clicked, and where.
"""

import logging
from collections.abc import Mapping, Sequence
from typing import Literal, cast

import discord

from bots.discord.interact import STORE_FAILED, Interaction, acknowledge, tell, tell_more
from bots.discord.places import PLATFORM, interaction_place
from bots.text import defuse_discord, split_markdown
from core.chat import Chat
from core.errors import StoreError
from core.forget import ForgetReport
from core.memory import Fact, value_digest
from core.types import FactChange, Session

log = logging.getLogger(__name__)

Scope = Literal["channel", "everywhere"]
LIMIT = 2_000
_WHERE = {"channel": "in this channel and its threads", "everywhere": "everywhere"}


class OwnMemory:
    """Shows and changes the memory of whoever asks."""

    def __init__(self, chat: Chat, workspace: str) -> None:
        self._chat = chat
        self._workspace = workspace

    def session(self, interaction: Interaction) -> Session:
        """The memory of whoever used this, here."""
        return interaction_place(interaction).session(self._workspace, interaction.user.id)

    async def show(self, interaction: Interaction) -> None:
        """/memory: each fact, with a menu to delete one."""
        if not await acknowledge(interaction):
            return
        session = self.session(interaction)
        try:
            facts = await self._chat.facts(session)
            sessions = await self._chat.sessions(PLATFORM, self._workspace, session.user)
        except StoreError:
            await tell(interaction, STORE_FAILED)
            return
        others = [each.channel for each in sessions if each.channel != session.channel]
        await self._show_facts(interaction, facts, others)

    async def _show_facts(
        self, interaction: Interaction, facts: Mapping[str, Fact], others: Sequence[str]
    ) -> None:
        lines = ["**What I remember about you here**"] if facts else []
        lines += [_fact_line(key, fact) for key, fact in facts.items()]
        if not facts:
            lines.append("I remember nothing about you here.")
        if others:
            places = ", ".join(f"<#{channel}>" for channel in others[:20])
            lines.append(f"-# I also keep something of yours in: {places}")
        parts = split_markdown("\n".join(lines), LIMIT)
        view = _delete_menu(facts)
        await tell(interaction, parts[0], view=view if len(parts) == 1 else None)
        for number, part in enumerate(parts[1:], 2):
            await tell_more(interaction, part, view if number == len(parts) else None)

    async def delete(self, interaction: Interaction, choice: str) -> None:
        """The menu of /memory: one fact goes, if it is still the one shown."""
        if not await acknowledge(interaction, is_update=True):
            return
        digest, _, key = choice.partition(":")
        session = self.session(interaction)
        try:
            is_gone = await self._chat.delete_fact(session, key, digest)
            facts = await self._chat.facts(session)
        except StoreError:
            await tell(interaction, STORE_FAILED)
            return
        shown = defuse_discord(key)
        first = f"Deleted: {shown}." if is_gone else f"{shown} has changed meanwhile; I kept it."
        await tell(interaction, first, view=_delete_menu(facts))

    async def preview(self, interaction: Interaction, scope: Scope) -> None:
        """/forget: what would go, with a button to do it."""
        if not await acknowledge(interaction):
            return
        try:
            report = await self._chat.forget_preview(self.session(interaction), scope)
        except StoreError:
            await tell(interaction, STORE_FAILED)
            return
        if not report.total:
            where = "anywhere" if scope == "everywhere" else _WHERE[scope]
            await tell(interaction, f"I keep nothing of yours {where}.")
            return
        text = f"This deletes what I keep of yours {_WHERE[scope]}: {counts(report)}."
        view = discord.ui.View(timeout=None)
        danger = discord.ButtonStyle.danger
        view.add_item(discord.ui.Button(style=danger, label="Forget", custom_id=f"forget:{scope}"))
        view.add_item(discord.ui.Button(label="Cancel", custom_id="forget-not"))
        view.stop()
        await tell(interaction, text, view=view)

    async def forget(self, interaction: Interaction, scope: str) -> None:
        """The button of /forget; done only once it is acknowledged, so only once."""
        if scope not in _WHERE or not await acknowledge(interaction, is_update=True):
            return
        report = await self._chat.forget(self.session(interaction), cast("Scope", scope))
        if report.is_complete:
            text = f"Forgotten {_WHERE[scope]}: {counts(report)}."
            done = "What you asked me to forget is forgotten."
        else:
            text = (
                f"Not everything could be deleted; so far: {counts(report)}. "
                "Please use /forget again."
            )
            done = "Not everything could be deleted. Please use /forget again."
        await tell(interaction, text, fallback=done)

    async def keep(self, interaction: Interaction) -> None:
        """The other button of /forget."""
        if await acknowledge(interaction, is_update=True):
            await tell(interaction, "Nothing was deleted.")

    async def saved(self, interaction: Interaction, run_id: str) -> None:
        """The button under an answer that saved facts: each value with its Undo, to its owner."""
        if not await acknowledge(interaction):
            return
        session = self.session(interaction)
        try:
            run = await self._chat.run_of(session, run_id)
        except StoreError:
            await tell(interaction, STORE_FAILED)
            return
        mine = [each for each in run.facts_saved if each.session == session] if run else []
        if not mine:
            await tell(interaction, "Only the person whose facts these are can see them.")
            return
        lines = ["**What I saved about you**", *(_change_line(change) for change in mine)]
        await tell(interaction, "\n".join(lines)[:LIMIT], view=_undo_buttons(run_id, mine))

    async def undo(self, interaction: Interaction, run_id: str, key: str) -> None:
        """Takes one fact back, while it still has the value in question."""
        if not await acknowledge(interaction, is_update=True):
            return
        try:
            is_undone = await self._chat.undo(self.session(interaction), run_id, key)
        except StoreError:
            await tell(interaction, STORE_FAILED)
            return
        shown = defuse_discord(key)
        kept = f"{shown} has changed meanwhile or is gone; I left it as it is."
        await tell(interaction, f"Taken back: {shown}." if is_undone else kept)


def counts(report: ForgetReport) -> str:
    """What a report counts, in words."""
    named = [
        (report.facts, "fact"),
        (report.turns, "question with its answer"),
        (report.records, "run record"),
        (report.checkpoints, "unfinished run"),
        (report.undos, "old value"),
        (report.dead_letters, "failed message"),
    ]
    words = [f"{n} {_plural(word) if n != 1 else word}" for n, word in named if n]
    return ", ".join(words) or "nothing"


def _plural(word: str) -> str:
    return "questions with their answers" if word.startswith("question") else f"{word}s"


def _fact_line(key: str, fact: Fact) -> str:
    return (
        f"- **{defuse_discord(key)}**: {defuse_discord(fact.value)} (<t:{int(fact.created_at)}:d>)"
    )


def _change_line(change: FactChange) -> str:
    was = f" (before: {change.old})" if change.old else ""
    return defuse_discord(f"- **{change.key}**: {change.value}{was}")


def _delete_menu(facts: Mapping[str, Fact]) -> discord.ui.View | None:
    if not facts:
        return None
    options = [
        discord.SelectOption(
            label=key[:100],
            description=fact.value[:100],
            value=f"{value_digest(fact.value)}:{key}"[:100],
        )
        for key, fact in list(facts.items())[:25]
    ]
    view = discord.ui.View(timeout=None)
    view.add_item(
        discord.ui.Select(custom_id="fact-delete", placeholder="Delete a fact…", options=options)
    )
    view.stop()
    return view


def _undo_buttons(run_id: str, changes: Sequence[FactChange]) -> discord.ui.View:
    view = discord.ui.View(timeout=None)
    for change in changes[:25]:
        label = f"Undo {change.key}"[:80]
        view.add_item(discord.ui.Button(label=label, custom_id=f"undo:{run_id}:{change.key}"[:100]))
    view.stop()
    return view
