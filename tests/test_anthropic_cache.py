"""The local Anthropic server's prompt cache adds up."""

from typing import Any

import pytest

from tests.anthropic_cache import PromptCache
from tests.support_model import SEARCH_DOCS

Body = dict[str, Any]
MARK = {"cache_control": {"type": "ephemeral"}}


class Clock:
    """Seconds that pass when the test says so."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def body_of(*texts: str, marks: tuple[int, ...] = (-1,), **more: Any) -> Body:
    """A request of one user message whose blocks are `texts`, marked at the places `marks`."""
    blocks: list[Body] = [{"type": "text", "text": text} for text in texts]
    for place in marks:
        blocks[place].update(MARK)
    return {"model": "m", "messages": [{"role": "user", "content": blocks}], **more}


BIG = "x" * 4_000


def test_a_prefix_is_written_once_and_then_read() -> None:
    cache = PromptCache(Clock())
    first = cache.bill(body_of(BIG, "tail", marks=(0,)))
    assert first.cache_write > 1_000
    assert (first.cache_read, first.input) == (0, 8)
    second = cache.bill(body_of(BIG, "another tail", marks=(0,)))
    assert (second.cache_read, second.cache_write) == (first.cache_write, 0)


def test_a_longer_prefix_reads_the_old_part_and_writes_the_new() -> None:
    cache = PromptCache(Clock())
    first = cache.bill(body_of(BIG))
    second = cache.bill(body_of(BIG, BIG))
    assert second.cache_read == first.cache_write
    assert second.cache_write == first.cache_write
    assert second.input == 0


@pytest.mark.parametrize(
    "other",
    [
        body_of("y" + BIG[1:]),
        body_of(BIG, model="another"),
        body_of(BIG, system="another"),
        body_of(BIG, thinking={"type": "adaptive"}),
        body_of(BIG, tools=[SEARCH_DOCS]),
    ],
    ids=["first character", "model", "system", "thinking", "tools"],
)
def test_any_change_before_the_mark_makes_it_cold(other: Body) -> None:
    cache = PromptCache(Clock())
    cache.bill(body_of(BIG))
    assert cache.bill(other).cache_read == 0


def test_a_prefix_below_512_tokens_is_not_kept() -> None:
    cache = PromptCache(Clock())
    for _ in range(2):
        billed = cache.bill(body_of("x" * 1_900))
        assert (billed.cache_read, billed.cache_write) == (0, 0)


def test_an_entry_lives_five_minutes_from_its_last_use() -> None:
    clock = Clock()
    cache = PromptCache(clock)
    cache.bill(body_of(BIG))
    for _ in range(2):
        clock.now += 299
        assert cache.bill(body_of(BIG)).cache_read > 0
    clock.now += 300
    assert cache.bill(body_of(BIG)).cache_read == 0


@pytest.mark.parametrize(("blocks", "is_found"), [(20, True), (21, False)])
def test_an_earlier_entry_is_found_up_to_20_blocks_back(blocks: int, is_found: bool) -> None:
    cache = PromptCache(Clock())
    cache.bill(body_of(BIG))
    billed = cache.bill(body_of(BIG, *["more"] * blocks))
    assert (billed.cache_read > 0) is is_found
