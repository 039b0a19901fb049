"""Which events are for the bot, whose they are, and what they say; text made safe both ways."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bots.slack.api import Identity
from bots.slack.events import BotSaid, Deleted, read_message, visible_text
from bots.slack.markup import (
    MAX_PART_BYTES,
    fallback_text,
    plain_text,
    prepare,
    slack_size,
)
from bots.text import split_markdown
from core.types import MAX_MESSAGE_CHARS, Message
from tests.slack_rules import LIVE, check_tables

ME = Identity("T1", "UBOT", "BBOT", "Team", "", frozenset())


def _event(text: str = "<@UBOT> hello", **fields: Any) -> dict[str, Any]:
    known = {"type": "message", "channel": "C1", "user": "U1", "ts": "100.5", "text": text}
    return {**known, **fields}


def _read(text: str = "<@UBOT> hello", **fields: Any) -> Message:
    message = read_message(_event(text, **fields), ME)
    assert isinstance(message, Message)
    return message


def test_both_events_of_a_mention_are_one_message():
    mention, plain = _read(type="app_mention"), _read()
    assert mention == plain
    assert plain.id == "T1/C1/100.5"
    assert plain.conversation.thread == "100.5"
    assert plain.text == "hello"
    assert not plain.needs_engaged
    assert plain.sent_at == 100.5


def test_reply_without_mention_is_only_for_an_engaged_thread():
    reply = _read("and then?", thread_ts="99.1")
    assert reply.needs_engaged
    assert reply.conversation.thread == "99.1"
    assert read_message(_event("and then?"), ME) is None
    assert read_message(_event("<@U2> and then?", thread_ts="99.1"), ME) is None
    assert read_message(_event("<!subteam^S1> then?", thread_ts="99.1"), ME) is None
    assert not _read("<@U2> <@UBOT|footnote> then?", thread_ts="99.1").needs_engaged


def test_direct_message_needs_no_mention_and_its_memory_is_its_own():
    message = _read("hello", channel="D1")
    assert not message.needs_engaged
    assert message.session.channel == "D1"
    assert not _read("hi", channel="D1", thread_ts="99.1").needs_engaged
    assert read_message(_event("hello", channel="G1", channel_type="mpim"), ME) is None


@pytest.mark.parametrize("subtype", [None, "file_share", "thread_broadcast", "me_message"])
def test_what_people_say_is_read(subtype: str | None):
    assert _read(subtype=subtype).text == "hello"


@pytest.mark.parametrize(
    "subtype", ["message_changed", "channel_join", "channel_topic", "message_replied", "tombstone"]
)
def test_what_slack_says_is_not(subtype: str):
    assert read_message(_event(subtype=subtype), ME) is None


def test_blank_message_is_no_question_unless_it_points_at_something():
    assert read_message(_event("<@UBOT>  "), ME) is None
    assert read_message(_event("", thread_ts="99.1"), ME) is None
    assert _read("<@UBOT>", thread_ts="99.1").text == "(see the message above)"
    files = [{"name": "a.txt", "mimetype": "text/plain", "size": 3, "url_private": "https://x"}]
    assert _read("<@UBOT>", subtype="file_share", files=files).text == "(see the attached file)"
    shared = [{"is_share": True, "text": "a forwarded alert"}]
    message = _read("<@UBOT>", attachments=shared)
    assert message.extra["quoted"] == "a forwarded alert"


def test_long_text_is_cut_and_marked():
    message = _read("<@UBOT> " + "x" * 9_000)
    assert len(message.text) == MAX_MESSAGE_CHARS
    assert message.is_cut
    assert not _read("<@UBOT> " + "x" * 8_000).is_cut


def test_outsider_is_told_by_the_team_of_who_wrote():
    assert _read(user_team="T9").author.is_outsider
    assert _read(source_team="T9").author.is_outsider
    assert not _read(user_team="T1").author.is_outsider
    assert not _read().author.is_outsider
    grid = Identity("T1", "UBOT", "BBOT", "Team", "E1", frozenset())
    message = read_message(_event(user_team="E1"), grid)
    assert isinstance(message, Message)
    assert not message.author.is_outsider
    assert _read(user_team="T9").extra["team"] == "T9"


def test_two_workspaces_share_no_key():
    other = Identity("T2", "UBOT", "BBOT", "Team", "", frozenset())
    there = read_message(_event(), other)
    assert isinstance(there, Message)
    here = _read()
    assert there.id != here.id
    assert there.session.tag != here.session.tag
    assert there.conversation.tag != here.conversation.tag


def test_other_bots_text_in_a_thread_is_kept_with_its_name():
    bot = {"bot_id": "B2", "subtype": "bot_message", "username": "Deploy", "thread_ts": "99.1"}
    said = read_message(_event("done", **bot), ME)
    assert isinstance(said, BotSaid)
    assert (said.label, said.text) == ("message of the app Deploy", "done")
    assert read_message(_event("done", **bot, type="app_mention"), ME) is None
    assert read_message(_event("done", bot_id="B2"), ME) is None
    assert read_message(_event("mine", bot_id="BBOT", thread_ts="99.1"), ME) is None


def test_deleted_message_is_found_by_its_own_place():
    gone = {"subtype": "message_deleted", "deleted_ts": "100.5"}
    previous = {"user": "U1", "ts": "100.5", "thread_ts": "99.1"}
    deleted = read_message({"channel": "C1", **gone, "previous_message": previous}, ME)
    assert isinstance(deleted, Deleted)
    assert deleted.message_id == "T1/C1/100.5"
    assert deleted.conversation.thread == "99.1"
    assert not deleted.is_root
    own = {**previous, "bot_id": "BBOT"}
    assert read_message({"channel": "C1", **gone, "previous_message": own}, ME) is None


def test_deleted_root_takes_its_thread_along_whoever_wrote_it():
    for author in ({"user": "U1"}, {"bot_id": "BALERT"}):
        gone = {
            "channel": "C1",
            "subtype": "message_deleted",
            "deleted_ts": "99.1",
            "previous_message": {**author, "ts": "99.1", "thread_ts": "99.1"},
        }
        deleted = read_message(gone, ME)
        assert isinstance(deleted, Deleted)
        assert deleted.is_root
        assert deleted.conversation.thread == "99.1"


def test_incoming_tokens_are_spelled_out_and_entities_decoded_once():
    text = "<@UBOT> ask <@U2|ann> in <#C1|general>: <https://a.example|docs> &amp;lt;b&gt; <!here>"
    assert plain_text(text, "UBOT") == (
        "ask @ann in #general: docs (https://a.example) &lt;b> @here"
    )
    assert plain_text("<mailto:a@b.example|a@b.example> <https://a.b>", "UBOT") == (
        "a@b.example https://a.b"
    )


def test_visible_text_of_rich_blocks_and_fields():
    rich = {
        "type": "rich_text",
        "elements": [
            {
                "type": "rich_text_section",
                "elements": [
                    {"type": "text", "text": "Disk "},
                    {"type": "user", "user_id": "U2"},
                    {"type": "link", "url": "https://a.b"},
                ],
            }
        ],
    }
    fields = [{"title": "Host", "value": "db-7"}]
    shown = visible_text({"text": "", "blocks": [rich], "attachments": [{"fields": fields}]})
    assert shown == "Disk <@U2>https://a.b\nHost: db-7"
    assert visible_text({"attachments": [{"fallback": "only this"}]}) == "only this"
    block = {"type": "section", "text": {"type": "mrkdwn", "text": "same"}}
    assert visible_text({"text": "same", "blocks": [block]}) == "same"


def test_table_too_wide_for_slack_is_left_as_text():
    wide = "|" + "a|" * 30 + "\n|" + "-|" * 30 + "\n|" + "b|" * 30
    check_tables([prepare(wide)])
    narrow = "| a | b |\n|---|---|\n| c | d |"
    assert prepare(narrow) == narrow


@settings(max_examples=60, deadline=None)
@given(st.integers(1, 60), st.integers(1, 250))
def test_any_number_and_length_of_tables_fits(tables: int, rows: int):
    table = "\n".join(["| A | B |", "|---|---|", *(f"| {n} | x |" for n in range(rows))])
    parts = split_markdown("\n\n".join([table] * tables), MAX_PART_BYTES, slack_size)
    for part in parts:
        check_tables([part])


@given(st.text(max_size=400))
def test_notification_text_is_short_and_without_pings(text: str):
    shown = fallback_text(text + " <!channel> <@U1>")
    assert 0 < len(shown) < 1_000
    assert not LIVE.search(shown)
