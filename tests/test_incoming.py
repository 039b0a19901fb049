"""A streamed reply adds up to the same whole however it is cut, and nonsense is no reply."""

import itertools
import json
from collections.abc import Mapping, Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.incoming import Incoming, Unreadable
from core.protocols import Citation, ModelBegun, ModelBlockEnd, ModelEvent, ModelText
from core.types import Usage

CITED = {
    "type": "search_result_location",
    "source": "top.md#1",
    "title": "The top",
    "cited_text": "Put your name there.",
    "search_result_index": 0,
    "start_block_index": 0,
    "end_block_index": 1,
}
TEXT: Mapping[str, Any] = {"type": "text", "text": ""}
CALL: Mapping[str, Any] = {"type": "tool_use", "id": "t1", "name": "search_docs", "input": {}}


def start(index: int, block: Mapping[str, Any]) -> dict[str, Any]:
    return {"type": "content_block_start", "index": index, "content_block": block}


def delta(index: int, kind: str, name: str, value: Any) -> dict[str, Any]:
    return {"type": "content_block_delta", "index": index, "delta": {"type": kind, name: value}}


def stop(index: int) -> dict[str, Any]:
    return {"type": "content_block_stop", "index": index}


def framed(blocks: Sequence[Mapping[str, Any]], reason: str = "end_turn") -> list[dict[str, Any]]:
    usage = {"input_tokens": 10, "output_tokens": 1, "cache_read_input_tokens": 7}
    return [
        {"type": "message_start", "message": {"usage": usage, "content": []}},
        {"type": "ping"},
        *(dict(event) for event in blocks),
        {
            "type": "message_delta",
            "delta": {"stop_reason": reason, "stop_sequence": None},
            "usage": {"output_tokens": 5, "cache_read_input_tokens": None},
        },
        {"type": "message_stop"},
    ]


def read(events: Sequence[Mapping[str, Any]]) -> tuple[Incoming, list[ModelEvent]]:
    incoming = Incoming()
    heard = [found for event in events if (found := incoming.take(event)) is not None]
    return incoming, heard


def in_pieces(text: str, cuts: Sequence[int]) -> list[str]:
    places = [0, *sorted(cut % (len(text) + 1) for cut in cuts), len(text)]
    return [text[a:b] for a, b in itertools.pairwise(places)]


@given(
    st.text(max_size=60),
    st.dictionaries(st.text(max_size=8), st.text(max_size=20) | st.integers(), max_size=4),
    st.lists(st.integers(0, 1_000), max_size=8),
)
def test_however_it_is_cut_the_whole_is_the_same(
    text: str, given_input: dict[str, Any], cuts: list[int]
) -> None:
    written = json.dumps(given_input, ensure_ascii=False)
    events = framed(
        [
            start(0, TEXT),
            *(delta(0, "text_delta", "text", piece) for piece in in_pieces(text, cuts)),
            delta(0, "citations_delta", "citation", CITED),
            delta(0, "citations_delta", "citation", CITED),
            stop(0),
            start(1, CALL),
            *(delta(1, "input_json_delta", "partial_json", p) for p in in_pieces(written, cuts)),
            stop(1),
        ],
        "tool_use",
    )
    incoming, heard = read(events)
    assert incoming.is_whole
    reply = incoming.reply()
    assert reply.blocks == [{"type": "text", "text": text}, {**CALL, "input": given_input}]
    assert reply.stop_reason == "tool_use"
    assert reply.usage == Usage(input=10, output=5, cache_read=7, cache_write=0)
    assert "".join(event.text for event in heard if isinstance(event, ModelText)) == text
    assert heard[-1] == ModelBlockEnd((Citation("top.md#1", "The top", "Put your name there."),)), (
        "each citation once"
    )


def test_servers_that_send_a_block_all_at_once_are_understood() -> None:
    whole = {**CALL, "input": {"query": "x"}}
    incoming, heard = read(framed([start(0, {"type": "text", "text": "All."}), start(1, whole)]))
    assert heard[1:] == [ModelText("All.")]
    assert incoming.reply().blocks == [{"type": "text", "text": "All."}, whole]


def test_thinking_is_kept_with_its_signature() -> None:
    events = framed(
        [
            start(0, {"type": "thinking", "thinking": "", "signature": ""}),
            delta(0, "thinking_delta", "thinking", "Let me "),
            delta(0, "thinking_delta", "thinking", "see."),
            delta(0, "signature_delta", "signature", "abc"),
            stop(0),
            start(1, {"type": "redacted_thinking", "data": "xyz"}),
            stop(1),
        ]
    )
    incoming, heard = read(events)
    assert heard == [ModelBegun(Usage(input=10, output=1, cache_read=7, cache_write=0))]
    assert incoming.reply().blocks == [
        {"type": "thinking", "thinking": "Let me see.", "signature": "abc"},
        {"type": "redacted_thinking", "data": "xyz"},
    ]


def test_unknown_kinds_are_passed_over() -> None:
    events = framed(
        [
            {"type": "weather_report", "sunny": True},
            start(0, {"type": "hologram"}),
            delta(0, "hologram_delta", "light", 1),
            stop(0),
            start(1, TEXT),
            delta(1, "text_delta", "text", "Hello."),
            delta(1, "sparkle_delta", "sparkle", 1),
            stop(1),
        ]
    )
    incoming, _ = read(events)
    assert incoming.reply().blocks == [{"type": "text", "text": "Hello."}]


@pytest.mark.parametrize("reason", ["max_tokens", "model_context_window_exceeded"])
def test_call_that_was_cut_off_has_no_input(reason: str) -> None:
    half = delta(0, "input_json_delta", "partial_json", '{"query": "resu')
    incoming, _ = read(framed([start(0, CALL), half], reason))
    assert incoming.reply().blocks == [CALL]


@pytest.mark.parametrize("written", ['{"query": "resu', '["resume"]', '"resume"', "null"])
def test_input_that_is_no_json_object_is_no_reply(written: str) -> None:
    sent = delta(0, "input_json_delta", "partial_json", written)
    incoming, _ = read(framed([start(0, CALL), sent, stop(0)], "tool_use"))
    with pytest.raises(Unreadable):
        incoming.reply()


@pytest.mark.parametrize(
    "event",
    [
        {},
        [],
        "message_start",
        None,
        {"type": "message_start"},
        {"type": "content_block_start", "index": 0},
        {"type": "content_block_start", "index": "first", "content_block": TEXT},
        start(0, {"text": "a block of no kind"}),
        delta(3, "text_delta", "text", "of a block that never began"),
        {"type": "message_delta", "delta": None},
        {"type": "message_delta", "delta": {}, "usage": {"output_tokens": "many"}},
    ],
    ids=str,
)
def test_what_cannot_be_part_of_a_reply_is_refused(event: Any) -> None:
    incoming = Incoming()
    with pytest.raises(Unreadable):
        incoming.take(event)


@pytest.mark.parametrize("missing", ["message_delta", "message_stop"])
def test_a_reply_without_its_end_is_not_whole(missing: str) -> None:
    events = [event for event in framed([start(0, TEXT), stop(0)]) if event["type"] != missing]
    assert not read(events)[0].is_whole
