"""What a model call costs in US dollars: one dated table.

It must not know who calls a model. Prices change without notice: `PRICES_DATE` says when the
table was right.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass

from core.types import Usage

PRICES_DATE = "2026-10-24"
_SNAPSHOT = re.compile(r"-\d{8}$")


@dataclass(frozen=True, slots=True)
class Price:
    """US dollars per million tokens; `cache_write` is that of the five-minute cache."""

    input: float
    output: float
    cache_read: float
    cache_write: float


@dataclass(frozen=True, slots=True)
class Tariff:
    """A model's price, and the one for the whole of a call whose prompt is over `long_prompt`."""

    price: Price
    long_prompt: int | None = None
    long_price: Price | None = None


# Source: https://platform.claude.com/docs/en/about-claude/pricing
TARIFFS: Mapping[str, Tariff] = {
    "claude-haiku-5-5": Tariff(
        Price(0.10, 0.50, cache_read=0.01, cache_write=0.125),
        long_prompt=100_000,
        long_price=Price(0.50, 2.50, cache_read=0.05, cache_write=0.625),
    ),
    "claude-sonnet-5-5": Tariff(Price(2.0, 10.0, cache_read=0.10, cache_write=2.50)),
    "claude-opus-5-5": Tariff(Price(4.0, 20.0, cache_read=0.20, cache_write=5.0)),
}


def cost_usd(model: str, usage: Usage) -> float | None:
    """The price of ONE call to `model`; None when the model's price is not known.

    Prices can depend on the length of a call's prompt, so the usage of several calls must be
    priced call by call and added up afterwards.
    """
    tariff = TARIFFS.get(_SNAPSHOT.sub("", model))
    if tariff is None:
        return None
    price = tariff.price
    prompt_tokens = usage.input + usage.cache_read + usage.cache_write
    if tariff.long_prompt is not None and tariff.long_price and prompt_tokens > tariff.long_prompt:
        price = tariff.long_price
    return (
        usage.input * price.input
        + usage.output * price.output
        + usage.cache_read * price.cache_read
        + usage.cache_write * price.cache_write
    ) / 1_000_000
