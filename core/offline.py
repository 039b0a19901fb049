"""The model that needs no key: it searches, picks the sentences that answer best, and cites them.

Deterministic, and honest about itself: it writes nothing of its own beside fixed phrases. It
speaks the same protocol as the provider and must not know that it is not one. Its usage is an
estimate (characters ÷ 4) so that every limit behaves as with a real model; its cost is 0.
"""

import json
import re
from collections.abc import AsyncGenerator, Mapping, Sequence
from typing import Any

from core.extract import best_passages, content_terms
from core.protocols import (
    Block,
    ChatMessage,
    Citation,
    ModelBlockEnd,
    ModelEvent,
    ModelReply,
    ModelText,
)
from core.transcript import NOTE_SOURCE, WEAK_MATCH, blocks_of, question_of, text_block
from core.types import Usage

OFFLINE_MODEL = "offline"
CHARS_PER_TOKEN = 4
SIGNATURE = "*Picked from the documents word for word; no language model wrote this.*"
NOTHING_FITS = "I found nothing in the documents that answers this."

_FILE = re.compile(r"(?<![\w/])[\w.-]+(?:/[\w.-]+)*\.[A-Za-z]{1,5}\b")
_SMALL_TALK = re.compile(
    r"\W*(?:hi|hello|hey|thanks|thank you|thx|ok|okay|great|cool|bye|good morning)\b[\w ]{0,20}\W*",
    re.IGNORECASE,
)
_MAX_FILES = 4
_FEW_TERMS = 1
_STATEMENTS: tuple[tuple[re.Pattern[str], str], ...] = tuple(
    (re.compile(pattern, re.IGNORECASE), key)
    for pattern, key in (
        (r"\bmy name(?: is|'s) (?P<value>[^.,;!?\n]{1,60})", "name"),
        (r"\bcall me (?P<value>[^.,;!?\n]{1,60})", "name"),
        (r"\bi(?: am|'m) (?P<value>an? [^.,;!?\n]{2,80})", "role"),
        (r"\bi live in (?P<value>[^.,;!?\n]{2,60})", "place"),
        (r"\bi(?: am|'m) (?:based|living) in (?P<value>[^.,;!?\n]{2,60})", "place"),
        (r"\bi moved to (?P<value>[^.,;!?\n]{2,60})", "place"),
        (r"\bi prefer (?P<value>[^.;!?\n]{2,120})", "preference"),
    )
)
_REMEMBER = re.compile(
    r"\b(?:remember|note)(?: that|:)\s*(?P<value>[^\n]{2,200}?)\s*(?:[.!]\s*$|[.!]\s+(?=[A-Z])|$)",
    re.IGNORECASE,
)
_MY_THING = re.compile(r"^my (?P<key>[a-z][a-z ]{1,30}?) (?:is|are) (?P<value>.+)$", re.IGNORECASE)
_FACT_LINE = re.compile(r"^- ([a-z][a-z0-9_ ]*): (.*)$", re.MULTILINE)


class OfflineModel:
    """Answers from what `search_docs` and `read_doc` return, and knows when to call them."""

    id = OFFLINE_MODEL
    has_citations = True

    def cost_usd(self, usage: Usage) -> float | None:
        """Nothing: no provider is asked."""
        return 0.0

    async def stream(
        self,
        system: str,
        messages: Sequence[ChatMessage],
        tools: Sequence[Mapping[str, Any]],
        max_tokens: int,
    ) -> AsyncGenerator[ModelEvent]:
        """One reply: calls first, then the answer from their results."""
        sent = len(system) + sum(len(json.dumps(item)) for item in (*messages, *tools))
        question = question_of(messages)
        results = _results(messages)
        names = {str(tool["name"]) for tool in tools}
        calls = [] if results else _calls(question, messages, names)
        if calls:
            size = sum(len(json.dumps(call["input"])) for call in calls)
            usage = Usage(input=_tokens(sent), output=_tokens(size))
            yield ModelReply(calls, "tool_use", usage)
            return
        room = max_tokens * CHARS_PER_TOKEN
        said: list[Block] = []
        stop_reason = "end_turn"
        for text, citations in _answer(question, messages, results):
            kept = text[:room]
            room -= len(kept)
            for piece in re.findall(r"\S+\s*|\s+", kept):
                yield ModelText(piece)
            yield ModelBlockEnd(citations)
            said.append(text_block(kept))
            if len(kept) < len(text):
                stop_reason = "max_tokens"
                break
        output = sum(len(str(block["text"])) for block in said)
        yield ModelReply(said, stop_reason, Usage(input=_tokens(sent), output=_tokens(output)))


def _tokens(chars: int) -> int:
    return max(1, round(chars / CHARS_PER_TOKEN))


def _results(messages: Sequence[ChatMessage]) -> list[tuple[Block, Block]]:
    """The calls made for the newest question, each with its result."""
    calls: dict[str, Block] = {}
    pairs: list[tuple[Block, Block]] = []
    for chat_message in messages:
        blocks = blocks_of(chat_message)
        if chat_message["role"] == "user" and blocks[0]["type"] == "text":
            pairs = []
        for block in blocks:
            if block["type"] == "tool_use":
                calls[str(block["id"])] = block
            elif block["type"] == "tool_result":
                pairs.append((calls[str(block["tool_use_id"])], block))
    return pairs


