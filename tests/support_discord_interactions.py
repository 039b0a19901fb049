"""Discord's interaction callbacks and webhooks: one acknowledgement, then edits and follow-ups.

It must not know Footnote.
"""

import re
import time

from tests.support_discord_world import ApiError, Json, World, snowflake


class Interactions:
    """`interactions` is each token's state, `responses` what was shown for it.

    A state's `is_late` makes the acknowledgement fail, `is_expired` everything after it.
    """

    def __init__(self, world: World) -> None:
        self.world = world
        self.pings: list[Json] = []
        self.interactions: dict[str, Json] = {}
        self.responses: dict[str, list[Json]] = {}
        self.base = ""

    def _store_files(self, message: Json, body: Json) -> None:
        for name, data in body.get("_files", []):
            message["attachments"].append(self.world.attachment(self.base, name, data))

    def _take(self, message: Json, body: Json) -> None:
        """What `body` says of `message`, its files stored as attachments."""
        message |= {k: v for k, v in body.items() if k not in ("_files", "attachments")}
        if "attachments" in body:
            message["attachments"] = []
        self._store_files(message, body)

    def _check_text(self, body: Json) -> None:
        content = body.get("content")
        if content is not None and len(content) > 2000:
            raise ApiError(400, 50035, "Invalid Form Body: content over 2000")
        for row in body.get("components") or []:
            for item in row.get("components", []):
                if len(item.get("custom_id", "")) > 100:
                    raise ApiError(400, 50035, "Invalid Form Body: custom_id")
                if len(item.get("options", [])) > 25:
                    raise ApiError(400, 50035, "Invalid Form Body: options")

    def _note_ping(self, body: Json, *, is_reply: bool) -> None:
        allowed = body.get("allowed_mentions")
        parse = ["everyone", "users", "roles"] if allowed is None else allowed.get("parse", [])
        text = body.get("content") or ""
        kinds = {"everyone": r"@everyone|@here", "users": r"<@!?\d", "roles": r"<@&\d"}
        has_token = any(re.search(kinds[kind], text) for kind in parse)
        is_reply_ping = is_reply and (allowed is None or allowed.get("replied_user", True))
        if has_token or is_reply_ping or (allowed or {}).get("users"):
            self.pings.append(body)

    def _callback(self, iid: str, token: str, body: Json) -> None:
        state = self.interactions.get(token)
        if state is None or state["id"] != iid or state.get("is_late"):
            raise ApiError(404, 10062, "Unknown interaction")
        if "callback" in state:
            raise ApiError(400, 40060, "Interaction has already been acknowledged")
        state["callback"] = body
        state["acked_at"] = time.monotonic()
        data = body.get("data") or {}
        self._check_text(data)
        if body["type"] in (4, 7):
            self.responses.setdefault(token, []).append({**data, "id": "@original"})

    def _followup(self, token: str, body: Json) -> Json:
        self._token(token)
        self._check_text(body)
        self._note_ping(body, is_reply=False)
        made: Json = {
            "id": snowflake(), "channel_id": self.interactions[token]["channel_id"], "type": 0,
            "author": self.world.bot, "timestamp": "2026-01-01T00:00:00+00:00", "mentions": [],
            "edited_timestamp": None, "tts": False, "mention_everyone": False, "pinned": False,
            "mention_roles": [], "attachments": [], "embeds": [], "content": "",
        }  # fmt: skip
        self._take(made, body)
        self.responses.setdefault(token, []).append(made)
        return made

    def _webhook_message(self, verb: str, token: str, mid: str, body: Json) -> Json | None:
        self._token(token)
        sent = self.responses.setdefault(token, [])
        if mid == f"{self.interactions[token]['id']}0":
            mid = "@original"
        found = [m for m in sent if m["id"] == mid]
        if verb == "DELETE":
            sent[:] = [m for m in sent if m not in found]
            return None
        if verb == "PATCH" and not found and mid == "@original":
            made = self._followup(token, body)
            made["id"] = "@original"
            return {**made, "id": snowflake()}
        if not found:
            raise ApiError(404, 10008, "Unknown Message")
        message = found[0]
        self._check_text(body)
        self._note_ping(body, is_reply=False)
        self._take(message, body)
        return {**self._shape(token), **message, "id": snowflake()}

    def _shape(self, token: str) -> Json:
        made = self._followup(token, {})
        self.responses[token].remove(made)
        return made

    def _token(self, token: str) -> None:
        state = self.interactions.get(token)
        if state is None or state.get("is_expired"):
            raise ApiError(401, 50027, "Invalid Webhook Token")
