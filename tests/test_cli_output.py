"""`footnote` where its output goes nowhere, or can show little."""

import subprocess
from pathlib import Path

import pytest

from tests.support_cli import FOOTNOTE, QUESTION, Cli


@pytest.fixture
def cli(tmp_path: Path) -> Cli:
    return Cli(tmp_path)


@pytest.mark.parametrize("options", [[], ["--json"]])
def test_a_reader_who_leaves_early_ends_nothing_and_leaves_nothing_waiting(
    cli: Cli, options: list[str]
) -> None:
    process = cli.start("chat", QUESTION, *options)
    assert process.stdout is not None
    process.stdout.close()
    _, err = process.communicate(timeout=60)
    assert "Error" not in err
    assert "0 waiting or under way, oldest 0 s, 0 in flight, 0 dead" in cli("inbox")[0]


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="the system has no full disk to offer")
def test_an_answer_that_cannot_be_written_is_said_and_not_tried_for_ever(cli: Cli) -> None:
    with Path("/dev/full").open("w") as full:
        process = subprocess.Popen(
            [FOOTNOTE, "chat", QUESTION],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            env=cli.environ,
        )
        _, err = process.communicate(timeout=60)
    assert process.returncode == 2
    assert "could not be written: No space left" in err
    assert "Traceback" not in err


def test_a_terminal_of_few_letters_shows_what_it_can(cli: Cli) -> None:
    out, _ = cli("chat", QUESTION, PYTHONIOENCODING="ascii:strict")
    assert "At the top of your resume put your name" in out
    assert "Stopped: done ? 2 model calls" in out