def _calls(question: str, messages: Sequence[ChatMessage], names: set[str]) -> list[Block]:
    wanted: list[tuple[str, dict[str, Any]]] = []
    facts, rest = statements(question)
    if "remember" in names:
        wanted += [("remember", {"key": key, "value": value}) for key, value in facts]
    files = list(dict.fromkeys(_FILE.findall(rest)))[:_MAX_FILES]
    if "read_doc" in names:
        wanted += [("read_doc", {"path": path}) for path in files]
    terms = [] if _SMALL_TALK.fullmatch(rest) else content_terms(rest)
    if "search_docs" in names and terms and not _known_facts(rest, messages):
        query = rest.strip()
        if len(terms) <= _FEW_TERMS and (before := _question_before(messages)):
            # a follow-up such as "and in Germany?", or else a short question of its own
            wanted.append(("search_docs", {"query": f"{before} {query}"}))
        wanted.append(("search_docs", {"query": query}))
    turn = len(messages)
    return [
        {"type": "tool_use", "id": f"off_{turn}_{index}", "name": name, "input": arguments}
        for index, (name, arguments) in enumerate(wanted)
    ]


def statements(text: str) -> tuple[list[tuple[str, str]], str]:
    """What the user says of themselves as (key, value), and the text without those sentences."""
    facts: list[tuple[str, str]] = []
    rest: list[str] = []
    for sentence in re.split(r"(?<=[.!?])\s+|\n+", text):
        found = [
            (key, match["value"].strip())
            for pattern, key in _STATEMENTS
            if not sentence.rstrip().endswith("?") and (match := pattern.search(sentence))
        ]
        asked = _REMEMBER.search(sentence)
        if asked and not found and not sentence.rstrip().endswith("?"):
            value = asked["value"].strip().rstrip(".!")
            thing = _MY_THING.match(value)
            key = thing["key"].lower() if thing else " ".join(value.lower().split()[:3])
            key = re.sub(r"[^a-z0-9_ ]", "", key).strip(" _0123456789")[:40] or "note"
            found = [(key, thing["value"] if thing else value)]
        facts += found[:1]
        if not found:
            rest.append(sentence)
    return facts, " ".join(rest)


def _question_before(messages: Sequence[ChatMessage]) -> str:
    """The text of the user's turn before the newest one; empty when there is none."""
    asked = [
        str(blocks_of(item)[-1]["text"])
        for item in messages
        if item["role"] == "user" and blocks_of(item)[-1]["type"] == "text"
    ]
    return asked[-2] if len(asked) > 1 else ""


def _known_facts(question: str, messages: Sequence[ChatMessage]) -> list[tuple[str, str]]:
    """The stored facts that a question such as "what is my name?" asks for."""
    if not re.search(r"\b(?:my|me|i|am i)\b", question, re.IGNORECASE):
        return []
    terms = set(content_terms(question)) - set(content_terms("know remember tell"))
    blocks = next(
        blocks_of(item)
        for item in reversed(messages)
        if item["role"] == "user" and blocks_of(item)[0]["type"] == "text"
    )
    lines = _FACT_LINE.findall(str(blocks[0]["text"])) if len(blocks) > 1 else []
    return [(key, value) for key, value in lines if terms and terms <= set(content_terms(key))]


Piece = tuple[str, tuple[Citation, ...]]


def _answer(
    question: str, messages: Sequence[ChatMessage], results: Sequence[tuple[Block, Block]]
) -> list[Piece]:
    pieces: list[Piece] = []
    named: list[Block] = []
    found: list[Block] = []
    has_searched = False
    for call, result in results:
        content = result["content"]
        name = call["name"]
        if content[0]["type"] == "search_result":
            passages = [block for block in content if block["source"] != NOTE_SOURCE]
            has_searched = True
            if name == "read_doc":
                named += passages
            elif not _is_weak(content):
                found += passages
        elif result["is_error"] or name == "remember":
            pieces.append((f"{content[0]['text'].strip()}\n\n", ()))
        else:
            has_searched = True
    _, rest = statements(question)
    if known := _known_facts(rest, messages):
        said = "; ".join(f"your {key} is {value}" for key, value in known)
        return [*pieces, (f"You told me: {said}.", ())]
    topic = _FILE.sub(" ", rest)
    # a document that the user named is quoted however little of the question it holds
    chosen = best_passages(topic, named, floor=0.0) or best_passages(topic, found)
    for index, (text, block) in enumerate(chosen):
        source = Citation(str(block["source"]), str(block["title"]), text)
        before = "\n\n" if index else ""
        pieces.append((before + text, (source,)))
    if chosen:
        pieces.append((f"\n\n{SIGNATURE}", ()))
    elif has_searched:
        pieces.append((NOTHING_FITS, ()))
    if not pieces:
        pieces.append(("Ask me something about the documents, and I will look it up.", ()))
    return pieces


def _is_weak(content: Sequence[Block]) -> bool:
    return any(block["content"][0]["text"] == WEAK_MATCH for block in content)
