"""A random life of three users, then one of them forgets: what is left anywhere?"""

import asyncio
from dataclasses import replace
from pathlib import Path
from typing import Literal

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from core.forget import forget, preview
from core.inbox import Inbox
from core.store import Store
from core.types import Conversation
from core.work import MAX_TRIES, Taken
from tests.support_inbox import answer, remember
from tests.support_redis import History, Server, a_message, a_session, texts

pytest_plugins = ("tests.support_redis_fixtures",)

Act = tuple[Literal["ask", "take", "answer", "deliver", "fact", "fail", "note"], int, int, int]

_ACTS = st.lists(
    st.tuples(
        st.sampled_from(["ask", "take", "answer", "deliver", "fact", "fail", "note"]),
        st.integers(0, 2),
        st.integers(0, 2),
        st.integers(0, 1),
    ),
    min_size=15,
    max_size=50,
)


class _Life:
    """Users A, B and C talk in three channels; each says only words that hold their mark."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self.inbox = Inbox(store, consumer="w", lease_s=60)
        self.held: list[Taken] = []
        self.count = 0

    def words(self, user: int) -> str:
        self.count += 1
        return f"mark{'ABC'[user]} {self.count}"

    async def act(self, kind: str, user: int, channel: int, thread: int) -> None:
        name, where = "ABC"[user], f"C{channel}"
        mine = next((t for t in self.held if t.message.author.id == name), None)
        match kind:
            case "ask":
                text = self.words(user)
                await self.inbox.accept(
                    a_message(text, user=name, channel=where, thread=f"T{thread}")
                )
            case "take":
                found = await self.inbox.take((("test", "W1"),), 4, 1)
                for taken in found:
                    await self.inbox.checkpoint(taken, f"state {taken.message.text}", 1)
                self.held += found
            case "answer" if mine:
                await answer(self.inbox, mine, f"answer to {mine.message.text}")
            case "deliver" if mine:
                self.held.remove(mine)
                if following := await self.inbox.delivered(mine):
                    self.held.append(following)
            case "fail" if mine:
                self.held.remove(mine)
                worn = replace(mine, attempts=MAX_TRIES - 1)
                if following := await self.inbox.fail(worn, "boom", 0):
                    self.held.append(following)
            case "fact":
                session = a_session(name, where)
                await remember(self.store, session, self.words(user), f"key{thread}")
            case _:
                conversation = Conversation("test", "W1", where, f"T{thread}")
                await self.inbox.note_context(conversation, "bot", "a note")


@settings(
    max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(before=_ACTS, after=_ACTS, scope=st.sampled_from(["channel", "everywhere"]))
def test_nothing_of_the_user_remains_anywhere(
    redis_server: Server,
    tmp_path: Path,
    before: list[Act],
    after: list[Act],
    scope: Literal["channel", "everywhere"],
) -> None:
    asyncio.run(_live_and_forget(redis_server, tmp_path, before, after, scope))


async def _live_and_forget(
    server: Server,
    folder: Path,
    before: list[Act],
    after: list[Act],
    scope: Literal["channel", "everywhere"],
) -> None:
    store = await Store.open(server.url, folder)
    try:
        await store.client.flushall()
        life = _Life(store)
        for act in before:
            await life.act(*act)
        others = {key: value for key, value in (await texts(store)).items() if "markA" not in value}
        queued = {key for key in await texts(store) if ":in:" in key}
        expected = await preview(store, a_session("A", "C0"), scope)
        assert await forget(store, a_session("A", "C0"), scope) == expected
        left = await texts(store)
        scoped = [key for key in left if scope == "everywhere" or _in_channel(key, "C0")]
        # Messages that wait in the queue stay, the running ones at their head included.
        assert [key for key in scoped if "markA" in left[key] and key not in queued] == []
        for key, value in others.items():
            if key.split(":")[1] in ("mem", "hist", "rec", "undo", "dead", "notes", "in", "ready"):
                assert left[key] == value
        # Runs that were under way end, and bring nothing back.
        running = [taken for taken in life.held if taken.message.author.id == "A"]
        for taken in running:
            if scope == "everywhere" or taken.conversation.channel == "C0":
                await life.inbox.checkpoint(taken, f"late {taken.message.text}", 2)
                await answer(life.inbox, taken, f"late {taken.message.text}")
                following = await life.inbox.delivered(taken)
                if following:
                    life.held.append(following)
        left = await texts(store)
        scoped = [key for key in left if scope == "everywhere" or _in_channel(key, "C0")]
        assert [key for key in scoped if "markA" in left[key] and ":in:" not in key] == []
        # And a later life can be forgotten as well.
        life.held = [taken for taken in life.held if taken not in running]
        for act in after:
            await life.act(*act)
        await forget(store, a_session("A", "C0"), "everywhere")
        left = await texts(store)
        assert [key for key in left if "markA" in left[key] and ":in:" not in key] == []
        assert await History(store).read(Conversation("test", "W1", "C0", "T9"), 100) == []
    finally:
        await store.close()


def _in_channel(key: str, channel: str) -> bool:
    """Whether a key is surely of this channel: its rest begins with it."""
    return key.split(":", 2)[-1].startswith(f"{channel}/")
