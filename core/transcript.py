"""The canonical transcript: Anthropic's content blocks, built and checked in one place.

Version 1 has text, tool_use, tool_result, search_result and thinking blocks. It must not know
who sends the transcript or where it is kept. Rules are those of the Messages API.
"""

from collections.abc import Mapping, Sequence
from typing import Any, cast

from core.errors import BotError
from core.protocols import Block, ChatMessage

TRANSCRIPT_VERSION = 1
NOTE_SOURCE = "footnote:note"
"""The source of a search_result block that is a note to the model, never cited as a source."""
WEAK_MATCH = (
    "None of these passages matches the question well. If they do not answer it, say that the "
    "documents do not cover it."
)


class TranscriptError(BotError):
    """The transcript breaks a rule of the provider: a bug of ours, found before it is sent."""


def text_block(text: str) -> Block:
    """A text block; `text` must not be blank."""
    return {"type": "text", "text": text}


def search_result_block(source: str, title: str, text: str) -> Block:
    """A passage that the model can cite. A note is one too: all blocks of a result must be."""
    return {
        "type": "search_result",
        "source": source,
        "title": title,
        "content": [text_block(text)],
        "citations": {"enabled": True},
    }


def tool_result_block(call_id: str, content: Sequence[Block], *, is_error: bool) -> Block:
    """The answer to one tool_use."""
    return {
        "type": "tool_result",
        "tool_use_id": call_id,
        "content": list(content),
        "is_error": is_error,
    }


def with_note(content: Sequence[Block], note: str) -> list[Block]:
    """`content` of a tool_result and a note to the model, in the one form that is allowed."""
    if content and content[0]["type"] == "search_result":
        return [*content, search_result_block(NOTE_SOURCE, "Note", note)]
    return [*content, text_block(note)]


def content_text(content: Sequence[Block]) -> str:
    """What the model reads in a tool_result, as plain text."""
    parts: list[str] = []
    for block in content:
        if block["type"] == "search_result":
            body = "\n".join(str(part["text"]) for part in block["content"])
            is_note = block["source"] == NOTE_SOURCE
            parts.append(body if is_note else f"{block['title']} ({block['source']})\n{body}")
        else:
            parts.append(str(block["text"]))
    return "\n\n".join(parts)


def message(role: str, blocks: Sequence[Block]) -> ChatMessage:
    """A message of the transcript."""
    return {"role": role, "content": list(blocks)}


def blocks_of(chat_message: ChatMessage) -> list[Block]:
    """The content blocks of a message."""
    return cast("list[Block]", chat_message["content"])


def tool_calls(blocks: Sequence[Block]) -> list[Block]:
    """The tool_use blocks, in order."""
    return [block for block in blocks if block["type"] == "tool_use"]


def question_of(messages: Sequence[ChatMessage]) -> str:
    """The newest thing that the user said: the last text block of the last turn they began."""
    for chat_message in reversed(messages):
        blocks = blocks_of(chat_message)
        if chat_message["role"] == "user" and blocks[0]["type"] == "text":
            return str(blocks[-1]["text"])
    return ""


def assistant_blocks(blocks: Sequence[Block]) -> list[Block]:
    """The model's reply as it may be sent back: no blank text, no white space at its end."""
    kept = [block for block in blocks if block["type"] != "text" or str(block["text"]).strip()]
    if kept and kept[-1]["type"] == "text":
        kept[-1] = {**kept[-1], "text": str(kept[-1]["text"]).rstrip()}
    return kept


def check(messages: Sequence[ChatMessage]) -> None:
    """Checks the history rules of the Messages API before a request is sent.

    Raises:
        TranscriptError: naming the first rule broken and where.
    """
    if not messages or messages[0]["role"] != "user" or messages[-1]["role"] != "user":
        raise TranscriptError("the first and the last message must be the user's")
    open_calls: list[str] = []
    for index, chat_message in enumerate(messages):
        blocks = blocks_of(chat_message)
        where = f"message {index}"
        if not blocks:
            raise TranscriptError(f"{where} is empty")
        _check_texts(blocks, where)
        if chat_message["role"] == "assistant":
            if open_calls:
                raise TranscriptError(f"{where} comes before the results of {open_calls}")
            if blocks[-1]["type"] == "text" and blocks[-1]["text"] != blocks[-1]["text"].rstrip():
                raise TranscriptError(f"{where} ends in white space")
            open_calls = [str(call["id"]) for call in tool_calls(blocks)]
            continue
        results = [block for block in blocks if block["type"] == "tool_result"]
        if [str(block["tool_use_id"]) for block in results] != open_calls:
            raise TranscriptError(f"{where} must answer exactly the calls {open_calls}, in order")
        if results and blocks[: len(results)] != results:
            raise TranscriptError(f"{where} has text before a tool result")
        if results and len(blocks) > len(results):
            raise TranscriptError(f"{where} has text after its tool results")
        for result in results:
            _check_result(result, where)
        open_calls = []


def _check_texts(blocks: Sequence[Block], where: str) -> None:
    for block in blocks:
        if block["type"] == "text" and not str(block["text"]).strip():
            raise TranscriptError(f"{where} has a blank text block")


def _check_result(result: Mapping[str, Any], where: str) -> None:
    content = cast("list[Block]", result["content"])
    kinds = {block["type"] for block in content}
    if not content or kinds - {"text", "search_result"}:
        raise TranscriptError(f"{where} has an empty or unknown tool result")
    if len(kinds) > 1:
        raise TranscriptError(f"{where} mixes search results with other blocks")
    _check_texts(content, where)
