"""Accept once, keep the order, answer from what was kept: on a real server and on a cluster."""

import asyncio
from dataclasses import replace

import pytest

from core.inbox import MAX_NOTES, Inbox
from core.memory import Memory
from core.store import Store
from core.types import ContextText, Conversation
from core.wire import message_from_json, message_to_json
from tests.support_inbox import an_inbox, answer, finish, take, take_none, take_one
from tests.support_redis import History, a_message, a_session, dump

pytest_plugins = ("tests.support_redis_fixtures",)


def test_a_message_survives_its_json() -> None:
    message = replace(
        a_message("“hé”\n☂"),
        context=(ContextText("a", "b"),),
        extra={"files": [1, 2.5, None, {"x": "y"}]},
        is_cut=True,
    )
    text = message_to_json(message)
    assert message_from_json(text) == message
    assert message_from_json('{"of a later version": 1,' + text[1:]) == message


async def test_accepted_message_is_taken_answered_and_gone(any_store: Store) -> None:
    inbox, message = an_inbox(any_store), a_message()
    accepted = await inbox.accept(message)
    assert (accepted.outcome, accepted.conversation) == ("queued", message.conversation)
    taken = await take_one(inbox)
    assert taken.message == message
    assert (taken.phase, taken.attempts, taken.elapsed_ms) == ("running", 0, 0)
    assert 0 < len(taken.run_id) <= 20
    assert (taken.checkpoint, taken.ref, taken.final, taken.turns) == (None, None, None, ())
    await inbox.checkpoint(taken, "state", 5)
    await inbox.save_ref(taken, {"ts": "1.2"})
    assert await answer(inbox, taken) == "saved"
    assert await inbox.delivered(taken) is None
    await take_none(inbox)
    left = {key.split(b":")[1] for key in await dump(any_store)}
    assert left == {b"seen", b"thread", b"hist", b"rec", b"mine", b"ready", b"workers"}


async def test_redelivery_in_any_form_is_one_run(any_store: Store) -> None:
    """B01: twice as a mention and once as a plain message, in any order, with two workers."""
    first, second = an_inbox(any_store, "a"), an_inbox(any_store, "b")
    mention = a_message("hi", message_id="W1,C1,1.0", thread="1.0")
    plain = replace(mention, needs_engaged=True)
    outcomes = [
        (await inbox.accept(message)).outcome
        for inbox, message in [(first, plain), (first, mention), (second, mention), (second, plain)]
    ]
    assert outcomes == ["not_engaged", "queued", "duplicate", "duplicate"]
    taken = await take_one(first)
    await take_none(second)
    assert await finish(first, taken) is None
    assert (await second.accept(mention)).outcome == "duplicate"
    await take_none(second)


async def test_concurrent_redeliveries_queue_once(any_store: Store) -> None:
    inbox, message = an_inbox(any_store), a_message()
    outcomes = await asyncio.gather(*(inbox.accept(message) for _ in range(30)))
    assert sorted(accepted.outcome for accepted in outcomes) == ["duplicate"] * 29 + ["queued"]


async def test_followup_during_run_is_answered_next_with_its_history(any_store: Store) -> None:
    """B03: serial in a thread, side by side across threads, nothing lost."""
    inbox = an_inbox(any_store)
    first, follow_up = a_message("one"), a_message("two", user="U2", needs_engaged=True)
    elsewhere = a_message("other", thread="T2")
    await inbox.accept(first)
    running = await take_one(inbox)
    assert (await inbox.accept(follow_up)).outcome == "queued"
    await inbox.accept(elsewhere)
    other = await take_one(inbox)
    assert other.message == elsewhere
    await take_none(inbox)
    after = await finish(inbox, running, "answer one")
    assert after is not None
    assert after.message == follow_up
    assert after.run_id != running.run_id
    assert [(turn.text, turn.answer) for turn in after.turns] == [("one", "answer one")]
    assert await finish(inbox, after) is None
    assert await finish(inbox, other) is None


