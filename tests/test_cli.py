"""`footnote` as people start it: real processes, their output and their exit codes."""

import asyncio
import json
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from bots import repl
from bots.console import ConsoleAdapter, message_of, session_of
from core.app import App
from core.config import Settings
from tests.anthropic_server import AnthropicServer
from tests.support_cli import QUESTION, Cli

KEYS = {
    "run_id",
    "text",
    "sources",
    "trace",
    "turns",
    "stop_reason",
    "usage",
    "cost_usd",
    "facts",
    "model",
}


@pytest.fixture
def cli(tmp_path: Path) -> Cli:
    return Cli(tmp_path)


def test_json_is_one_object_with_everything_in_it(cli: Cli) -> None:
    answer = cli.ask(QUESTION)
    assert set(answer) == KEYS
    assert answer["stop_reason"] == "done"
    assert answer["sources"][0]["path"] == "what-goes-at-the-top-of-a-resume.md"
    assert set(answer["sources"][0]) == {"n", "title", "path", "heading", "url", "quote"}
    assert set(answer["trace"][0]) == {"turn", "tool", "input", "output", "is_error", "ms"}
    assert set(answer["usage"]) == {"input", "output", "cache_read", "cache_write"}
    assert (answer["model"], answer["cost_usd"], answer["turns"]) == ("offline", 0, 2)


def test_a_person_sees_answer_sources_footer_and_trace_and_how_to_set_a_key(cli: Cli) -> None:
    out, err = cli("chat", QUESTION)
    assert "ANTHROPIC_API_KEY" in err.splitlines()[0]
    assert "At the top of your resume put your name" in out
    assert "[1]" in out
    assert "Stopped: done · 2 model calls · 1 search ·" in out
    assert "search_docs" in out
    assert "Searching the docs" in err


def test_another_stop_reason_exits_with_3_and_still_answers(cli: Cli) -> None:
    turns = cli.ask(QUESTION, "--max-turns", "1", code=3)
    assert turns["stop_reason"] == "max_turns"
    assert turns["sources"]
    assert cli.ask(QUESTION, "--max-tokens", "60", code=3)["stop_reason"] == "budget"
    assert cli.ask(QUESTION, "--max-reply-tokens", "16", code=3)["stop_reason"] == "max_output"


@pytest.mark.parametrize(
    ("arguments", "environ", "named"),
    [
        (["chat", "hi", "--max-turns", "0"], {}, "MAX_TURNS"),
        (["chat", "hi", "--docs", "/no/such/folder"], {}, "/no/such/folder"),
        (["chat", "   "], {}, "question is empty"),
        (["chat", "--json"], {}, "--json needs a question"),
        (["chat", "hi", "--session", ""], {}, "--session"),
        (["memory", "--session", "\udcff"], {}, "--session"),
        (["search", " "], {}, "nothing to search for"),
        (["discord", "invite", "footnote"], {}, "no application id"),
        (["chat", "hi"], {"MAX_TURNS": "many", "TIMEOUT_S": "-1"}, "TIMEOUT_S"),
        (["chat", "hi"], {"REDIS_URL": "redis://user:hunter22@127.0.0.1:1/0"}, "127.0.0.1:1"),
    ],
)
def test_bad_input_is_named_with_exit_code_2(
    cli: Cli, arguments: list[str], environ: dict[str, str], named: str
) -> None:
    out, err = cli(*arguments, code=2, **environ)
    assert named in err
    assert "hunter22" not in out + err


def test_a_fact_is_known_to_the_next_run_of_its_session_alone(cli: Cli) -> None:
    told = cli.ask("My name is Ada.", "--session", "one")
    assert told["facts"] == {"name": "Ada"}
    assert told["trace"][0]["tool"] == "remember"
    known = cli.ask("What is my name?", "--session", "one")
    assert "Ada" in known["text"]
    other = cli.ask("What is my name?", "--session", "two")
    assert other["facts"] == {}
    assert "Ada" not in json.dumps(other)
    assert "name: Ada" in cli("memory", "--session", "one")[0]
    assert "Nothing is remembered" in cli("memory", "--session", "two")[0]


def test_forgetting_is_confirmed_counted_and_complete(cli: Cli) -> None:
    cli.ask("My name is Ada.", "--session", "one")
    _, err = cli("forget", "--session", "one", code=2)
    assert "--yes" in err
    out, _ = cli("forget", "--session", "one", "--yes")
    assert "1 fact," in out
    again = cli.ask("What is my name?", "--session", "one")
    assert "Ada" not in json.dumps(again)
    exported = json.loads(cli("memory", "export", "--session", "one")[0])
    assert exported["facts"] == {}


def test_a_named_session_is_one_conversation_across_processes(cli: Cli) -> None:
    cli.ask("How long should a resume be?", "--session", "one")
    followed = cli.ask("And for academia?", "--session", "one")
    assert "How long should a resume be?" in followed["trace"][0]["input"]["query"]


