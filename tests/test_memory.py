"""Facts of a session, on a real server and on a cluster."""

import asyncio
import json
from pathlib import Path

import pytest

from core.errors import MemoryRejected, StoreError
from core.keys import partitions
from core.memory import MAX_FACTS, Memory, value_digest
from core.store import Store
from core.types import FactChange, Session
from tests.support_redis import a_session, dump, serve, texts

pytest_plugins = ("tests.support_redis_fixtures",)

U1 = a_session()


async def _save(
    memory: Memory, key: str, value: str, *, session: Session = U1, run: str = "r1", epoch: int = 0
) -> FactChange | None:
    return await memory.save(session, key, value, message_id="m1", epoch=epoch, run_id=run)


async def _values(memory: Memory, session: Session = U1) -> dict[str, str]:
    return {key: fact.value for key, fact in (await memory.facts(session)).items()}


async def test_saved_fact_is_read_back_with_its_source(any_store: Store) -> None:
    memory = Memory(any_store)
    assert await _save(memory, "city", "Pune") == FactChange(U1, "city", "Pune", None)
    facts, epoch = await memory.read(U1)
    assert epoch == 0
    assert facts["city"].value == "Pune"
    assert facts["city"].message_id == "m1"
    assert facts["city"].created_at > 1_700_000_000


async def test_a_new_value_replaces_and_shows_the_old(store: Store) -> None:
    memory = Memory(store)
    await _save(memory, "city", "Pune")
    change = await _save(memory, "city", "Delhi")
    assert change == FactChange(U1, "city", "Delhi", "Pune")
    assert await _values(memory) == {"city": "Delhi"}


@pytest.mark.parametrize("again", ["works in berlin ", "Works  in\tBerlin", "Ｗorks in Berlin"])
async def test_same_fact_in_other_letters_or_spacing_changes_nothing(
    store: Store, again: str
) -> None:
    memory = Memory(store)
    await _save(memory, "work", "Works in Berlin")
    before = await dump(store)
    for number in range(5):
        assert await _save(memory, "work", again, run=f"r{number}") is None
    assert await dump(store) == before
    assert await _save(memory, "work", "Moved to Oslo") is not None
    assert await _values(memory) == {"work": "Moved to Oslo"}


async def test_fifty_concurrent_writers_keep_exactly_twenty(any_store: Store) -> None:
    memory = Memory(any_store)
    results = await asyncio.gather(
        *(_save(memory, f"key{n}", f"value {n}", run=f"r{n}") for n in range(50)),
        return_exceptions=True,
    )
    refused = [result for result in results if isinstance(result, MemoryRejected)]
    assert len(refused) == 50 - MAX_FACTS
    kept = await _values(memory)
    assert len(kept) == MAX_FACTS
    for number, result in enumerate(results):
        assert isinstance(result, FactChange) == (kept.get(f"key{number}") == f"value {number}")


async def test_fifty_writers_of_one_key_each_replace_another(any_store: Store) -> None:
    memory = Memory(any_store)
    changes = await asyncio.gather(
        *(_save(memory, "city", f"city {n}", run=f"r{n}") for n in range(50))
    )
    replaced = [change.old for change in changes if change]
    last = (await _values(memory))["city"]
    assert sorted(filter(None, replaced)) == sorted(
        f"city {n}" for n in range(50) if f"city {n}" != last
    )


async def test_full_memory_names_what_could_go_and_still_replaces(store: Store) -> None:
    memory = Memory(store)
    for number in range(MAX_FACTS):
        await _save(memory, f"key{number}", "x")
    with pytest.raises(MemoryRejected, match="key7"):
        await _save(memory, "one more", "x")
    change = await _save(memory, "key7", "y")
    assert change is not None
    assert change.old == "x"


@pytest.mark.parametrize(
    ("key", "value"), [("", "x"), ("k" * 41, "x"), ("k", " "), ("k", "x" * 201)]
)
async def test_bounds_are_refused(store: Store, key: str, value: str) -> None:
    with pytest.raises(MemoryRejected):
        await _save(Memory(store), key, value)
    assert await dump(store) == {}


async def test_sessions_are_strangers_to_each_other(any_store: Store) -> None:
    memory = Memory(any_store)
    sessions = [
        a_session("U1"),
        a_session("U12"),
        a_session("*"),
        a_session("U1", workspace="W2"),
        a_session("U1", channel="C*"),
        a_session("U1", channel="C1:x"),
        a_session("U1:x"),
        a_session("U1}", channel="{C1"),
        a_session("U/1", channel="C"),
        a_session("1", channel="C/U"),
        a_session("ユーザー|%2F", channel="канал"),
    ]
    for number, session in enumerate(sessions):
        await _save(memory, "who", f"number {number}", session=session)
    for number, session in enumerate(sessions):
        assert await _values(memory, session) == {"who": f"number {number}"}


