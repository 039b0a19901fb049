"""Transcripts: whole pairs within a token limit."""

import json
import time
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.history import (
    MAX_TURNS,
    Turn,
    estimate_tokens,
    trim,
    turn_from_json,
    turn_to_json,
)
from core.store import Store
from tests.support_inbox import an_inbox, answer, finish, take_one
from tests.support_redis import History, a_message

pytest_plugins = ("tests.support_redis_fixtures",)


def _turn(text: str = "q", answer: str = "a") -> Turn:
    return Turn("U1", "name", text, answer, "r1", 1.5)


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("", 0),
        ("a", 1),
        ("abcd", 1),
        ("abcde", 2),
        ("日本語", 3),
        ("日本 go", 3),
        ("한국어", 3),
        ("é" * 8, 2),
    ],
)
def test_estimate_is_a_quarter_per_character_and_one_per_cjk(text: str, tokens: int) -> None:
    assert estimate_tokens(text) == tokens


_turns = st.lists(st.builds(_turn, st.text(max_size=400), st.text(max_size=400)), max_size=12)


@given(_turns, st.integers(0, 1_500))
def test_trim_keeps_the_newest_whole_turns_that_fit(turns: list[Turn], limit: int) -> None:
    kept = trim(turns, limit)
    assert kept == turns[len(turns) - len(kept) :]
    assert bool(kept) == bool(turns)
    assert len(kept) <= 1 or sum(turn.tokens for turn in kept) <= limit
    if len(kept) < len(turns):
        assert sum(turn.tokens for turn in turns[len(turns) - len(kept) - 1 :]) > limit


@given(st.builds(_turn, st.text(), st.text()))
def test_a_turn_survives_its_json(turn: Turn) -> None:
    assert turn_from_json(turn_to_json(turn)) == turn


async def test_history_is_read_by_another_process_and_trimmed_at_turns(any_store: Store) -> None:
    """B21: whatever is cut, a kept turn is a question with its answer."""
    inbox, message = an_inbox(any_store), a_message("first " + "x" * 400)
    await inbox.accept(message)
    for text in ("second " + "y" * 400, "third"):
        await inbox.accept(a_message(text, user="U2"))
    taken = await take_one(inbox)
    while taken:
        taken = await finish(inbox, taken, f"answer to {taken.message.text[:6]}")
    history = History(any_store)
    everything = await history.read(message.conversation, 8_000)
    assert [turn.author_id for turn in everything] == ["U1", "U2", "U2"]
    assert everything[1].answer == "answer to second"
    for limit in range(0, 300, 10):
        kept = await history.read(message.conversation, limit)
        assert kept == everything[-len(kept) :] != []
    assert await history.read(replace(message.conversation, thread="T2"), 8_000) == []


async def test_at_most_a_hundred_turns_and_none_past_their_time(store: Store) -> None:
    inbox, message = an_inbox(store), a_message()
    key = f"{{{message.conversation.tag}}}:hist:{message.conversation.key}"
    await inbox.accept(message)
    taken = await take_one(inbox)
    old = {**json.loads(turn_to_json(_turn())), "at": time.time() - 31 * 86_400}
    await store.client.rpush(key, *[json.dumps(old)] * 5)
    await answer(inbox, taken)
    assert await store.client.llen(key) == 1
    assert 29 * 86_400 < await store.client.ttl(key) <= 30 * 86_400
    fresh = {**old, "at": time.time()}
    await store.client.rpush(key, *[json.dumps(fresh)] * MAX_TURNS)
    await inbox.accept(a_message())
    following = await inbox.delivered(taken)
    assert following is not None
    await answer(inbox, following)
    assert await store.client.llen(key) == MAX_TURNS


async def test_answering_twice_keeps_one_turn(store: Store) -> None:
    inbox, message = an_inbox(store), a_message()
    await inbox.accept(message)
    taken = await take_one(inbox)
    assert [await answer(inbox, taken) for _ in range(3)] == ["saved"] * 3
    assert len(await History(store).read(message.conversation, 8_000)) == 1