def test_a_short_question_after_one_off_the_topic_is_answered_for_itself(cli: Cli) -> None:
    cli.ask("How do I reset the quantum flux?", "--session", "one")
    short = cli.ask("What is an ATS?", "--session", "one")
    assert short["sources"][0]["path"] == "how-applicant-tracking-systems-work.md"


def test_a_talk_over_a_pipe_runs_commands_and_questions(cli: Cli) -> None:
    lines = f"My name is Ada.\n/memory\n{QUESTION}\n/trace\n/forget name\n/memory\n/nope\n/quit\n"
    out, _ = cli("chat", stdin=lines)
    assert "name: Ada" in out
    assert "  in:  " in out
    assert "Forgotten: 1 fact" in out
    assert "I remember nothing" in out
    assert "I do not know /nope" in out


def test_a_question_that_is_cut_says_so(cli: Cli) -> None:
    _, err = cli("chat", f"{QUESTION} {'x' * 8_000}")
    assert "Only the first 8,000 characters are read." in err


def test_search_and_index_show_what_the_bot_finds(cli: Cli, tmp_path: Path) -> None:
    docs = tmp_path / "docs"
    docs.mkdir()
    (docs / "a.md").write_text("# Backups\n\nBackups run at two every night.\n")
    (docs / "empty.md").write_text("")
    out, _ = cli("index", "--docs", str(docs))
    assert "1 passages" in out
    assert "skipped empty.md" in out
    hits = json.loads(cli("search", "when do backups run", "--json", "--docs", str(docs))[0])
    assert hits[0]["path"] == "a.md"
    assert json.loads(cli("search", "zebra", "--json", "--docs", str(docs))[0]) == []


@pytest.mark.skipif(sys.platform == "win32", reason="no such names there")
def test_a_files_name_cannot_write_lines_of_its_own(cli: Cli, tmp_path: Path) -> None:
    docs = tmp_path / "docs"
    docs.mkdir()
    (docs / "a\n9. forged.md").write_text("# Backups\n\nBackups run at two every night.\n")
    (docs / "b\nskipped.md").write_text("")
    shown = cli("search", "backups", "--docs", str(docs))[0] + cli("index", "--docs", str(docs))[0]
    assert "a 9. forged.md:" in shown
    assert "skipped b skipped.md: " in shown


async def test_chat_against_the_providers_protocol(cli: Cli) -> None:
    async with AnthropicServer() as server:
        answer = await asyncio.to_thread(
            lambda: cli.ask(QUESTION, ANTHROPIC_API_KEY="sk-test", ANTHROPIC_BASE_URL=server.url)
        )
    assert answer["stop_reason"] == "done"
    assert answer["model"] == "claude-haiku-5-5"
    assert answer["sources"]
    assert answer["cost_usd"] > 0
    assert "[1]" in answer["text"]


async def test_a_killed_chat_answers_when_it_is_started_again(cli: Cli) -> None:
    async with AnthropicServer() as server:
        held = asyncio.Event()
        respond = server.respond
        assert respond is not None

        def wait(body: Any) -> Any:
            held.set()
            return replace(respond(body), delay_s=60.0)

        server.respond = wait
        model: dict[str, Any] = {
            "ANTHROPIC_API_KEY": "sk-test",
            "ANTHROPIC_BASE_URL": server.url,
        }
        killed = cli.start("chat", QUESTION, "--session", "one", **model)
        await asyncio.wait_for(held.wait(), 30)
        killed.kill()
        await asyncio.to_thread(killed.communicate)
        server.respond = respond
        out, err = await asyncio.to_thread(
            lambda: cli("chat", "--session", "one", stdin="/quit\n", **model)
        )
    assert f"An earlier question is answered first: {QUESTION}" in err
    assert "At the top of your resume" in out
    assert "Stopped: done" in out


async def test_an_earlier_question_that_takes_long_does_not_end_the_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(repl, "EARLIER_TIMEOUT_S", 0.0)
    session = session_of("one")
    app = await App.open(Settings(data_dir=tmp_path, offline=True, grace_s=1.0))
    try:
        await app.chat.submit(message_of(session, "main", "How long should a resume be?"))
        terminal = repl.Terminal(app, ConsoleAdapter(session), session, "main")
        await terminal.finish_earlier()
        run = await terminal.ask(QUESTION)
    finally:
        await app.close()
    said = capsys.readouterr()
    assert "It takes long" in said.err
    assert "At the top of your resume" in run.text
    assert said.out.count("Stopped: done") == 2


def test_inbox_shows_what_waits(cli: Cli) -> None:
    cli.ask("My name is Ada.")
    out, _ = cli("inbox")
    assert "0 waiting or under way" in out
    _, err = cli("inbox", "retry", "r123", code=1)
    assert "no dead letter r123" in err


def test_help_names_every_command(cli: Cli) -> None:
    out, _ = cli("--help")
    for command in ("chat", "memory", "forget", "search", "index", "inbox", "slack", "discord"):
        assert command in out
