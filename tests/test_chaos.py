"""A small version of bench/chaos.py: kills, stops and redeliveries, and nothing goes wrong."""

from pathlib import Path

from bench.chaos import Plan, chaos


async def test_nothing_is_lost_doubled_or_out_of_order_under_kills(tmp_path: Path) -> None:
    plan = Plan(
        messages=40,
        conversations=8,
        seconds=60.0,
        spread_s=6.0,
        kill_server_after_s=3.0,
        pause_s=(0.4, 0.8),
    )
    figures = await chaos(plan, tmp_path)
    assert (figures["missing"], figures["doubled"], figures["out_of_order"]) == (0, 0, 0)
    assert figures["kills"] + figures["stops"] > 0
    assert figures["redelivered"] > 0
