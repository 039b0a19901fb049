"""Forgetting: all of one user, nothing of others, whatever is under way."""

from pathlib import Path

import pytest

from core.backlog import Backlog
from core.errors import MemoryRejected
from core.forget import ForgetReport, forget, preview
from core.memory import DAY_S, Memory
from core.store import Store
from core.types import Session
from core.work import MAX_TRIES
from tests.support_inbox import an_inbox, answer, finish, remember, take, take_none, take_one
from tests.support_redis import Server, a_message, a_session, dump, serve, texts

pytest_plugins = ("tests.support_redis_fixtures",)

U1 = a_session()


async def _ask(
    store: Store, text: str, *, user: str, channel: str, thread: str, workspace: str = "W1"
) -> None:
    """A whole run: asked, answered, delivered."""
    inbox = an_inbox(store)
    message = a_message(text, user=user, channel=channel, thread=thread, workspace=workspace)
    await inbox.accept(message)
    (taken,) = await take(inbox, places=[("test", workspace)])
    await inbox.checkpoint(taken, f"checkpoint {text}", 1)
    assert await finish(inbox, taken, f"answer to {text}") is None
    await inbox.leave()


def _others(data: dict[bytes, bytes], users: list[str]) -> dict[bytes, bytes]:
    """All but these users' own lists of places, the epochs, and the workers' traces."""
    own = tuple(f":mine:{user}".encode() for user in users)
    return {
        key: value
        for key, value in data.items()
        if not key.endswith(own) and key.split(b":")[1] not in (b"epoch", b"once", b"workers")
    }


async def test_forgetting_a_channel_takes_all_of_one_user_and_nothing_else(
    any_store: Store,
) -> None:
    """B25: look-alike users, another workspace, an id with a star, threads and a DM."""
    sessions = [
        U1,
        a_session("U12"),
        a_session("U1", workspace="W2"),
        a_session("*"),
        a_session("U1", channel="DM"),
        a_session("U1", channel="C*"),
    ]
    for number, session in enumerate(sessions):
        for thread in ("T1", "T2"):
            text = f"words{number} {thread}"
            await _ask(
                any_store,
                text,
                user=session.user,
                channel=session.channel,
                thread=f"{thread}{session.user}",
                workspace=session.workspace,
            )
        await remember(any_store, session, f"words{number}")
    before = await dump(any_store)
    expected = ForgetReport(facts=1, turns=2, records=2, undos=1)
    assert await preview(any_store, U1) == expected
    assert _others(await dump(any_store), []) == _others(before, [])
    assert await forget(any_store, U1) == expected
    left = await texts(any_store)
    assert [key for key, text in left.items() if "words0" in text + key] == []
    after = await dump(any_store)
    gone = before.keys() - after.keys()
    assert len([key for key in gone if b":once:" not in key]) == 6
    assert all(
        after[key] == value for key, value in _others(before, ["U1"]).items() if key in after
    )
    for number in range(1, len(sessions)):
        assert sum(f"words{number}" in text for text in left.values()) >= 4
    assert await forget(any_store, U1) == ForgetReport()
    assert await Memory(any_store).facts(U1) == {}


async def test_forgetting_everywhere_covers_all_channels_of_the_workspace(any_store: Store) -> None:
    for number in range(20):
        await _ask(any_store, f"secret{number}", user="U1", channel=f"C{number}", thread="T")
        await remember(any_store, a_session(channel=f"C{number}"), f"secret{number}")
    await _ask(any_store, "other", user="U1", channel="C1", thread="T", workspace="W2")
    expected = ForgetReport(facts=20, turns=20, records=20, undos=20)
    assert await preview(any_store, U1, "everywhere") == expected
    assert await forget(any_store, U1, "everywhere") == expected
    assert not any("secret" in text for text in (await texts(any_store)).values())
    assert await Memory(any_store).sessions("test", "W1", "U1") == []
    assert any("other" in text for text in (await texts(any_store)).values())


async def test_others_turns_in_a_shared_thread_stay_byte_equal(store: Store) -> None:
    for number in range(6):
        await _ask(store, f"from U{number % 2}", user=f"U{number % 2}", channel="C1", thread="T1")
    key = f"{{{U1.tag}}}:hist:C1/T1"
    kept = [item for item in await store.client.lrange(key, 0, -1) if b"from U0" in item]
    ttl = await store.client.ttl(key)
    report = await forget(store, U1)
    assert report.turns == 3
    assert await store.client.lrange(key, 0, -1) == kept
    assert ttl - 5 <= await store.client.ttl(key) <= ttl


