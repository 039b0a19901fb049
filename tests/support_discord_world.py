"""Discord's objects as its API shows them, for the local server and the tests.

It must not know Footnote: everything here is Discord's own shapes and rules.
"""

import itertools
import time
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

EPOCH_MS = 1_420_070_400_000
TEXT, DM, VOICE, NEWS, NEWS_THREAD, THREAD, FORUM = 0, 1, 2, 5, 10, 11, 15
VIEW, SEND, MANAGE_MESSAGES = 1 << 10, 1 << 11, 1 << 13
EMBED, ATTACH, HISTORY, REACT = 1 << 14, 1 << 15, 1 << 16, 1 << 6
CREATE_THREADS, SEND_IN_THREADS = 1 << 35, 1 << 38
INVITED = VIEW | SEND | EMBED | ATTACH | HISTORY | REACT | CREATE_THREADS | SEND_IN_THREADS
MESSAGE_CONTENT_INTENT = 1 << 15

Json = dict[str, Any]
_counter = itertools.count(1)


def snowflake(at: float | None = None) -> str:
    """A fresh id, made `at` (Unix seconds; now when None)."""
    ms = int((time.time() if at is None else at) * 1000)
    return str(((ms - EPOCH_MS) << 22) | (next(_counter) & 0x3FFFFF))


def iso(snow: str) -> str:
    """The time in an id, as the API writes it."""
    seconds = ((int(snow) >> 22) + EPOCH_MS) / 1000
    return datetime.fromtimestamp(seconds, UTC).isoformat()


@dataclass
class ApiError(Exception):
    """An error answer of the API: HTTP status, Discord's code, extra headers and fields."""

    status: int
    code: int
    text: str = "error"
    headers: dict[str, str] = field(default_factory=dict[str, str])
    extra: Json = field(default_factory=dict[str, Any])


