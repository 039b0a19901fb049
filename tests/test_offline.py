"""The model without a key: answers from passages, cites them, knows when nothing fits."""

from pathlib import Path
from typing import Any

import pytest

from core.agent import Agent
from core.config import HELP_CENTER
from core.extract import sentences
from core.offline import NOTHING_FITS, OfflineModel, statements
from core.protocols import ModelReply
from core.search import DocIndex
from core.tools.read_doc import make_read_doc
from core.tools.search_docs import make_search_docs
from core.transcript import message, text_block
from core.types import Run, StopReason
from tests.support import collect, task_for


@pytest.fixture
async def library(tmp_path: Path) -> Any:
    index = DocIndex(HELP_CENTER, tmp_path)
    await index.open()
    yield index
    await index.close()


async def answer(library: DocIndex, question: str, **limits: Any) -> Run:
    tools = {tool.name: tool for tool in (make_search_docs(library, 3), make_read_doc(library))}
    run, _ = await collect(Agent(OfflineModel(), tools, library).run(task_for(question, **limits)))
    return run


@pytest.mark.parametrize(
    ("question", "path"),
    [
        ("What should I put at the top of my resume?", "what-goes-at-the-top-of-a-resume.md"),
        ("How long should my resume be?", "how-long-should-a-resume-be.md"),
        ("What happens to my data when I delete my account?", "your-data-and-privacy.md"),
        ("May I ask about the salary in the first interview?", "talking-about-salary.md"),
    ],
)
async def test_a_question_is_answered_in_the_documents_words_with_its_source(
    library: DocIndex, question: str, path: str
) -> None:
    run = await answer(library, question)
    assert run.stop_reason is StopReason.DONE
    assert path in [source.path for source in run.sources]
    assert "[1]" in run.text
    assert run.cost_usd == 0
    first = run.sources[0]
    text = (HELP_CENTER / first.path).read_text(encoding="utf-8")
    assert " ".join(first.quote.split())[:60] in " ".join(text.split())


@pytest.mark.parametrize(
    "question",
    [
        "What is the capital of France?",
        "How do I cook rice?",
        "Who won the world cup in 2018?",
        "Explain quantum entanglement to me",
        "???",
    ],
)
async def test_a_question_off_the_topic_gets_no_answer(library: DocIndex, question: str) -> None:
    run = await answer(library, question)
    assert run.sources == ()
    assert NOTHING_FITS in run.text or not run.trace


async def test_a_tiny_budget_and_one_turn_give_their_stop_reasons(library: DocIndex) -> None:
    question = "What should I put at the top of my resume?"
    assert (await answer(library, question, max_turns=1)).stop_reason is StopReason.MAX_TURNS
    assert (await answer(library, question, max_tokens=50)).stop_reason is StopReason.BUDGET
    short = await answer(library, question, max_reply_tokens=16)
    assert short.stop_reason is StopReason.MAX_OUTPUT


async def test_named_files_are_read_and_a_missing_one_is_told(library: DocIndex) -> None:
    run = await answer(
        library,
        "First read using-keywords.md, then look at pyproject.toml: which keywords do I use?",
    )
    read = {str(step.input["path"]): step for step in run.trace if step.tool == "read_doc"}
    assert not read["using-keywords.md"].is_error
    assert read["pyproject.toml"].is_error
    assert "pyproject.toml" in run.text
    assert run.stop_reason is StopReason.DONE
    assert [source.path for source in run.sources] == ["using-keywords.md"]


@pytest.mark.parametrize(
    ("text", "facts", "rest"),
    [
        ("My name is Ada. How long should it be?", [("name", "Ada")], "How long should it be?"),
        ("I live in Pune", [("place", "Pune")], ""),
        ("I'm a nurse, by the way", [("role", "a nurse")], ""),
        ("Please remember that my team is Blue.", [("team", "Blue")], ""),
        ("Do you remember that my team is Blue?", [], "Do you remember that my team is Blue?"),
        ("I am looking for work", [], "I am looking for work"),
    ],
)
def test_statements_about_oneself_are_told_from_questions(
    text: str, facts: list[tuple[str, str]], rest: str
) -> None:
    assert statements(text) == (facts, rest)


async def test_what_was_told_is_answered_from_the_facts() -> None:
    preamble = "Today is Monday.\n\nFacts you already know\n<facts>\n- name: Ada\n</facts>"
    asked = message("user", [text_block(preamble), text_block("What is my name?")])
    tools = [{"name": "search_docs"}, {"name": "remember"}]
    events = [item async for item in OfflineModel().stream("", [asked], tools, 500)]
    reply = events[-1]
    assert isinstance(reply, ModelReply)
    assert reply.blocks[0]["text"] == "You told me: your name is Ada."


def test_sentences_leave_out_headings_and_code_and_read_tables_by_row() -> None:
    table = "| size | cost |\n|---|---:|\n| big | 4 |\n| small | 1 |"
    text = (
        f'# Head\n\nOne is "here." Two!\n\n- An item.\n\n{table}\n\n```\ncode. Here.\n```\n\nEnd.'
    )
    assert sentences(text) == [
        'One is "here."',
        "Two!",
        "An item.",
        "size: big; cost: 4",
        "size: small; cost: 1",
        "End.",
    ]


async def test_search_by_words_alone_answers_too(tmp_path: Path) -> None:
    index = DocIndex(HELP_CENTER, tmp_path, by_words_only=True)
    await index.open()
    run = await answer(index, "How long should my resume be?")
    await index.close()
    assert run.sources[0].path == "how-long-should-a-resume-be.md"
