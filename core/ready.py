"""The ready streams: reads them, notices dead workers, sweeps what they left behind.

It must not know what an entry's message is; it returns heads as the scripts give them.
"""

import asyncio
import secrets
import time
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

from redis.exceptions import RedisError

from core import keys
from core.store import MAX_BLOCK_MS, Store

Workplace = tuple[str, str]
"""(platform, workspace): whose messages this process can answer."""

Entry = tuple[str, str, str]
"""(tag, entry id, conversation key)"""

_SWEEP_ALL_S = 300.0
"""Death is noticed through the workers' signs of life; this is for what nobody could notice."""

_SWEEP_AT_ONCE = 16

_HOLD_BACK_MIN_S = 1.5
"""While the server is away nobody can renew a lease, so when it is back those who live come first:
longer than the longest pause between two tries of a heartbeat."""


def new_run_id() -> str:
    """A fresh id of 17 characters, safe in a key and in a file's name."""
    return f"r{secrets.token_hex(8)}"


class Ready:
    """Reads for one process, which is `consumer` in every group.

    An entry is abandoned when it was not renewed for seven tenths of `lease_s`, and looked for
    every quarter of it, so that it is taken over before the whole has passed.
    """

    def __init__(
        self, store: Store, consumer: str, lease_s: float, memory_ttl_s: int, run_ttl_s: int
    ) -> None:
        self._store = store
        self._consumer = consumer
        self._lease_s = lease_s
        self._ttls = (memory_ttl_s, run_ttl_s)
        self.claim_ms = int(lease_s * 700)
        self._tick_s = lease_s * 0.25
        self._workplaces: tuple[Workplace, ...] = ()
        self._streams: dict[str, str] = {}
        self._readers: dict[str, asyncio.Task[list[Entry]]] = {}
        self._server_ahead_s = 0.0
        self._last_take = 0.0
        self._next_tick = 0.0
        self._next_sweep = 0.0
        self._suspect_until = 0.0
        self._faults_seen = 0
        self._hold_back_s = max(0.3 * lease_s, _HOLD_BACK_MIN_S)
        self._hold_back_until = 0.0
        self._due: list[float] = []
        self._parked: list[tuple[float, Entry]] = []

    @property
    def tags(self) -> list[str]:
        """The partitions that are read."""
        return list(self._streams.values())

    async def take(
        self,
        workplaces: Sequence[Workplace],
        count: int,
        block_ms: int,
        held: Mapping[str, Sequence[str]],
    ) -> list[Any]:
        """At most `count` heads; empty after `block_ms`. `held` are the leases held, by tag."""
        self._look_at_faults()
        try:
            await self._enter(tuple(workplaces))
            self._last_take = time.monotonic()
            await self.tick()
            if heads := await self._sweep_if_due(count, held):
                return heads
            entries = await self._read(count, min(block_ms, MAX_BLOCK_MS, self._pause_ms()))
            await self._put_back(entries[count:])
            heads = await self._begin(entries[:count])
        except BaseException:
            self._suspect()
            raise
        self._look_at_faults()
        return heads

    def _look_at_faults(self) -> None:
        # Also at those between two takes, when there was no room for more.
        if self._store.faults != self._faults_seen:
            self._faults_seen = self._store.faults
            self._suspect()
            # The server was away: until then only what this process lost may be swept.
            self._hold_back_until = time.monotonic() + self._hold_back_s
            self._due.append(self._hold_back_until)

    def _suspect(self) -> None:
        """A reply may be lost: what it held waits with this consumer, which nobody thinks dead."""
        self._suspect_until = time.monotonic() + 2 * self._lease_s

    async def tick(self) -> None:
        """Shows, now and then, that this process lives, and looks who no longer does."""
        now = time.monotonic()
        if now < self._next_tick:
            return
        self._next_tick = now + self._tick_s
        if now - self._last_take > self._tick_s:
            # This process has no room: what its readers found on a cluster is for others.
            await self._put_back(self._collect())
        server_ms = int((now + self._server_ahead_s) * 1000)
        for platform, workspace in self._workplaces:
            key = keys.workers(platform, workspace)

            async def show(key: str = key) -> list[tuple[bytes, float]]:
                await self._store.client.zadd(key, {self._consumer: server_ms})
                until = server_ms - int(self._lease_s * 500)
                return await self._store.client.zrangebyscore(key, "-inf", until, withscores=True)

            for name, seen_ms in await self._store.retrying(show):
                self._suspect_until = max(self._suspect_until, now + self._tick_s / 2)
                if server_ms - seen_ms > self._lease_s * 5_000:
                    await self._bury((platform, workspace), name.decode())

    def expect(self, wait_s: float, parked: Entry | None = None) -> None:
        """A retry is due in `wait_s`: sweep just after. `parked` is the entry put aside for it."""
        due = time.monotonic() + wait_s + 0.01
        self._due.append(due)
        if parked is not None:
            self._parked.append((due, parked))

    async def leave(self) -> None:
        """Hands over what this consumer still has, and signs off."""
        for reader in self._readers.values():
            reader.cancel()
        await asyncio.gather(*self._readers.values(), return_exceptions=True)
        self._readers.clear()
        # Nobody else knows when they are due.
        await self._put_back([entry for _, entry in self._parked], keys.LATER)
        await self._store.run_each("leave", [(tag, (self._consumer, 1)) for tag in self.tags])
        for workplace in self._workplaces:
            key = keys.workers(*workplace)
            await self._store.retrying(lambda key=key: self._store.client.zrem(key, self._consumer))

    async def _enter(self, workplaces: tuple[Workplace, ...]) -> None:
        """Makes the streams when the workplaces are new; shows up there before the first read."""
        if workplaces == self._workplaces:
            return
        tags = [tag for place in workplaces for tag in keys.partitions(*place)]
        await self._store.run_each("open", [(tag, ()) for tag in tags])
        # The server's clock in terms of ours, which goes on while a process is stopped.
        seconds, micros = await self._store.retrying(self._store.client.time)
        self._server_ahead_s = seconds + micros / 1e6 - time.monotonic()
        self._streams = {keys.ready(tag): tag for tag in tags}
        self._workplaces = workplaces
        self._next_tick = self._next_sweep = 0.0

    async def _bury(self, workplace: Workplace, consumer: str) -> None:
        """Removes a worker that died long ago, once nothing is pending with it."""
        calls = [(tag, (consumer, 0)) for tag in keys.partitions(*workplace)]
        if all(await self._store.run_each("leave", calls)):
            key = keys.workers(*workplace)
            await self._store.retrying(lambda: self._store.client.zrem(key, consumer))

    # Reading -------------------------------------------------------------------------------------

    async def _read(self, count: int, block_ms: int) -> list[Entry]:
        if self._store.is_cluster:
            return await self._read_cluster(count, block_ms)
        # COUNT is for each stream: this keeps what must be put back small.
        return await self._xread(list(self._streams), max(1, count // 8), block_ms)

    async def _read_cluster(self, count: int, block_ms: int) -> list[Entry]:
        """One reader a partition, as a read may not leave a slot; they outlive this call."""
        for stream in self._streams:
            if stream not in self._readers:
                reading = self._xread([stream], max(1, count // 8), MAX_BLOCK_MS)
                self._readers[stream] = asyncio.create_task(reading)
        await asyncio.wait(
            self._readers.values(),
            timeout=block_ms / 1000,
            return_when=asyncio.FIRST_COMPLETED,
        )
        return self._collect()

    def _collect(self) -> list[Entry]:
        """What the readers that are through have read."""
        done = {name: reader for name, reader in self._readers.items() if reader.done()}
        for name in done:
            del self._readers[name]
        return [entry for reader in done.values() for entry in reader.result()]

    async def _xread(self, streams: list[str], count: int, block_ms: int) -> list[Entry]:
        async def read() -> Any:
            try:
                return await self._store.client.xreadgroup(
                    keys.GROUP, self._consumer, dict.fromkeys(streams, ">"), count, block_ms
                )
            except RedisError as err:
                if "NOGROUP" not in str(err):
                    raise
                # The data set was emptied under us.
                await self._store.run_each("open", [(self._streams[name], ()) for name in streams])
                return []

        reply = await self._store.retrying(read)
        return [
            (self._streams[stream.decode()], entry.decode(), fields[b"c"].decode())
            for stream, entries in reply
            for entry, fields in entries
        ]

    async def _begin(self, entries: Sequence[Entry]) -> list[Any]:
        args: dict[str, list[str]] = defaultdict(list)
        for tag, entry, conversation in entries:
            args[tag] += [entry, conversation, *self._lease()]
        calls = [(tag, (self._consumer, *self._ttls, *rest)) for tag, rest in args.items()]
        return [head for heads in await self._store.run_each("begin", calls) for head in heads]

    async def _put_back(self, entries: Sequence[Entry], holder: str | None = None) -> None:
        args: dict[str, list[str]] = defaultdict(list)
        for tag, entry, conversation in entries:
            args[tag] += [entry, conversation]
        calls = [(tag, (holder or self._consumer, *rest)) for tag, rest in args.items()]
        await self._store.run_each("put_back", calls)

    # Sweeping ------------------------------------------------------------------------------------

    def _pause_ms(self) -> int:
        """How long a read may block before something else is due."""
        now = time.monotonic()
        until = min([now + MAX_BLOCK_MS / 1000, self._next_tick, *self._due])
        if self._suspect_until > now:
            until = min(until, now + self._tick_s)
        return max(1, int((until - now) * 1000))

    async def _sweep_if_due(self, count: int, held: Mapping[str, Sequence[str]]) -> list[Any]:
        now = time.monotonic()
        is_due = any(due <= now for due in self._due)
        if not (is_due or now < self._suspect_until or now >= self._next_sweep):
            return []
        self._due = [due for due in self._due if due > now]
        self._next_sweep = now + _SWEEP_ALL_S
        found: list[Any] = []
        self._look_at_faults()
        holds_back = now < self._hold_back_until
        for tag in self.tags:
            room = min(count - len(found), _SWEEP_AT_ONCE)
            if not room:
                self.expect(0)  # the rest is looked at by the next call
                break
            pairs = [part for _ in range(room) for part in self._lease()]
            leases = held.get(tag, ())
            wait_ms, heads = await self._store.run(
                "sweep",
                tag,
                self._consumer,
                self.claim_ms,
                *self._ttls,
                int(holds_back),
                len(leases),
                *leases,
                *pairs,
            )
            found += heads
            if wait_ms >= 0:
                self.expect(wait_ms / 1000)
        else:
            self._parked = [item for item in self._parked if item[0] > now]
        return found

    def _lease(self) -> tuple[str, str]:
        """A lease's token, which begins with its holder, and an id for the run if it has none."""
        return f"{self._consumer}/{secrets.token_hex(8)}", new_run_id()