class World:
    """Users, servers, channels and messages, and Discord's rules about them."""

    def __init__(self) -> None:
        self.bot = self._user("footnote", is_bot=True)
        self.application: Json = {
            "id": self.bot["id"],
            "name": "footnote",
            "icon": None,
            "description": "",
            "bot_public": False,
            "bot_require_code_grant": False,
            "verify_key": "00",
            "flags": 1 << 19,
            "owner": self.bot,
            "team": None,
            "summary": "",
            "interactions_endpoint_url": None,
        }
        self.users: dict[str, Json] = {self.bot["id"]: self.bot}
        self.guilds: dict[str, Json] = {}
        self.channels: dict[str, Json] = {}
        self.messages: dict[str, dict[str, Json]] = {}
        self.members: dict[tuple[str, str], Json] = {}
        self.commands: list[Json] = []
        self.nonces: dict[tuple[str, str], str] = {}
        self.files: dict[str, bytes] = {}

    def _user(self, name: str, *, is_bot: bool = False) -> Json:
        return {
            "id": snowflake(),
            "username": name,
            "global_name": name,
            "discriminator": "0",
            "avatar": None,
            "bot": is_bot,
        }

    def user(self, name: str, *, is_bot: bool = False) -> Json:
        made = self._user(name, is_bot=is_bot)
        self.users[made["id"]] = made
        return made

    def guild(self, *users: Json, permissions: int = INVITED) -> Json:
        """A server with the bot and `users` in it; the bot has a managed role."""
        gid, role = snowflake(), snowflake()
        everyone = {"id": gid, "name": "@everyone", "permissions": str(VIEW | SEND | HISTORY)}
        managed = {
            "id": role,
            "name": "footnote",
            "permissions": str(permissions),
            "managed": True,
            "tags": {"bot_id": self.bot["id"]},
        }
        common = {"color": 0, "hoist": False, "position": 0, "mentionable": True, "flags": 0}
        made = {
            "id": gid,
            "name": "g",
            "owner_id": snowflake(),
            "roles": [{"managed": False, **common, **everyone}, {**common, **managed}],
            "emojis": [],
            "stickers": [],
            "features": [],
            "verification_level": 0,
            "role": role,
        }
        if permissions != INVITED:
            everyone_role: Json = made["roles"][0]
            everyone_role["permissions"] = str(permissions)
        self.guilds[gid] = made
        self.join(made, self.bot, role)
        for user in users:
            self.join(made, user)
        return made

    def join(self, guild: Json, user: Json, *roles: str) -> None:
        self.members[guild["id"], user["id"]] = {
            "user": user,
            "roles": list(roles),
            "joined_at": iso(snowflake()),
            "deaf": False,
            "mute": False,
            "flags": 0,
        }

    def channel(self, guild: Json | None, kind: int = TEXT, **more: Any) -> Json:
        """A channel of `guild`, or a DM when None."""
        made: Json = {"id": snowflake(), "type": kind, "last_message_id": None, **more}
        if guild is not None:
            made |= {"guild_id": guild["id"], "name": more.get("name", "c"), "position": 0}
            made |= {"permission_overwrites": more.get("permission_overwrites", [])}
        if kind == VOICE:
            made |= {"bitrate": 64_000, "user_limit": 0, "rtc_region": None}
        self.channels[made["id"]] = made
        self.messages[made["id"]] = {}
        return made

    def thread(
        self, parent: Json, owner: Json, *, thread_id: str | None = None, **more: Any
    ) -> Json:
        made: Json = {
            "id": thread_id or snowflake(),
            "type": NEWS_THREAD if parent["type"] == NEWS else THREAD,
            "guild_id": parent["guild_id"],
            "parent_id": parent["id"],
            "owner_id": owner["id"],
            "name": more.pop("name", "t"),
            "last_message_id": None,
            "message_count": 0,
            "member_count": 1,
            "thread_metadata": {
                "archived": more.pop("is_archived", False),
                "locked": more.pop("is_locked", False),
                "auto_archive_duration": 1440,
                "archive_timestamp": iso(snowflake()),
            },
            **more,
        }
        self.channels[made["id"]] = made
        self.messages[made["id"]] = {}
        return made

    def guild_payload(self, guild: Json) -> Json:
        """What GUILD_CREATE carries."""
        mine = [c for c in self.channels.values() if c.get("guild_id") == guild["id"]]
        threads = [c for c in mine if c["type"] in (THREAD, NEWS_THREAD)]
        active = [c for c in threads if not c["thread_metadata"]["archived"]]
        members = [m for (g, _), m in self.members.items() if g == guild["id"]]
        return {
            **guild,
            "member_count": len(members),
            "members": members,
            "channels": [c for c in mine if c not in threads],
            "threads": active,
        }

    def message_payload(self, channel: Json, author: Json, content: str = "", **more: Any) -> Json:
        """A message as the API shows it; `at` dates it, `ping` mentions without a token."""
        mid = more.pop("id", None) or snowflake(more.pop("at", None))
        mentions = [u for u in self.users.values() if f"<@{u['id']}>" in content]
        ping = more.pop("ping", None)
        if ping is not None and ping not in mentions:
            mentions.append(ping)
        made: Json = {
            "id": mid,
            "channel_id": channel["id"],
            "author": author,
            "content": content,
            "timestamp": iso(mid),
            "edited_timestamp": None,
            "tts": False,
            "mention_everyone": "@everyone" in content,
            "mentions": mentions,
            "mention_roles": [
                g["role"] for g in self.guilds.values() if f"<@&{g['role']}>" in content
            ],
            "attachments": [],
            "embeds": [],
            "components": [],
            "pinned": False,
            "type": 19 if "message_reference" in more else 0,
            "flags": 0,
            **more,
        }
        return made

    def post(self, channel: Json, author: Json, content: str = "", **more: Any) -> Json:
        """A message as by `message_payload`, stored."""
        made = self.message_payload(channel, author, content, **more)
        mid = made["id"]
        reference = made.get("message_reference")
        if reference and "referenced_message" not in made:
            source = self.messages.get(reference.get("channel_id", channel["id"]), {})
            made["referenced_message"] = source.get(reference["message_id"])
        if guild_id := channel.get("guild_id"):
            made["guild_id"] = guild_id
            member = self.members.get((guild_id, author["id"]))
            if member is not None:
                made["member"] = {k: v for k, v in member.items() if k != "user"}
        self.messages[channel["id"]][mid] = made
        channel["last_message_id"] = mid
        return made

    def attachment(self, base: str, name: str, data: bytes) -> Json:
        """A file; `content_type` is left out, as Discord does for pasted text."""
        aid = snowflake()
        self.files[aid] = data
        url = f"{base}/cdn/{aid}/{name}"
        return {"id": aid, "filename": name, "size": len(data), "url": url, "proxy_url": url}
