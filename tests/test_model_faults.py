"""The Anthropic client on bad days: each fault ends in the right error, and in good time."""

import asyncio
import time
from collections.abc import AsyncIterator

import pytest

from core.errors import ModelError
from core.model import AnthropicModel
from core.types import StopReason
from tests.anthropic_script import Fault
from tests.anthropic_server import AnthropicServer, HttpError, Reply, Text, ToolUse
from tests.support import wait_until
from tests.support_model import Heard, ask, client, user

AT_ONCE = {"retry-after-ms": "5"}
LONG = Text("Put your name at the top, then how to reach you.")


@pytest.fixture
async def server() -> AsyncIterator[AnthropicServer]:
    async with AnthropicServer() as server:
        yield server


@pytest.fixture
async def model(server: AnthropicServer) -> AsyncIterator[AnthropicModel]:
    model = client(server)
    await model.prepare()
    yield model
    await model.close()


async def failure(model: AnthropicModel, heard: Heard | None = None) -> ModelError:
    with pytest.raises(ModelError) as caught:
        await ask(model, [user("hi")], heard)
    return caught.value


@pytest.mark.parametrize(
    ("fault", "reason"),
    [
        ("overloaded", StopReason.OVERLOADED),
        ("api_error", StopReason.ERROR),
        ("cut", StopReason.ERROR),
        ("no_stop", StopReason.ERROR),
        ("no_reason", StopReason.ERROR),
    ],
)
async def test_a_reply_that_breaks_off_is_retryable_and_never_complete(
    server: AnthropicServer, model: AnthropicModel, fault: Fault, reason: StopReason
) -> None:
    server.script(Reply([LONG], fault=fault))
    heard = Heard()
    error = await failure(model, heard)
    assert (error.reason, error.retryable) == (reason, True)
    assert heard.text
    assert LONG.text.startswith(heard.text)
    assert heard.reply is None
    assert len(server.requests) == 1, "the SDK must not have tried again by itself"


@pytest.mark.parametrize("fault", ["overloaded", "cut"])
async def test_after_a_broken_reply_the_same_request_can_be_made_again(
    server: AnthropicServer, model: AnthropicModel, fault: Fault
) -> None:
    server.script(Reply([LONG], fault=fault), [LONG])
    await failure(model)
    assert (await ask(model, [user("hi")])).text == LONG.text


async def test_silence_in_mid_reply_is_retryable(server: AnthropicServer) -> None:
    model = client(server, read_timeout_s=0.3)
    server.script(Reply([LONG], fault="stall"))
    error = await failure(model)
    assert (error.reason, error.retryable) == (StopReason.ERROR, True)
    await model.close()


async def test_a_call_cut_by_the_output_limit_keeps_the_text_and_names_the_limit(
    server: AnthropicServer, model: AnthropicModel
) -> None:
    call = ToolUse("search_docs", {"query": "a long question about resumes"})
    server.script(Reply([Text("Part one"), call], max_chars=12))
    heard = await ask(model, [user("hi")])
    assert heard.end.stop_reason == "max_tokens"
    assert heard.text == "Part one"
    text, cut = heard.end.blocks
    assert text == {"type": "text", "text": "Part one"}
    assert cut["input"] != call.input


async def test_a_long_retry_after_is_reported_at_once(
    server: AnthropicServer, model: AnthropicModel
) -> None:
    server.script(HttpError.rate_limited(62_291))
    start = time.monotonic()
    error = await failure(model)
    assert (error.reason, error.retryable) == (StopReason.RATE_LIMITED, False)
    assert time.monotonic() - start < 10
    assert len(server.requests) == 1


async def test_a_long_retry_after_given_as_a_date_is_reported_at_once(
    server: AnthropicServer, model: AnthropicModel
) -> None:
    headers = {"retry-after": "Fri, 31 Dec 2100 23:59:59 GMT"}
    server.script(HttpError(429, "rate_limit_error", headers=headers))
    assert (await failure(model)).reason is StopReason.RATE_LIMITED
    assert len(server.requests) == 1


async def test_a_short_retry_after_is_waited_out(
    server: AnthropicServer, model: AnthropicModel
) -> None:
    server.script(HttpError.rate_limited(2), [Text("Here you are.")])
    start = time.monotonic()
    assert (await ask(model, [user("hi")])).text == "Here you are."
    assert 2.0 <= time.monotonic() - start < 14
    assert len(server.requests) == 2


