"""What the local Anthropic server refuses: a request's shape, its history, its combinations.

It must not know HTTP. Shapes come from the SDK's own parameter types, so that a field which the
API does not have is found; the other rules are those of the Messages API's documentation.
"""

import hashlib
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, cast

from anthropic.types.message_count_tokens_params import MessageCountTokensParams
from anthropic.types.message_create_params import MessageCreateParamsBase
from pydantic import BaseModel, ConfigDict, TypeAdapter, ValidationError

MAX_MARKS = 4
NO_DISABLED_THINKING = ("claude-sonnet-5-5", "claude-opus-5-5")
_NAME = re.compile(r"^[a-zA-Z0-9_-]{1,128}$")
_UNSUPPORTED = frozenset(
    {"minimum", "maximum", "multipleOf", "minLength", "maxLength", "minItems", "maxItems"}
)


class BadRequest(Exception):
    """The request is refused with 400 and this text."""


class _Create(MessageCreateParamsBase, total=False):
    __pydantic_config__ = ConfigDict(extra="forbid")  # type: ignore[misc]
    stream: bool


class _Count(MessageCountTokensParams, total=False):
    __pydantic_config__ = ConfigDict(extra="forbid")  # type: ignore[misc]


_CREATE = TypeAdapter[Any](_Create)
_COUNT = TypeAdapter[Any](_Count)


def check_create(body: Mapping[str, Any]) -> None:
    """Checks the body of a message request.

    Raises:
        BadRequest: naming the first rule that it breaks.
    """
    _check_shape(_CREATE, body)
    if body["max_tokens"] < 1:
        raise BadRequest("max_tokens: must be at least 1")
    _check_prompt(body)


def check_count(body: Mapping[str, Any]) -> None:
    """Checks the body of a count_tokens request.

    Raises:
        BadRequest: naming the first rule that it breaks.
    """
    _check_shape(_COUNT, body)
    _check_prompt(body)


def signature(body: Mapping[str, Any], place: int, thinking: str) -> str:
    """The signature of a thinking block in message `place`: it hangs on all that is before it."""
    before = _bare([body.get("system"), body.get("tools"), body["messages"][:place], thinking])
    return "sig_" + hashlib.sha256(json.dumps(before).encode()).hexdigest()


def _check_shape(adapter: TypeAdapter[Any], body: Mapping[str, Any]) -> None:
    try:
        _force(adapter.validate_python(body), "")
    except ValidationError as err:
        problem = err.errors(include_url=False, include_input=False)[0]
        where = ".".join(str(part) for part in problem["loc"])
        raise BadRequest(f"{where}: {problem['msg']}") from err


def _force(value: object, where: str) -> None:
    """Validates what pydantic leaves for later (iterables), and refuses lax matches.

    The SDK's unions also hold its response models, which accept any extra field: a value that
    matched only one of those has a field too many.
    """
    if isinstance(value, BaseModel):
        raise BadRequest(f"{where}: Extra inputs are not permitted")
    if isinstance(value, dict):
        for name, part in cast("dict[str, object]", value).items():
            _force(part, f"{where}.{name}".lstrip("."))
    elif isinstance(value, Iterable) and not isinstance(value, str | bytes):
        for place, part in enumerate(cast("Iterable[object]", value)):
            _force(part, f"{where}.{place}".lstrip("."))


def _check_prompt(body: Mapping[str, Any]) -> None:
    if body.get("tool_choice", {}).get("type") in ("any", "tool"):
        raise BadRequest("tool_choice: forced tool use is not supported on this model")
    is_off = body.get("thinking", {}).get("type") == "disabled"
    if is_off and body["model"] in NO_DISABLED_THINKING:
        raise BadRequest('thinking: "thinking.type.disabled" is not supported for this model')
    marks = json.dumps(body).count('"cache_control":')
    if marks > MAX_MARKS:
        raise BadRequest(
            f"A maximum of 4 blocks with cache_control may be provided. Found {marks}."
        )
    _check_tools(body.get("tools", ()))
    system = body.get("system", ())
    _check_texts([] if isinstance(system, str) else system, "system")
    _check_messages(body)
    _check_search_results(body["messages"])


def _check_tools(tools: Iterable[Mapping[str, Any]]) -> None:
    seen: set[str] = set()
    for place, tool in enumerate(tools):
        name = tool["name"]
        if not _NAME.match(name):
            raise BadRequest(f"tools.{place}.name: must match {_NAME.pattern}")
        if name in seen:
            raise BadRequest("tools: Tool names must be unique.")
        seen.add(name)
        if tool.get("strict"):
            _check_strict(tool["input_schema"], f"tools.{place}.input_schema")