async def test_run_under_way_delivers_but_saves_nothing(any_store: Store) -> None:
    """B04: forget while a run is blocked in a tool, then let it go on."""
    inbox, memory = an_inbox(any_store), Memory(any_store)
    await remember(any_store, U1, "oldfact")
    message = a_message("oldwords")
    await inbox.accept(message)
    taken = await take_one(inbox)
    await inbox.checkpoint(taken, "oldwords in a transcript", 1)
    report = await forget(any_store, U1)
    assert (report.facts, report.checkpoints) == (1, 1)
    await inbox.checkpoint(taken, "oldwords again", 2)
    with pytest.raises(MemoryRejected):
        await memory.save(U1, "k", "oldwords", message_id="m", epoch=taken.epoch, run_id="r")
    assert await answer(inbox, taken, "about oldwords") == "forgotten"
    assert await inbox.delivered(taken) is None
    left = await texts(any_store)
    assert [key for key, text in left.items() if "old" in text] == []
    await inbox.accept(a_message("new question"))
    following = await take_one(inbox)
    assert (following.facts, following.turns) == ({}, ())
    assert await answer(inbox, following) == "saved"


async def test_forgotten_run_is_resumed_from_the_start_and_still_delivered(store: Store) -> None:
    old, new = (an_inbox(store, name, lease_s=0.3) for name in ("old", "new"))
    await old.accept(a_message("oldwords"))
    stale = await take_one(old)
    await old.checkpoint(stale, "oldwords", 1)
    await answer(old, stale, "about oldwords")
    report = await forget(store, U1)
    assert (report.turns, report.records) == (1, 1)
    taken = await take_one(new)
    assert (taken.phase, taken.checkpoint, taken.final, taken.turns) == ("running", None, None, ())
    assert await answer(new, taken, "about oldwords") == "forgotten"
    # A second forgetting finds the answer that waits to be delivered.
    assert (await forget(store, U1)).checkpoints == 1
    assert await new.delivered(taken) is None
    assert [key for key, text in (await texts(store)).items() if "oldwords" in text] == []


async def test_anothers_run_that_read_the_turns_keeps_nothing(any_store: Store) -> None:
    inbox = an_inbox(any_store)
    await _ask(any_store, "oldwords", user="U1", channel="C1", thread="T1")
    await inbox.accept(a_message("what did U1 say?", user="U2"))
    await inbox.accept(a_message("elsewhere", user="U2", thread="T2"))
    runs = {taken.message.text: taken for taken in await take(inbox, 2)}
    reading, elsewhere = runs["what did U1 say?"], runs["elsewhere"]
    await inbox.checkpoint(reading, "U1 said oldwords", 1)
    await inbox.checkpoint(elsewhere, "state", 1)
    assert (await forget(any_store, U1)).checkpoints == 1
    await inbox.checkpoint(reading, "U1 said oldwords", 1)
    assert await answer(inbox, reading, "U1 said oldwords") == "forgotten"
    assert await inbox.delivered(reading) is None
    assert await answer(inbox, elsewhere) == "saved"
    assert [key for key, text in (await texts(any_store)).items() if "oldwords" in text] == []


async def test_queued_messages_stay_and_see_an_empty_memory(any_store: Store) -> None:
    inbox = an_inbox(any_store)
    await remember(any_store, U1, "oldfact")
    await inbox.accept(a_message("running"))
    taken = await take_one(inbox)
    await inbox.accept(a_message("queued"))
    await forget(any_store, U1)
    following = await finish(inbox, taken)
    assert following is not None
    assert following.message.text == "queued"
    assert (following.facts, following.turns) == ({}, ())
    assert await answer(inbox, following) == "saved"


async def test_dead_letters_go_and_none_comes_after(store: Store) -> None:
    inbox, backlog = an_inbox(store, lease_s=0.3), Backlog(store, "test", "W1")

    async def bury(text: str, user: str, *, then_forget: bool = False) -> None:
        await inbox.accept(a_message(text, user=user, thread=text))
        for attempt in range(MAX_TRIES):
            taken = await take_one(inbox)
            if then_forget and attempt == MAX_TRIES - 1:
                await forget(store, U1)
            await inbox.fail(taken, "boom", 0)

    await bury("oldwords", "U1")
    await bury("other", "U2")
    assert (await forget(store, U1)).dead_letters == 1
    await bury("oldwords", "U1", then_forget=True)
    assert [letter.message.text for letter in await backlog.dead_letters()] == ["other"]
    await take_none(inbox)