async def test_pile_up_is_answered_in_order_by_two_workers(any_store: Store) -> None:
    inboxes = [an_inbox(any_store, name) for name in ("a", "b")]
    messages = [
        a_message(f"{thread} {number}", channel=f"C{thread}")
        for number in range(10)
        for thread in range(8)
    ]
    for message in messages:
        await inboxes[0].accept(message)
    done: list[str] = []

    async def work(inbox: Inbox) -> None:
        while len(done) < len(messages):
            for found in await take(inbox, 3, wait_s=0.2):
                taken = found
                while taken:
                    done.append(taken.message.text)
                    taken = await finish(inbox, taken)

    async with asyncio.timeout(20):
        await asyncio.gather(*(work(inbox) for inbox in inboxes))
    assert sorted(done) == sorted(message.text for message in messages)
    for thread in range(8):
        in_thread = [text for text in done if text.startswith(f"{thread} ")]
        assert in_thread == [f"{thread} {number}" for number in range(10)]


async def test_aliases_lead_followups_and_replies_to_their_conversation(any_store: Store) -> None:
    inbox = an_inbox(any_store)
    question = a_message("q", thread="m1", message_id="m1")
    await inbox.accept(question)
    taken = await take_one(inbox)
    await inbox.save_ref(taken, {"id": "bot1"}, aliases=["bot1", "thread made"])
    await finish(inbox, taken)
    home = question.conversation
    for message in (
        a_message("in the thread", thread="thread made", needs_engaged=True),
        a_message("reply", thread="m2", reply_to="bot1"),
        a_message("reply to the question", thread="m3", reply_to="m1", needs_engaged=True),
    ):
        accepted = await inbox.accept(message)
        assert (accepted.outcome, accepted.conversation) == ("queued", home)
    following = await take_one(inbox)
    assert following.conversation == home
    assert following.message.text == "in the thread"
    stranger = a_message("reply elsewhere", thread="m4", channel="C2", reply_to="bot1")
    assert (await inbox.accept(stranger)).conversation == stranger.conversation
    history = History(any_store)
    by_alias = replace(home, thread="bot1")
    assert await history.read(by_alias, 1_000) == await history.read(home, 1_000) != []


async def test_muted_thread_takes_mentions_alone(any_store: Store) -> None:
    inbox, message = an_inbox(any_store), a_message()
    await inbox.accept(message)
    await inbox.mute(message.conversation, True)
    assert (await inbox.accept(a_message(needs_engaged=True))).outcome == "muted"
    assert (await inbox.accept(a_message())).outcome == "queued"
    await inbox.mute(message.conversation, False)
    assert (await inbox.accept(a_message(needs_engaged=True))).outcome == "queued"


async def test_cancel_is_for_the_asker_and_seen_by_the_next_heartbeat(any_store: Store) -> None:
    inbox, other = an_inbox(any_store, "a"), an_inbox(any_store, "b")
    message = a_message(user="U1")
    assert await other.cancel(message.conversation, "U1") == "nothing"
    await inbox.accept(message)
    taken = await take_one(inbox)
    assert await other.cancel(message.conversation, "U2") == "not_asker"
    assert not (await inbox.heartbeat([taken])).cancelled
    assert await other.cancel(message.conversation, "U1") == "cancelled"
    beat = await inbox.heartbeat([taken])
    assert (beat.cancelled, beat.lost) == ({taken.run_id}, frozenset())
    # The next message of the thread is not cancelled with it.
    await inbox.accept(a_message("next"))
    following = await finish(inbox, taken)
    assert following is not None
    assert not (await inbox.heartbeat([following])).cancelled


async def test_withdrawn_message_is_not_answered(any_store: Store) -> None:
    inbox = an_inbox(any_store)
    first, second, third = (a_message(text) for text in ("one", "two", "three"))
    await inbox.accept(first)
    await inbox.accept(second)
    # As the platform sees it, the third is a thread of its own; here it follows a reply.
    await inbox.accept(
        replace(third, reply_to="T1", conversation=replace(third.conversation, thread="x"))
    )
    taken = await take_one(inbox)
    assert await inbox.withdraw(first.conversation, first.id) == "cancelled"
    assert await inbox.withdraw(replace(third.conversation, thread="x"), third.id) == "withdrawn"
    assert await inbox.withdraw(second.conversation, "unknown") == "nothing"
    following = await finish(inbox, taken)
    assert following is not None
    assert following.message == second
    assert await finish(inbox, following) is None