async def test_retries_end_and_tell_of_the_limit(
    server: AnthropicServer, model: AnthropicModel
) -> None:
    server.script(*[HttpError(429, "rate_limit_error", headers=AT_ONCE)] * 3)
    assert (await failure(model)).reason is StopReason.RATE_LIMITED
    assert len(server.requests) == 3


async def test_an_overload_before_the_reply_is_retried_by_the_sdk_and_then_told(
    server: AnthropicServer, model: AnthropicModel
) -> None:
    server.script(*[HttpError(529, "overloaded_error", headers=AT_ONCE)] * 3)
    error = await failure(model)
    assert (error.reason, error.retryable) == (StopReason.OVERLOADED, False)
    assert len(server.requests) == 3


@pytest.mark.parametrize(
    "limit",
    [
        HttpError.tier_spend_limit(),
        HttpError(429, "rate_limit_error", error_code="contract_spend_limit_reached"),
        HttpError.own_spend_limit(),
        HttpError(402, "billing_error", "Your payment is due."),
        HttpError(
            400,
            "invalid_request_error",
            "Your credit balance is too low to access the Anthropic API.",
        ),
    ],
    ids=["tier", "contract", "own", "billing", "credit"],
)
async def test_a_spend_limit_is_told_at_once_and_never_retried(
    server: AnthropicServer, model: AnthropicModel, limit: HttpError
) -> None:
    server.script(limit)
    error = await failure(model)
    assert (error.reason, error.retryable) == (StopReason.SPEND_LIMIT, False)
    assert len(server.requests) == 1


async def test_a_prompt_over_the_context_window_is_context_full(
    server: AnthropicServer, model: AnthropicModel
) -> None:
    server.context_window = 500
    assert (await failure(model)).reason is StopReason.CONTEXT_FULL


async def test_a_request_too_large_is_context_full(
    server: AnthropicServer, model: AnthropicModel
) -> None:
    server.script(HttpError(413, "request_too_large", "Request exceeds the maximum size"))
    assert (await failure(model)).reason is StopReason.CONTEXT_FULL


@pytest.mark.parametrize(
    ("status", "kind"),
    [(401, "authentication_error"), (403, "permission_error"), (404, "not_found_error")],
)
async def test_what_only_the_operator_can_mend_is_an_error_that_names_it(
    server: AnthropicServer, model: AnthropicModel, status: int, kind: str
) -> None:
    server.script(HttpError(status, kind, "what the operator must know"))
    error = await failure(model)
    assert (error.reason, error.retryable) == (StopReason.ERROR, False)
    assert kind in str(error)
    assert "what the operator must know" in str(error)
    assert "test-key" not in str(error)


async def test_no_server_is_an_error(server: AnthropicServer) -> None:
    model = AnthropicModel("test-key", "claude-haiku-5-5", base_url="http://127.0.0.1:9")
    error = await failure(model)
    assert (error.reason, error.retryable) == (StopReason.ERROR, False)
    await model.close()


async def test_a_deadline_ends_the_wait_for_a_retry(
    server: AnthropicServer, model: AnthropicModel
) -> None:
    server.script(HttpError.rate_limited(15))
    start = time.monotonic()
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.2):
            await ask(model, [user("hi")])
    assert time.monotonic() - start < 10
    assert len(server.requests) == 1


@pytest.mark.parametrize(
    "reply", [Reply([LONG], delay_s=60), Reply([LONG], fault="stall")], ids=["head", "middle"]
)
async def test_a_deadline_ends_a_silent_call_and_closes_its_connection(
    server: AnthropicServer, model: AnthropicModel, reply: Reply
) -> None:
    server.script(reply)
    start = time.monotonic()
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.3):
            await ask(model, [user("hi")])
    assert time.monotonic() - start < 10
    await wait_until(lambda: server.disconnects == 1)


async def test_a_cancelled_call_stops_the_model_from_writing_on(
    server: AnthropicServer, model: AnthropicModel
) -> None:
    server.script(Reply([Text("word " * 2_000)], delta_s=0.01, delta_chars=5))
    heard = Heard()
    call = asyncio.create_task(ask(model, [user("hi")], heard))
    await wait_until(lambda: len(heard.texts) > 2)
    call.cancel()
    start = time.monotonic()
    with pytest.raises(asyncio.CancelledError):
        await call
    assert time.monotonic() - start < 5
    await wait_until(lambda: server.disconnects == 1)
