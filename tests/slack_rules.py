"""Slack's published limits, as the error name that Slack answers with; it knows no server."""

import re
from typing import Any

LIVE = re.compile(r"<!(?:channel|here|everyone|subteam\^\w+)[^>\n]*>|<@[UWB]\w+[^>\n]*>")
_DELIMITER = re.compile(r"\s*\|?\s*:?-+:?\s*(\|\s*:?-*:?\s*)*\|?\s*")
_CHILDREN = {"section", "context", "divider", "actions"}


class SlackError(Exception):
    """An API answer with `ok: false`."""


def check(condition: bool, error: str, why: str = "") -> None:
    if not condition:
        raise SlackError(error, why)


def check_message(args: dict[str, Any], *, is_update: bool) -> None:
    """The limits of chat.postMessage, chat.update and chat.postEphemeral."""
    text, blocks, markdown = args.get("text"), args.get("blocks") or [], args.get("markdown_text")
    check(bool(text or blocks or markdown or args.get("attachments")), "no_text")
    if markdown:
        check(not text and not blocks, "markdown_text_conflict")
        check(len(markdown) <= 12_000, "msg_too_long")
        check_tables([markdown])
    check(len(text or "") <= (4_000 if is_update else 40_000), "msg_too_long")
    check(not args.get("link_names") and args.get("parse") != "full", "live_mentions_asked_for")
    check_blocks(blocks, 50)
    for attachment in args.get("attachments") or []:
        check(len(attachment.get("text", "")) <= 4_000, "attachment_payload_limit_exceeded")


def check_blocks(blocks: list[dict[str, Any]], most: int, total_chars: int = 13_200) -> None:
    """The limits of blocks in a message (50) or a view (100)."""
    check(len(blocks) <= most, "invalid_blocks", "too many blocks")
    for block in blocks:
        _check_block(block)
    total = sum(len(text) for block in blocks for text in texts_of(block))
    check(total <= total_chars, "msg_blocks_too_long", str(total))
    check_tables([block["text"] for block in blocks if block["type"] == "markdown"])
    ids = [block["block_id"] for block in blocks if "block_id" in block]
    check(len(ids) == len(set(ids)), "invalid_blocks", "block_id twice")


def check_view(view: dict[str, Any]) -> None:
    """The limits of a modal or a home tab."""
    if view["type"] == "modal":
        check(0 < len(view["title"]["text"]) <= 24, "invalid_arguments", "title")
    check(len(view.get("private_metadata", "")) <= 3_000, "invalid_arguments", "private_metadata")
    check_blocks(view["blocks"], 100, 100_000)


def check_tables(markdowns: list[str]) -> None:
    """Every table becomes a block: 50 a message with the text between, 10,000 characters in all."""
    tables = [table for text in markdowns for table in _tables(text)]
    check(len(tables) * 2 <= 50, "invalid_blocks", f"{len(tables)} tables")
    check(sum(len(row) for table in tables for row in table) <= 10_000, "invalid_blocks", "cells")
    for table in tables:
        check(len(table) <= 100, "invalid_blocks", f"{len(table)} rows")
        check(max(row.strip().strip("|").count("|") + 1 for row in table) <= 20, "invalid_blocks")


def _tables(text: str) -> list[list[str]]:
    tables: list[list[str]] = []
    is_code, before, is_table = False, "", False
    for line in text.split("\n"):
        if line.lstrip(" >").startswith(("```", "~~~")):
            is_code = not is_code
        if is_code or "|" not in line:
            is_table = False
        elif is_table:
            tables[-1].append(line)
        elif "|" in before and _DELIMITER.fullmatch(line):
            tables.append([before])
            is_table = True
        before = line
    return tables