async def test_undo_restores_what_the_run_replaced(any_store: Store) -> None:
    memory = Memory(any_store)
    await _save(memory, "city", "Pune", run="r1")
    before = (await memory.facts(U1))["city"]
    await _save(memory, "city", "Delhi", run="r2")
    await _save(memory, "city", "Oslo", run="r2")
    assert await memory.undo(U1, "r2", "city")
    assert (await memory.facts(U1))["city"] == before
    assert not await memory.undo(U1, "r2", "city")
    assert await memory.undo(U1, "r1", "city")
    assert await _values(memory) == {}


async def test_undo_only_by_the_owner_and_while_the_value_stands(store: Store) -> None:
    memory = Memory(store)
    await _save(memory, "city", "Pune", run="r1")
    await _save(memory, "city", "Rome", session=a_session("U2"), run="r9")
    assert not await memory.undo(a_session("U2"), "r1", "city")
    assert not await memory.undo(a_session("U1", channel="C2"), "r1", "city")
    await _save(memory, "city", "Delhi", run="r2")
    assert not await memory.undo(U1, "r1", "city")
    assert await _values(memory) == {"city": "Delhi"}


async def test_delete_only_while_the_value_stands_and_leaves_no_copy(store: Store) -> None:
    memory = Memory(store)
    await _save(memory, "city", "Pune", run="r1")
    await _save(memory, "city", "Delhi", run="r2")
    await _save(memory, "tea", "green", run="r2")
    assert not await memory.delete(U1, "city", value_digest("Pune"))
    assert not await memory.delete(a_session("U2"), "city")
    assert await memory.delete(U1, "city", value_digest("Delhi"))
    assert await _values(memory) == {"tea": "green"}
    assert not any(
        city in text for text in (await texts(store)).values() for city in ("Pune", "Delhi")
    )
    assert await memory.undo(U1, "r2", "tea")


async def test_save_at_an_old_epoch_is_void(store: Store) -> None:
    memory = Memory(store)
    await store.client.incr(f"{{{U1.tag}}}:epoch:{U1.key}")
    with pytest.raises(MemoryRejected, match="forget"):
        await _save(memory, "city", "Pune", epoch=0)
    assert (await memory.read(U1)) == ({}, 1)
    assert await _save(memory, "city", "Pune", epoch=1) is not None


async def test_lifetime_slides_when_read(store: Store) -> None:
    memory = Memory(store, memory_ttl_days=10, run_ttl_days=2)
    await _save(memory, "city", "Pune")
    key, mine = f"{{{U1.tag}}}:mem:{U1.key}", f"{{{U1.tag}}}:mine:U1"
    assert 9 * 86_400 < await store.client.ttl(key) <= 10 * 86_400
    assert 86_400 < await store.client.ttl(f"{{{U1.tag}}}:undo:r1/city") <= 2 * 86_400
    await store.client.expire(key, 100)
    # As it would be when the place is about to expire, too.
    await store.client.zadd(mine, {f"C1|mem|{U1.key}": 1})
    await memory.facts(U1)
    assert await store.client.ttl(key) > 9 * 86_400
    assert await memory.sessions("test", "W1", "U1") == [U1]


async def test_sessions_of_a_user_are_found_in_all_partitions(any_store: Store) -> None:
    memory = Memory(any_store)
    mine = [a_session("U1", channel=f"C{n:02}") for n in range(40)]
    assert {session.tag for session in mine} == set(partitions("test", "W1"))
    for session in (*mine, a_session("U12"), a_session("U1", workspace="W2")):
        await _save(memory, "k", "v", session=session)
    assert await memory.sessions("test", "W1", "U1") == mine


async def test_export_is_the_users_data_as_json(store: Store) -> None:
    memory = Memory(store)
    await _save(memory, "city", "Pune ☂")
    data = await memory.export(U1)
    assert json.loads(json.dumps(data)) == data
    assert data["facts"]["city"]["value"] == "Pune ☂"
    assert (await memory.export(a_session("U2")))["facts"] == {}


async def test_a_broken_character_is_no_error(any_store: Store) -> None:
    memory = Memory(any_store)
    await _save(memory, "name", "half \ud83d pair")
    assert await _values(memory) == {"name": "half ? pair"}


async def test_a_full_server_is_an_honest_error(tmp_path: Path) -> None:
    with serve() as server:
        store = await Store.open(server.url, tmp_path)
        memory = Memory(store)
        await _save(memory, "city", "Pune")
        server.ask("CONFIG SET maxmemory 1")
        with pytest.raises(StoreError, match="out of memory"):
            await _save(memory, "city", "Delhi")
        assert await _values(memory) == {"city": "Pune"}
        await store.close()