async def test_withdrawing_the_only_message_leaves_nothing_to_take(any_store: Store) -> None:
    inbox, message = an_inbox(any_store), a_message()
    await inbox.accept(message)
    assert await inbox.withdraw(message.conversation, message.id) == "withdrawn"
    await take_none(inbox)
    await inbox.accept(a_message("later"))
    assert (await take_one(inbox)).message.text == "later"


async def test_record_and_feedback_are_the_askers(any_store: Store) -> None:
    inbox = an_inbox(any_store)
    await inbox.accept(a_message())
    taken = await take_one(inbox)
    await finish(inbox, taken, "words")
    mine, others = (
        a_session(),
        [a_session("U2"), a_session(workspace="W2"), a_session(channel="C2")],
    )
    assert "words" in (await inbox.record(mine, taken.run_id) or "")
    assert await inbox.feedback(mine, taken.run_id, is_good=True)
    for session in others:
        assert await inbox.record(session, taken.run_id) is None
        assert not await inbox.feedback(session, taken.run_id, is_good=False)
    assert await inbox.record(mine, "gone") is None
    export = await Memory(any_store).export(mine)
    assert [turn["text"] for turn in export["turns"]] == ["hello"]
    assert [run["id"] for run in export["runs"]] == [taken.run_id]


async def test_what_other_bots_said_is_kept_short(any_store: Store) -> None:
    inbox, message = an_inbox(any_store), a_message()
    for number in range(15):
        await inbox.note_context(message.conversation, "alerts", f"{number} " + "x" * 600)
    await inbox.accept(message)
    notes = (await take_one(inbox)).notes
    assert len(notes) == MAX_NOTES
    assert notes[-1] == ContextText("alerts", ("14 " + "x" * 600)[:500])


async def test_facts_and_epoch_come_with_the_message(any_store: Store) -> None:
    inbox, memory = an_inbox(any_store), Memory(any_store)
    await memory.save(a_session(), "city", "Pune", message_id="m", epoch=0, run_id="r")
    await memory.save(a_session("U2"), "city", "Rome", message_id="m", epoch=0, run_id="r")
    await inbox.accept(a_message())
    await inbox.accept(a_message(user="U2"))
    taken = await take_one(inbox)
    assert {key: fact.value for key, fact in taken.facts.items()} == {"city": "Pune"}
    following = await finish(inbox, taken)
    assert following is not None
    assert {key: fact.value for key, fact in following.facts.items()} == {"city": "Rome"}


@pytest.mark.parametrize("odd", ["*", "a:b", "{x}", "a/b", "a|b", "日本 語", "%2F", "a\nb", '"'])
async def test_odd_ids_are_safe(store: Store, odd: str) -> None:
    inbox = an_inbox(store)
    message = a_message(user=odd, channel=odd, thread=odd, workspace=odd, message_id=odd)
    assert (await inbox.accept(message)).conversation == message.conversation
    (taken,) = await take(inbox, places=[("test", odd)])
    assert taken.message == message
    await inbox.save_ref(taken, {}, aliases=[odd * 2])
    await finish(inbox, taken)
    alias = replace(message, id="2", conversation=Conversation("test", odd, odd, odd * 2))
    assert (await inbox.accept(alias)).conversation == message.conversation


async def test_workspaces_are_taken_by_their_own_workers(any_store: Store) -> None:
    inbox, other = an_inbox(any_store, "a"), an_inbox(any_store, "b")
    await inbox.accept(a_message("one"))
    await inbox.accept(a_message("two", workspace="W2"))
    (two,) = await take(other, places=[("test", "W2")])
    assert two.message.text == "two"
    both = an_inbox(any_store, "c")
    (one,) = await take(both, places=[("test", "W1"), ("test", "W2")])
    assert one.message.text == "one"


async def test_blank_turns_are_not_kept(store: Store) -> None:
    inbox = an_inbox(store)
    await inbox.accept(a_message("   "))
    await inbox.accept(a_message("two"))
    following = await finish(inbox, await take_one(inbox))
    assert following is not None
    assert following.turns == ()
    await inbox.accept(a_message("three"))
    following = await finish(inbox, following, " ")
    assert following is not None
    assert following.turns == ()