def _check_block(block: dict[str, Any]) -> None:
    kind = block["type"]
    check(len(block.get("block_id", "")) <= 255, "invalid_blocks", "block_id")
    if kind == "section":
        if "text" in block:
            _check_text(block["text"], 3_000)
        check("text" in block or "fields" in block, "invalid_blocks", "empty section")
        check(len(block.get("fields", [])) <= 10, "invalid_blocks", "fields")
        if "accessory" in block:
            _check_element(block["accessory"])
    elif kind == "context":
        check(1 <= len(block["elements"]) <= 10, "invalid_blocks", "context elements")
        for element in block["elements"]:
            _check_text(element, 3_000)
    elif kind in ("actions", "context_actions"):
        most = 25 if kind == "actions" else 5
        check(1 <= len(block["elements"]) <= most, "invalid_blocks", kind)
        for element in block["elements"]:
            _check_element(element)
        ids = [element["action_id"] for element in block["elements"]]
        check(len(ids) == len(set(ids)), "invalid_blocks", "action_id twice")
    elif kind == "header":
        _check_text(block["text"], 150)
        check(block["text"]["type"] == "plain_text", "invalid_blocks", "header type")
    elif kind == "markdown":
        check(0 < len(block["text"]) <= 12_000, "invalid_blocks", "markdown length")
    elif kind == "container":
        check(1 <= len(block["child_blocks"]) <= 10, "invalid_blocks", "children")
        _check_text(block["title"], 150)
        if "subtitle" in block:
            _check_text(block["subtitle"], 150)
        check(
            not (block.get("is_collapsible") and block.get("has_header_divider")), "invalid_blocks"
        )
        is_collapsible = bool(block.get("is_collapsible"))
        check(is_collapsible or not block.get("default_collapsed"), "invalid_blocks")
        for child in block["child_blocks"]:
            check(child["type"] in _CHILDREN, "invalid_blocks", "child type")
            _check_block(child)
    else:
        check(kind == "divider", "invalid_blocks", kind)


def _check_text(text: dict[str, Any], limit: int) -> None:
    check(text["type"] in ("plain_text", "mrkdwn"), "invalid_blocks", "text type")
    check(0 < len(text["text"]) <= limit, "invalid_blocks", f"text length {len(text['text'])}")


def _check_element(element: dict[str, Any]) -> None:
    check(0 < len(element["action_id"]) <= 255, "invalid_blocks", "action_id")
    if element["type"] == "feedback_buttons":
        for name in ("positive_button", "negative_button"):
            _check_text(element[name]["text"], 75)
            check(len(element[name]["value"]) <= 2_000, "invalid_blocks", "value")
        return
    check(element["type"] == "button", "invalid_blocks", element["type"])
    _check_text(element["text"], 75)
    check(element["text"]["type"] == "plain_text", "invalid_blocks", "button text")
    check(len(element.get("value", "")) <= 2_000, "invalid_blocks", "value")
    confirm = element.get("confirm")
    if confirm:
        _check_text(confirm["title"], 100)
        _check_text(confirm["text"], 300)
        _check_text(confirm["confirm"], 30)
        _check_text(confirm["deny"], 30)


def texts_of(value: Any) -> list[str]:
    """Every text that a block shows, in order."""
    if isinstance(value, list):
        return [text for item in value for text in texts_of(item)]
    if not isinstance(value, dict):
        return []
    if value.get("type") in ("plain_text", "mrkdwn", "markdown") and isinstance(value["text"], str):
        return [value["text"]]
    keys = ("title", "subtitle", "text", "fields", "elements", "child_blocks", "accessory")
    return [text for key in keys if key in value for text in texts_of(value[key])]


def live_mentions(message: dict[str, Any]) -> list[str]:
    """What Slack would parse as a mention in a message: everywhere but in plain_text objects."""

    def marked_up(value: Any) -> list[str]:
        if isinstance(value, list):
            return [text for item in value for text in marked_up(item)]
        if not isinstance(value, dict):
            return []
        if value.get("type") == "plain_text":
            return []
        own = [value["text"]] if isinstance(value.get("text"), str) else []
        return own + [
            t for item in value.values() if not isinstance(item, str) for t in marked_up(item)
        ]

    return [hit for text in marked_up(message) for hit in LIVE.findall(text)]
