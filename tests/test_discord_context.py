"""What comes with a question in Discord and is not the user's text."""

from typing import Any

import pytest

from bots.discord.context import MAX_TEXT_CHARS
from bots.discord.ingress import WITHOUT_TEXT
from tests.support_discord import Scene, scene, wait_until


@pytest.fixture
async def at():
    async with scene() as made:
        yield made


async def context_of(at: Scene, count: int = 1) -> dict[str, str]:
    message = await at.client.adapter.enrich(await at.asked(count))
    return {each.label: each.text for each in message.context}


async def test_long_paste_arrives_as_a_file_without_type_and_is_read_capped(at: Scene):
    file = at.server.world.attachment(at.server.rest.base, "message.txt", b"x" * 3_000)
    at.server.say(at.channel, at.ann, f"{at.me} sum up", attachments=[file])
    assert await context_of(at) == {"attachment message.txt": "x" * 3_000}
    big = at.server.world.attachment(at.server.rest.base, "message.txt", b"y" * 9_000)
    at.server.say(at.channel, at.ann, at.me, attachments=[big])
    found = await context_of(at, 2)
    assert found == {"attachment message.txt (truncated)": "y" * MAX_TEXT_CHARS}
    assert (await at.asked(2)).text == WITHOUT_TEXT


async def test_files_that_are_no_text_are_named_and_not_downloaded(at: Scene):
    base = at.server.rest.base
    image = {**at.server.world.attachment(base, "a.png", b"1"), "content_type": "image/png"}
    huge = {**at.server.world.attachment(base, "b.log", b"1"), "size": 50 << 20}
    zeros = at.server.world.attachment(base, "c.txt", b"\x00\x01")
    at.server.say(at.channel, at.ann, f"{at.me} look", attachments=[image, huge, zeros])
    found = await context_of(at)
    assert all("not read" in text for text in found.values())
    assert len(found) == 3
    assert len([c for c in at.server.rest.calls if "/cdn/" in c.path]) == 0


async def test_forward_is_context(at: Scene):
    snapshot = {
        "message": {
            "type": 0,
            "content": "disk is full",
            "embeds": [{"type": "rich", "title": "Alert", "description": "db1"}],
            "attachments": [],
            "timestamp": "2026-01-01T00:00:00+00:00",
            "edited_timestamp": None,
            "flags": 0,
            "mentions": [],
            "mention_roles": [],
        }
    }
    reference = {"type": 1, "message_id": "1", "channel_id": at.channel["id"]}
    at.server.say(
        at.channel,
        at.ann,
        f"{at.me} what now?",
        message_snapshots=[snapshot],
        message_reference=reference,
        referenced_message=None,
        type=0,
    )
    found = await context_of(at)
    assert found == {
        "forwarded message": "disk is full",
        "embed of a forwarded message": "Alert\ndb1",
    }


async def test_alert_replied_to_is_context_though_its_text_is_in_an_embed(at: Scene):
    robot = at.server.world.user("alerts", is_bot=True)
    embed = {
        "type": "rich",
        "title": "High load",
        "fields": [{"name": "host", "value": "db1", "inline": True}],
    }
    alert = at.server.world.post(at.channel, robot, "", embeds=[embed])
    at.server.reply(at.channel, at.ann, f"{at.me} what does this mean?", alert)
    found = await context_of(at)
    assert found == {"embed in the message replied to": "High load\nhost: db1"}


async def test_thread_starter_in_the_parent_channel_is_context(at: Scene):
    robot = at.server.world.user("alerts", is_bot=True)
    embed = {"type": "rich", "description": "certificate expires"}
    alert = at.server.world.post(at.channel, robot, "", embeds=[embed])
    thread = at.server.world.thread(at.channel, at.ben, thread_id=alert["id"])
    at.server.dispatch("THREAD_CREATE", thread)
    at.server.say(thread, at.ann, f"{at.me} what does this mean?")
    found = await context_of(at)
    assert found == {"embed in the post that opened this thread": "certificate expires"}


async def test_own_answer_replied_to_is_no_context(at: Scene):
    await at.answer(await at.ask())
    [post] = at.server.sent(at.channel)
    at.server.reply(at.channel, at.ann, "more?", post, ping=at.bot)
    assert await context_of(at, 2) == {}


async def test_plain_question_needs_no_request(at: Scene):
    message = await at.ask()
    before = len(at.server.rest.calls)
    assert await at.client.adapter.enrich(message) is message
    assert len(at.server.rest.calls) == before


async def test_failed_look_up_leaves_the_question_as_it_was(at: Scene):
    file = at.server.world.attachment(at.server.rest.base, "message.txt", b"x")
    at.server.say(at.channel, at.ann, f"{at.me} sum up", attachments=[file])
    message = await at.asked()
    at.server.rest.fail("GET", r"/messages/", 403, 50001)
    assert await at.client.adapter.enrich(message) == message


async def asked_about(at: Scene, target: dict[str, Any]) -> tuple[str, dict[str, str]]:
    """What core got when Ann chose "Ask about this" on `target`: question and context."""
    data = {
        "id": "1",
        "name": "Ask about this",
        "type": 3,
        "target_id": target["id"],
        "resolved": {"messages": {target["id"]: target}},
    }
    token = at.server.interact(at.channel, at.ann, 2, data)
    state = at.server.rest.interactions[token]
    await wait_until(lambda: "callback" in state)
    assert state["callback"]["type"] == 9
    modal = state["callback"]["data"]
    [row] = modal["components"]
    field = row["components"][0]
    assert field["value"] == "What does this mean?"
    sent = {"type": 1, "components": [{**field, "value": "why?"}]}
    modal_data = {"custom_id": modal["custom_id"], "components": [sent]}
    at.server.interact(at.channel, at.ann, 5, modal_data)
    message = await at.client.adapter.enrich(await at.asked())
    return message.text, {each.label: each.text for each in message.context}


async def test_message_menu_asks_for_the_question_and_takes_the_message_along(at: Scene):
    target = at.server.world.post(at.channel, at.ben, "disk is full")
    text, context = await asked_about(at, target)
    assert text == "why?"
    assert context == {"the message asked about": "ben: disk is full"}


async def test_message_menu_takes_files_embeds_and_forwards_along(at: Scene):
    file = at.server.world.attachment(at.server.rest.base, "message.txt", b"x" * 9_000)
    forwarded = {
        "type": 0, "content": "db1 is down", "embeds": [], "attachments": [], "flags": 0,
        "timestamp": "2026-01-01T00:00:00+00:00", "edited_timestamp": None, "mentions": [],
        "mention_roles": [],
    }  # fmt: skip
    more = {"attachments": [file], "message_snapshots": [{"message": forwarded}]}
    embeds = [{"type": "rich", "description": "Alert"}]
    _, context = await asked_about(
        at, at.server.world.post(at.channel, at.ben, "", embeds=embeds, **more)
    )
    assert context == {
        "embed in the message asked about": "Alert",
        "forwarded message in the message asked about": "db1 is down",
        "attachment message.txt in the message asked about (truncated)": "x" * MAX_TEXT_CHARS,
    }


async def test_message_menu_says_what_could_not_be_read(at: Scene):
    file = at.server.world.attachment(at.server.rest.base, "a.txt", b"x")
    del at.server.world.files[file["id"]]
    _, context = await asked_about(
        at, at.server.world.post(at.channel, at.ben, "", attachments=[file])
    )
    assert context == {"the message asked about": "(what it carries could not be read)"}
