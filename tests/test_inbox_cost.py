"""What the inbox may cost, by the server's own count."""

import time

from core.store import Store
from tests.support_inbox import PLACES, an_inbox, answer, take_one
from tests.support_redis import a_message

pytest_plugins = ("tests.support_redis_fixtures",)

IDLE_S = 5.0


async def test_an_idle_process_sends_at_most_two_commands_a_second(store: Store) -> None:
    inbox = an_inbox(store)
    await inbox.take(PLACES, 64, 1)
    before = await store.client.info("stats")
    until = time.monotonic() + IDLE_S
    while (left := until - time.monotonic()) > 0:
        assert await inbox.take(PLACES, 64, max(1, int(left * 1000))) == []
    after = await store.client.info("stats")
    # Commands within scripts are counted too; our own look at the figures is not.
    sent = after["total_commands_processed"] - before["total_commands_processed"] - 1
    assert sent <= 2 * IDLE_S


async def test_an_answered_message_takes_six_round_trips(store: Store) -> None:
    inbox = an_inbox(store)
    await inbox.take(PLACES, 1, 1)
    await inbox.accept(a_message())
    taken = await take_one(inbox)
    await inbox.save_ref(taken, {"ts": "1"})
    await answer(inbox, taken)
    await inbox.delivered(taken)

    async def trips() -> int:
        stats = await store.client.info("commandstats")
        return sum(
            stats.get(f"cmdstat_{name}", {}).get("calls", 0) for name in ("evalsha", "xreadgroup")
        )

    before = await trips()
    await inbox.accept(a_message("again"))
    taken = await take_one(inbox)
    await inbox.save_ref(taken, {"ts": "2"})
    await answer(inbox, taken)
    assert await inbox.delivered(taken) is None
    assert await trips() - before == 6
