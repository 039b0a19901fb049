"""What a call costs, kind of token by kind, and by the length of its prompt."""

import pytest

from core import prices
from core.model import AnthropicModel
from core.types import Usage


def test_cost_counts_each_kind_of_token_at_its_own_price() -> None:
    usage = Usage(input=1_000, output=100, cache_read=10_000, cache_write=2_000)
    haiku = (1_000 * 0.10 + 100 * 0.50 + 10_000 * 0.01 + 2_000 * 0.125) / 1e6
    assert prices.cost_usd("claude-haiku-5-5", usage) == pytest.approx(haiku)
    sonnet = (1_000 * 2 + 100 * 10 + 10_000 * 0.10 + 2_000 * 2.5) / 1e6
    assert prices.cost_usd("claude-sonnet-5-5-20260928", usage) == pytest.approx(sonnet)


def test_a_long_prompt_makes_the_whole_call_dearer() -> None:
    at_limit = Usage(input=50_000, output=1_000, cache_read=40_000, cache_write=10_000)
    above = Usage(input=50_001, output=1_000, cache_read=40_000, cache_write=10_000)
    low = prices.cost_usd("claude-haiku-5-5", at_limit)
    high = prices.cost_usd("claude-haiku-5-5", above)
    assert low == pytest.approx((5_000 + 500 + 400 + 1_250) / 1e6)
    assert high == pytest.approx((25_000.5 + 2_500 + 2_000 + 6_250) / 1e6)


def test_a_model_prices_its_own_calls_and_an_unknown_one_has_no_price() -> None:
    usage = Usage(input=1_000_000)
    assert AnthropicModel("key", "claude-opus-5-5").cost_usd(usage) == pytest.approx(4.0)
    assert AnthropicModel("key", "qwen3:8b").cost_usd(usage) is None
