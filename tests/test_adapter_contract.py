"""What every adapter owes people, asked of Slack, Discord and the terminal alike."""

import re
from collections.abc import AsyncGenerator

import pytest
import pytest_asyncio

from tests.anthropic_script import Reply, Text, ToolUse
from tests.support_contract import STAGES, Stage, answers
from tests.support_discord import wait_until

pytestmark = pytest.mark.asyncio(loop_scope="module")

QUESTION = "What should I put at the top of my resume?"


@pytest_asyncio.fixture(scope="module", loop_scope="module", params=list(STAGES))
async def stage(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> AsyncGenerator[Stage]:
    async with STAGES[request.param](tmp_path_factory.mktemp(request.param)) as opened:
        yield opened


def needs_others(stage: Stage) -> None:
    if "others" in stage.lacks:
        pytest.skip("nobody else can speak here")


async def test_answer_has_its_source_and_says_why_it_stopped(stage: Stage):
    said = await answers(stage, await stage.ask("a", QUESTION))
    assert "[1]" in said
    assert "Stopped: done · 2 model calls · 1 search · " in said


async def test_own_message_starts_nothing(stage: Stage):
    needs_others(stage)
    at = await stage.ask("a", QUESTION)
    said = await answers(stage, at)
    await stage.calm()
    await stage.echo(at)
    await stage.calm()
    assert stage.said(at) == said


async def test_other_bot_starts_nothing_and_is_context(stage: Stage):
    needs_others(stage)
    at = await stage.ask("a", QUESTION)
    said = await answers(stage, at)
    await stage.calm()
    await stage.other_bot(at, "done with release 77")
    await stage.calm()
    assert stage.said(at) == said
    await stage.follow(at, "a", "Which release, says the bot?")
    await answers(stage, at, 2)
    assert "done with release 77" in stage.asked("Which release, says the bot?")[0]


async def test_duplicate_delivery_is_answered_once(stage: Stage):
    text = "a question that comes twice"
    at = await stage.ask("a", text)
    await stage.again(at)
    await answers(stage, at)
    await stage.again(at)
    await stage.calm()
    assert stage.said(at).count("Stopped: ") == 1
    assert len(stage.asked(text)) == 2


async def test_followup_during_a_run_is_answered_next(stage: Stage):
    stage.rules["slow contract"] = [Reply([Text("The slow answer. ")], delay_s=1.0)]
    stage.rules["quick follow-up"] = [Reply([Text("The next answer. ")])]
    at = await stage.ask("a", "a slow contract question")
    await wait_until(lambda: stage.asked("slow contract"), 20)
    await stage.follow(at, "a", "a quick follow-up to it")
    said = await answers(stage, at, 2)
    assert said.index("The slow answer.") < said.index("The next answer.")
    [request] = stage.asked("quick follow-up")
    assert "a slow contract question" in request
    assert "The slow answer." in request


async def test_cancel_is_for_the_asker_alone_and_keeps_what_there_is(stage: Stage):
    stage.rules["endless"] = [Reply([Text("Words and more words. " * 400)], delta_s=0.05)]
    at = await stage.ask("a", "an endless question")
    await wait_until(lambda: "Words and more words." in stage.said(at), 20)
    await stage.stop(at, "b")
    await stage.stop(at, "a")
    said = await answers(stage, at)
    assert "Words and more words." in said
    assert "I stopped because you asked me to. Stopped: cancelled" in said


async def test_failure_in_mid_stream_ends_in_one_whole_answer(stage: Stage):
    stage.rules["breaks"] = [
        Reply([Text("This half is lost for good, all of it.")], fault="cut", fault_after=24),
        Reply([Text("Recovered in full.")]),
    ]
    at = await stage.ask("a", "a question that breaks")
    said = await answers(stage, at)
    await stage.calm()
    assert "Recovered in full." in said
    assert stage.said(at).count("Stopped: ") == 1
    if "edits" not in stage.lacks:
        assert "This half" not in stage.said(at)


async def test_long_answer_arrives_whole_and_in_order(stage: Stage):
    words = [f"word{number:04d}" for number in range(500)]
    code = "```python\n" + "\n".join(f"line{number:03d}()" for number in range(150)) + "\n```"
    stage.rules["long answer"] = [Reply([Text(f"{' '.join(words)}\n\n{code}")], max_chars=90_000)]
    at = await stage.ask("a", "a long answer, please")
    said = await answers(stage, at)
    assert re.findall(r"word\d{4}", said) == words
    assert re.findall(r"line\d{3}", said) == [f"line{number:03d}" for number in range(150)]
    assert said.count("Stopped: ") == 1
    assert said.rindex("Stopped: ") > said.rindex("line149")


async def test_forgotten_words_are_gone_and_other_peoples_stay(stage: Stage):
    for user, fact in (("a", "magenta"), ("b", "turquoise")):
        stage.rules[f"{fact} is my color"] = [
            Reply([ToolUse("remember", {"key": "color", "value": fact})]),
            Reply([Text("Noted.")]),
        ]
        at = await stage.ask(user, f"remember {fact} is my color")
        await answers(stage, at)
        await stage.calm()
        if user == "a":
            await stage.forget(at, "a")
            await stage.follow(at, "a", "Which color is mine?")
            await answers(stage, at, 2)
            assert "magenta" not in stage.asked("Which color is mine?")[0]
        else:
            await stage.follow(at, "b", "And which one is mine?")
            await answers(stage, at, 2)
            assert "turquoise" in stage.asked("And which one is mine?")[0]


async def test_two_users_in_one_thread_have_memories_of_their_own(stage: Stage):
    needs_others(stage)
    at = await stage.ask("a", QUESTION)
    await answers(stage, at)
    await stage.calm()
    stage.rules["I cover Sundays"] = [
        Reply([ToolUse("remember", {"key": "shift", "value": "covers Sundays"})]),
        Reply([Text("Noted.")]),
    ]
    await stage.follow(at, "b", "remember: I cover Sundays")
    await answers(stage, at, 2)
    await stage.calm()
    for count, (user, knows) in enumerate((("a", False), ("b", True)), 3):
        text = f"what is my shift, asks {user}"
        await stage.follow(at, user, text)
        await answers(stage, at, count)
        facts = stage.asked(text)[0].count("covers Sundays")
        assert (facts > 0) is knows


async def test_outsider_gets_a_polite_line_and_no_run(stage: Stage):
    needs_others(stage)
    at = await stage.outsider("what do your documents say, stranger asks?")
    await wait_until(lambda: stage.said(at), 20)
    await stage.calm()
    assert "only answer" in stage.said(at)
    assert "Stopped: " not in stage.said(at)
    assert stage.asked("stranger asks?") == []
