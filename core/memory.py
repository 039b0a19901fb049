"""The facts of a session: kept, replaced, undone, exported.

It must not judge values (core/guard.py does, before `save`) nor know any platform.
"""

import hashlib
import json
import secrets
import time
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote

from core.errors import MemoryRejected
from core.keys import partitions
from core.store import Store
from core.types import FactChange, Session, escape_id

MAX_FACTS = 20
MAX_KEY_CHARS = 40
MAX_VALUE_CHARS = 200

DAY_S = 86_400


@dataclass(frozen=True, slots=True)
class Fact:
    """What is known of a user under one key. `created_at` is in Unix seconds."""

    value: str
    created_at: float
    message_id: str


def value_digest(value: str) -> str:
    """A stand-in for a fact's value (40 hex digits), for a button that must not carry it."""
    return hashlib.sha1(value.encode(errors="replace"), usedforsecurity=False).hexdigest()


def normal_form(value: str) -> str:
    """Equal for values that say the same in other letters or spacing."""
    return " ".join(unicodedata.normalize("NFKC", value).casefold().split())


def facts_from_reply(flat: Sequence[bytes]) -> dict[str, Fact]:
    """Facts by key, oldest first, from a hash's fields and values in turn."""
    facts: dict[str, Fact] = {}
    for key, raw in zip(flat[::2], flat[1::2], strict=True):
        data = json.loads(raw)
        facts[key.decode()] = Fact(data["value"], data["created_at"], data["message_id"])
    return dict(sorted(facts.items(), key=lambda item: item[1].created_at))


class Memory:
    """Facts in Redis, at most MAX_FACTS a session, atomic under concurrent writers."""

    def __init__(self, store: Store, *, memory_ttl_days: int = 180, run_ttl_days: int = 7) -> None:
        self._store = store
        self._memory_ttl_s = memory_ttl_days * DAY_S
        self._run_ttl_s = run_ttl_days * DAY_S

    async def read(self, session: Session) -> tuple[dict[str, Fact], int]:
        """(facts by key, oldest first; epoch), in one round trip; renews the facts' lifetime.

        Raises:
            StoreError: Redis failed.
        """
        reply = await self._store.run("read", session.tag, *_owner(session), self._memory_ttl_s)
        return facts_from_reply(reply[1]), int(reply[0])

    async def facts(self, session: Session) -> dict[str, Fact]:
        """The facts by key, oldest first; renews their lifetime. Raises StoreError."""
        return (await self.read(session))[0]

    async def save(
        self, session: Session, key: str, value: str, *, message_id: str, epoch: int, run_id: str
    ) -> FactChange | None:
        """The change, or None when the fact was known already (also in other letters or spacing).

        Raises:
            MemoryRejected: full, out of bounds, or the user had things forgotten since `epoch`.
            StoreError: Redis failed; nothing is known to be saved.
        """
        key, value = " ".join(key.split()), value.strip()
        _check_bounds(key, value)
        fact = {
            "value": value,
            "norm": normal_form(value),
            "created_at": round(time.time(), 3),
            "message_id": message_id,
            "run_id": run_id,
            # By this a call that is made again after a lost reply knows its own work.
            "op": secrets.token_hex(6),
        }
        outcome, *rest = await self._store.run(
            "save",
            session.tag,
            *_owner(session),
            key,
            json.dumps(fact, ensure_ascii=False),
            epoch,
            MAX_FACTS,
            _undo_rest(run_id, key),
            self._memory_ttl_s,
            self._run_ttl_s,
        )
        match outcome:
            case b"saved":
                old: str | None = json.loads(rest[0])["value"] if rest[0] else None
                return FactChange(session, key, value, old)
            case b"same":
                return None
            case b"full":
                known = ", ".join(sorted(name.decode() for name in rest))
                raise MemoryRejected(
                    f"Not saved: all {MAX_FACTS} facts are in use. The user could have one of "
                    f"these forgotten first: {known}."
                )
            case _:
                raise MemoryRejected(
                    "Not saved: the user asked to forget things while this was being answered."
                )

    async def undo(self, session: Session, run_id: str, key: str) -> bool:
        """Whether what `run_id` saved under `key` was taken back and the earlier value restored.

        False when the fact no longer has the value that the run saved, or is another session's.
        Raises StoreError.
        """
        return bool(
            await self._store.run(
                "undo",
                session.tag,
                *_owner(session),
                key,
                _undo_rest(run_id, key),
                secrets.token_hex(8),
            )
        )

    async def delete(self, session: Session, key: str, digest: str | None = None) -> bool:
        """Whether the fact was deleted; with `digest` only while its value still has it.

        Raises StoreError.
        """
        return bool(
            await self._store.run(
                "delete",
                session.tag,
                *_owner(session),
                key,
                escape_id(key),
                digest or "",
                secrets.token_hex(8),
            )
        )

    async def sessions(self, platform: str, workspace: str, user: str) -> list[Session]:
        """The user's session in every channel where something of the user is kept. StoreError."""
        calls = [(tag, (escape_id(user),)) for tag in partitions(platform, workspace)]
        replies = await self._store.run_each("places", calls)
        channels = {place.split(b"|", 1)[0].decode() for places in replies for place in places}
        return [Session(platform, workspace, unquote(name), user) for name in sorted(channels)]

    async def export(self, session: Session) -> dict[str, Any]:
        """JSON-able: {session, facts, turns, runs} of this user in this channel. StoreError."""
        facts, turns, runs = await self._store.run(
            "export", session.tag, *_owner(session), session.user
        )
        return {
            "session": {
                "platform": session.platform,
                "workspace": session.workspace,
                "channel": session.channel,
                "user": session.user,
            },
            "facts": {
                key: {"value": fact.value, "created_at": fact.created_at}
                for key, fact in facts_from_reply(facts).items()
            },
            "turns": [json.loads(turn) for turn in turns],
            "runs": [json.loads(run) for run in runs],
        }


def _owner(session: Session) -> tuple[str, str, str]:
    return session.key, escape_id(session.channel), escape_id(session.user)


def _undo_rest(run_id: str, key: str) -> str:
    return f"{escape_id(run_id)}/{escape_id(key)}"


def _check_bounds(key: str, value: str) -> None:
    if not key or len(key) > MAX_KEY_CHARS:
        raise MemoryRejected(f"Not saved: a key has 1 to {MAX_KEY_CHARS} characters.")
    if not value or len(value) > MAX_VALUE_CHARS:
        raise MemoryRejected(
            f"Not saved: a value has 1 to {MAX_VALUE_CHARS} characters; keep it to one short fact."
        )