def _check_strict(schema: object, where: str) -> None:
    if isinstance(schema, list):
        for part in cast("list[object]", schema):
            _check_strict(part, where)
    if not isinstance(schema, dict):
        return
    node = cast("dict[str, Any]", schema)
    if node.get("type") == "object" and node.get("additionalProperties") is not False:
        raise BadRequest(f"{where}: 'additionalProperties' must be false in a strict tool")
    found = _UNSUPPORTED & node.keys()
    # Within "properties" the keys are the names of arguments, not keywords.
    if found and not where.endswith(".properties"):
        raise BadRequest(f"{where}: {min(found)} is not supported in a strict tool")
    for name, part in node.items():
        _check_strict(part, f"{where}.{name}")


def _check_messages(body: Mapping[str, Any]) -> None:
    messages = body["messages"]
    if not messages:
        raise BadRequest("messages: at least one message is required")
    if messages[0]["role"] != "user":
        raise BadRequest('messages: first message must use the "user" role')
    if messages[-1]["role"] != "user":
        raise BadRequest(
            "This model does not support assistant message prefill. "
            "The conversation must end with a user message."
        )
    asked: list[str] = []
    seen: set[str] = set()
    for place, message in enumerate(messages):
        where, content = f"messages.{place}", message["content"]
        blocks = [{"type": "text", "text": content}] if isinstance(content, str) else content
        if not blocks:
            raise BadRequest(f"{where}: user messages must have non-empty content")
        _check_texts(blocks, where)
        _check_results(blocks, asked, where)
        asked = [block["id"] for block in blocks if block["type"] == "tool_use"]
        if asked and message["role"] != "assistant":
            raise BadRequest(f"{where}: `tool_use` blocks can only be in assistant messages")
        if len({*asked}) < len(asked) or seen & {*asked}:
            raise BadRequest(f"{where}: `tool_use` ids must be unique")
        seen.update(asked)
        _check_thinking(body, place, blocks)
    if asked:
        raise BadRequest(_missing(f"messages.{len(messages) - 1}", asked))


def _check_texts(blocks: Iterable[Mapping[str, Any]], where: str) -> None:
    for block in blocks:
        if block["type"] == "text" and not block["text"]:
            raise BadRequest(f"{where}: text content blocks must be non-empty")
        if block["type"] == "text" and not block["text"].strip():
            raise BadRequest(f"{where}: text content blocks must contain non-whitespace text")


def _check_results(blocks: Sequence[Mapping[str, Any]], asked: list[str], where: str) -> None:
    kinds = [block["type"] for block in blocks]
    results = [block["tool_use_id"] for block in blocks if block["type"] == "tool_result"]
    if missing := [call for call in asked if call not in results]:
        raise BadRequest(_missing(where, missing))
    if orphans := [result for result in results if result not in asked]:
        raise BadRequest(
            f"{where}: unexpected `tool_use_id` found in `tool_result` blocks: {orphans[0]}. "
            "Each `tool_result` block must have a corresponding `tool_use` block in the "
            "previous message."
        )
    if len({*results}) < len(results):
        raise BadRequest(f"{where}: each tool_use must have a single result")
    if "tool_result" in kinds[len(results) :]:
        raise BadRequest(f"{where}: tool_result blocks must come before all other content")


def _missing(where: str, calls: list[str]) -> str:
    return (
        f"{where}: `tool_use` ids were found without `tool_result` blocks immediately after: "
        f"{', '.join(calls)}. Each `tool_use` block must have a corresponding `tool_result` "
        "block in the next message."
    )


def _check_thinking(
    body: Mapping[str, Any], place: int, blocks: Sequence[Mapping[str, Any]]
) -> None:
    for block in blocks:
        if block["type"] != "thinking":
            continue
        if block["signature"] != signature(body, place, block["thinking"]):
            raise BadRequest(f"messages.{place}: Invalid `signature` in `thinking` block")


def _check_search_results(messages: Iterable[Mapping[str, Any]]) -> None:
    settings: set[bool] = set()
    for place, message in enumerate(messages):
        blocks = [] if isinstance(message["content"], str) else message["content"]
        groups = [block.get("content", "") for block in blocks if block["type"] == "tool_result"]
        groups = [group for group in groups if not isinstance(group, str)]
        for group in [*groups, blocks]:
            found = [block for block in group if block["type"] == "search_result"]
            if found and group is not blocks and len(found) < len(group):
                raise BadRequest(
                    f"messages.{place}: a tool_result that has search_result blocks may have "
                    "no others"
                )
            for block in found:
                if not block["content"]:
                    raise BadRequest(f"messages.{place}: search_result content is empty")
                _check_texts(block["content"], f"messages.{place}.search_result")
                settings.add(bool(block.get("citations", {}).get("enabled")))
    if len(settings) > 1:
        raise BadRequest("citations must be enabled for all search results or for none")


def _bare(value: object) -> object:
    """`value` without cache marks, which may move without breaking a signature."""
    if isinstance(value, dict):
        pairs = cast("dict[str, object]", value).items()
        return {name: _bare(part) for name, part in pairs if name != "cache_control"}
    if isinstance(value, list | tuple):
        return [_bare(part) for part in cast("list[object]", value)]
    return value