async def _pass_days(store: Store, days: int) -> None:
    """Makes all that expires do so `days` earlier, as if they had passed."""
    async for key in store.client.scan_iter(count=1000):
        if (left_s := await store.client.ttl(key)) >= 0:
            await store.client.expire(key, left_s - days * DAY_S)
        if b":mine:" in key:
            for place, until in await store.client.zrange(key, 0, -1, withscores=True):
                await store.client.zadd(key, {place: until - days * DAY_S})


async def test_dead_letter_that_no_start_has_dropped_is_forgotten(store: Store) -> None:
    inbox = an_inbox(store, lease_s=0.3)
    await inbox.accept(a_message("oldwords"))
    for _ in range(MAX_TRIES):
        await inbox.fail(await take_one(inbox), "boom", 0)
    await _pass_days(store, 7)
    assert (await forget(store, U1)).dead_letters == 1


async def test_a_turn_that_others_kept_alive_is_forgotten(store: Store) -> None:
    await _ask(store, "oldwords", user="U1", channel="C1", thread="T1")
    await _pass_days(store, 20)
    await _ask(store, "hello", user="U2", channel="C1", thread="T1")
    await _pass_days(store, 20)
    assert "oldwords" in str(await texts(store))
    assert (await forget(store, U1)).turns == 1
    assert "oldwords" not in str(await texts(store))


async def test_one_fact_goes_with_its_copies_and_the_rest_stays(store: Store) -> None:
    await _ask(store, "kept words", user="U1", channel="C1", thread="T1")
    await remember(store, U1, "Pune")
    await remember(store, U1, "Delhi")
    await remember(store, U1, "green", key="tea")
    await remember(store, a_session(channel="C2"), "Oslo")
    report = await forget(store, U1, key="city")
    assert report == ForgetReport(facts=1, undos=2)
    assert list(await Memory(store).facts(U1)) == ["tea"]
    left = " ".join((await texts(store)).values())
    assert "Pune" not in left
    assert "Delhi" not in left
    assert "kept words" in left
    assert await forget(store, U1, "everywhere", key="city") == ForgetReport(facts=1, undos=1)


async def test_forgetting_half_way_says_so_and_can_be_repeated(
    redis_server: Server, store: Store, tmp_path: Path
) -> None:
    """B25: the server refuses one partition; what was done is counted, the rest is done later."""
    sessions = [a_session(channel=f"C{number}") for number in range(30)]
    for session in sessions:
        await remember(store, session, f"secret {session.channel}")
    refused = a_session(channel="C7").tag
    allowed = [tag for tag in {session.tag for session in sessions} if tag != refused]
    rules = " ".join(f"~{{{tag}}}*" for tag in [*allowed, *_untouched(sessions)])
    redis_server.ask(f"ACL SETUSER limited on >pw +@all {rules}")
    limited = await Store.open(f"unix://limited:pw@{redis_server.folder}/s", tmp_path)
    try:
        report = await forget(limited, U1, "everywhere")
        assert not report.is_complete
        left = [key for key in await texts(store) if ":mem:" in key]
        assert report.facts == len(sessions) - len(left) < len(sessions)
        again = await forget(store, U1, "everywhere")
        assert again.is_complete
        assert report.facts + again.facts == len(sessions)
        assert not any("secret" in text for text in (await texts(store)).values())
    finally:
        await limited.close()
        redis_server.ask("ACL DELUSER limited")


def _untouched(sessions: list[Session]) -> list[str]:
    used = {session.tag for session in sessions}
    return [f"test/W1/{number}" for number in range(16) if f"test/W1/{number}" not in used]


async def test_a_full_server_still_forgets(tmp_path: Path) -> None:
    with serve() as server:
        store = await Store.open(server.url, tmp_path)
        await _ask(store, "oldwords", user="U1", channel="C1", thread="T1")
        await remember(store, U1, "oldwords")
        server.ask("CONFIG SET maxmemory 1")
        report = await forget(store, U1)
        assert (report.facts, report.turns, report.records, report.undos) == (1, 1, 1, 1)
        assert report.is_complete
        assert not any("oldwords" in text for text in (await texts(store)).values())
        server.ask("CONFIG SET maxmemory 0")
        assert await forget(store, U1) == ForgetReport()
        await store.close()
