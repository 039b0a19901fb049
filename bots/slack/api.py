"""Slack's Web API as one bounded, typed call; what is posted where is for others to know."""

import asyncio
import logging
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import aiohttp
from slack_sdk.errors import SlackApiError, SlackClientError
from slack_sdk.web.async_client import AsyncWebClient

log = logging.getLogger(__name__)

CALL_TIMEOUT_S = 10.0
MAX_WAIT_S = 60.0
MAX_TRIES = 3
# These methods read their arguments from the form alone, never from a JSON body.
_FORM_METHODS = frozenset({"auth.test", "conversations.replies", "users.info"})
_MISSING = frozenset(
    {
        "access_denied",
        "feature_not_enabled",
        "invalid_agent",
        "method_deprecated",
        "missing_scope",
        "no_permission",
        "not_allowed",
        "not_allowed_token_type",
        "unknown_method",
    }
)


class SlackFault(Exception):
    """A call failed. `code` is Slack's error name, or "connection" when there was no answer."""

    def __init__(self, method: str, code: str, retry_after_s: float = 0.0) -> None:
        super().__init__(f"{method}: {code}")
        self.code = code
        self.retry_after_s = retry_after_s

    @property
    def is_missing(self) -> bool:
        """Whether this workspace or app simply does not have the method."""
        return self.code in _MISSING


@dataclass(frozen=True, slots=True)
class Identity:
    """Who the bot is, by `auth.test`; `scopes` are those that its token has."""

    team: str
    user: str
    bot: str
    team_name: str
    enterprise: str
    scopes: frozenset[str]


class SlackApi:
    """One per process; keeps its connections open. Make it inside the running loop."""

    def __init__(self, token: str, base_url: str) -> None:
        self.token = token
        self.session = aiohttp.ClientSession()
        # No retry handlers: a post that was repeated after a lost answer would stand there twice.
        # Any: slack_sdk's answers are untyped.
        self.client: Any = AsyncWebClient(
            token, base_url=base_url, session=self.session, retry_handlers=[]
        )
        self._lacking: set[str] = set()

    async def close(self) -> None:
        """Closes the connections."""
        await self.session.close()

    def has(self, method: str) -> bool:
        """False once Slack has said that this workspace does not have `method`."""
        return method not in self._lacking

    async def call(
        self,
        method: str,
        *,
        is_patient: bool = True,
        timeout_s: float = CALL_TIMEOUT_S,
        **args: Any,
    ) -> Mapping[str, Any]:
        """Slack's answer. A patient call waits out rate limits, MAX_WAIT_S in all.

        `timeout_s` bounds each try.

        Raises:
            SlackFault: with Slack's error name.
        """
        waited_s = 0.0
        for last in (attempt == MAX_TRIES - 1 for attempt in range(MAX_TRIES)):
            try:
                return await self._call(method, args, timeout_s)
            except SlackFault as fault:
                if fault.is_missing:
                    self._lacking.add(method)
                    log.warning("Slack does not offer %s here: %s", method, fault.code)
                waited_s += fault.retry_after_s
                is_worth_it = is_patient and not last and waited_s <= MAX_WAIT_S
                if fault.code != "ratelimited" or not is_worth_it:
                    raise
                await asyncio.sleep(fault.retry_after_s)
        raise AssertionError("the last attempt returns or raises")

    async def _call(
        self, method: str, args: Mapping[str, Any], timeout_s: float
    ) -> Mapping[str, Any]:
        body = {name: value for name, value in args.items() if value is not None}
        kind = "params" if method in _FORM_METHODS else "json"
        return (await self._answer(method, {kind: body}, timeout_s)).data

    async def _answer(self, method: str, request: Mapping[str, Any], timeout_s: float) -> Any:
        try:
            async with asyncio.timeout(timeout_s):
                return await self.client.api_call(method, **request)
        except SlackApiError as err:
            response: Any = err.response  # pyright: ignore[reportUnknownMemberType] - untyped there
            code = str(response.get("error") or "unknown")
            raise SlackFault(method, code, _retry_after_s(response.headers)) from err
        except (SlackClientError, aiohttp.ClientError, TimeoutError, OSError) as err:
            raise SlackFault(method, "connection") from err

    async def identity(self) -> Identity:
        """Who we are. Raises SlackFault."""
        answer = await self._answer("auth.test", {}, CALL_TIMEOUT_S)
        headers = {str(name).lower(): str(value) for name, value in answer.headers.items()}
        scopes = headers.get("x-oauth-scopes", "").split(",")
        return Identity(
            team=str(answer["team_id"]),
            user=str(answer["user_id"]),
            bot=str(answer.get("bot_id") or ""),
            team_name=str(answer.get("team") or ""),
            enterprise=str(answer.get("enterprise_id") or ""),
            scopes=frozenset(scope.strip() for scope in scopes if scope.strip()),
        )

    async def download(self, url: str, limit: int) -> tuple[bytes, bool]:
        """At most `limit` bytes of a file, and whether there was more. Raises SlackFault."""
        try:
            async with asyncio.timeout(CALL_TIMEOUT_S):
                headers = {"Authorization": f"Bearer {self.token}"}
                async with self.session.get(url, headers=headers) as response:
                    if response.status != 200:
                        raise SlackFault("files", f"http_{response.status}")
                    data = b""
                    while len(data) <= limit:
                        chunk = await response.content.read(limit + 1 - len(data))
                        if not chunk:
                            break
                        data += chunk
        except (aiohttp.ClientError, TimeoutError, OSError) as err:
            raise SlackFault("files", "connection") from err
        return data[:limit], len(data) > limit


def _retry_after_s(headers: Mapping[str, Any]) -> float:
    found: Any = next((v for name, v in headers.items() if name.lower() == "retry-after"), 0)
    try:
        return max(float(str(found).strip("[]'")), 0.0)
    except ValueError:
        return 1.0
