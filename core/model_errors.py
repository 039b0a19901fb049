"""What the provider's failures amount to, and which of them are not worth another try.

It must not know when a call is made nor what becomes of the run.
"""

from __future__ import annotations

import email.utils
import time
from typing import TYPE_CHECKING, Any, cast

from core.errors import ModelError
from core.types import StopReason

if TYPE_CHECKING:
    from collections.abc import Mapping

    import anthropic
    import httpx2

MAX_RETRY_WAIT_S = 20.0
"""The longest `retry-after` that is waited out; above it people hear of the limit at once."""

_TRANSIENT = frozenset({None, "api_error", "overloaded_error", "rate_limit_error", "timeout_error"})
# These come without an error code, so their documented wording is all there is to go by.
# Source: https://platform.claude.com/docs/en/api/errors and .../api/rate-limits
_SPEND_WORDS = ("api usage limits", "credit balance is too low")
_LENGTH_WORDS = ("prompt is too long", "exceed context limit", "context window")


async def stop_hopeless_retries(response: httpx2.Response) -> None:
    """Tells the SDK not to retry where it would sleep for hours, or can only fail again."""
    if response.status_code < 400:
        return
    is_hopeless = _retry_after_s(response.headers) > MAX_RETRY_WAIT_S
    if response.status_code == 429 and not is_hopeless:
        await response.aread()
        is_hopeless = "spend_limit" in response.text or "usage limits" in response.text
    if is_hopeless:
        response.headers["x-should-retry"] = "false"


def _retry_after_s(headers: httpx2.Headers) -> float:
    """The wait that the SDK would make of the headers, in seconds; 0 when they name none."""
    for name, factor in (("retry-after-ms", 0.001), ("retry-after", 1.0)):
        value = headers.get(name)
        if value is None:
            continue
        try:
            return float(value) * factor
        except ValueError:
            date = email.utils.parsedate_tz(value)
            if date is not None:
                return email.utils.mktime_tz(date) - time.time()
    return 0.0


def model_error(err: anthropic.APIError) -> ModelError:
    """What a failure of the provider before its reply began amounts to."""
    import anthropic

    if not isinstance(err, anthropic.APIStatusError):
        return ModelError(f"no reply: {type(err).__name__}", StopReason.ERROR)
    kind, message = cast("str | None", err.type), err.api_message or ""
    reason = _reason(kind, err.status_code, message, err.error_code or "")
    text = f"{kind or 'HTTP error'} (HTTP {err.status_code}, request {err.request_id})"
    return ModelError(_with_message(text, reason, message), reason)


def stream_error(event: Any) -> ModelError:
    """What an `error` event in the middle of a reply amounts to; `event` is its parsed data."""
    whole = _table(event)
    told = _table(whole.get("error"))
    kind, message = told.get("type"), str(told.get("message") or "")
    reason = _reason(kind, 200, message, str(_table(told.get("details")).get("error_code")))
    text = f"{kind or 'an error'} in mid-reply (request {whole.get('request_id')})"
    return ModelError(_with_message(text, reason, message), reason, retryable=kind in _TRANSIENT)


def _table(value: Any) -> Mapping[str, Any]:
    return cast("Mapping[str, Any]", value) if isinstance(value, dict) else {}


def _with_message(text: str, reason: StopReason, message: str) -> str:
    return f"{text}: {message}" if reason is StopReason.ERROR and message else text


def _reason(kind: str | None, status: int, message: str, code: str) -> StopReason:
    """`kind` and `code` are the provider's `type` and `error_code`; `status` is HTTP's."""
    words = message.lower()
    if kind == "billing_error" or status == 402 or "spend_limit" in code:
        return StopReason.SPEND_LIMIT
    if status in (400, 429) and any(part in words for part in _SPEND_WORDS):
        return StopReason.SPEND_LIMIT
    if kind == "overloaded_error" or status in (503, 529):
        return StopReason.OVERLOADED
    if kind == "rate_limit_error" or status == 429:
        return StopReason.RATE_LIMITED
    if kind == "request_too_large" or status == 413:
        return StopReason.CONTEXT_FULL
    if status == 400 and any(part in words for part in _LENGTH_WORDS):
        return StopReason.CONTEXT_FULL
    return StopReason.ERROR
