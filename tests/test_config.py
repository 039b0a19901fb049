"""Settings: read from the environment, checked as a whole, never shown."""

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from bots.discord.settings import DiscordSettings
from bots.slack.settings import SlackSettings
from core.config import Settings, load_settings
from core.errors import ConfigError


def test_every_bad_variable_is_named_at_once_and_no_value_is_shown(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("MAX_TURNS", "hunter22")
    monkeypatch.setenv("TIMEOUT_S", "-1")
    monkeypatch.setenv("ANTHROPIC_BASE_URL", "hunter22:4000")
    with pytest.raises(ConfigError) as caught:
        load_settings(Settings)
    assert "MAX_TURNS" in str(caught.value)
    assert "TIMEOUT_S" in str(caught.value)
    assert "ANTHROPIC_BASE_URL: must begin with http:// or https://" in str(caught.value)
    assert "hunter22" not in str(caught.value)


def test_a_file_of_settings_that_is_no_text_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(Settings.model_config, "env_file", str(tmp_path / ".env"))
    (tmp_path / ".env").write_bytes("MODEL=café".encode("cp1252"))
    with pytest.raises(ConfigError, match="UTF-8"):
        load_settings(Settings)


@pytest.mark.skipif(shutil.which("make") is None, reason="there is no make")
def test_a_question_reaches_make_chat_as_it_was_typed() -> None:
    question = """What costs $5, "$HOME" or `id`; isn't it $(Q)?"""
    show = """show: ; @printf %s "$$Q" """
    # The tests may themselves be run by make, which would add to the output of this one.
    environ = {name: value for name, value in os.environ.items() if "MAKE" not in name}
    made = subprocess.run(
        ["make", "--no-print-directory", "--eval", show, "show", f"Q={question}"],
        cwd=Path(__file__).parent.parent,
        env=environ,
        capture_output=True,
        text=True,
        check=True,
    )
    assert made.stdout == question


def test_values_are_trimmed_folders_expanded_and_options_win(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", " sk-test\n")
    monkeypatch.setenv("DOCS_PATH", "~/handbook")
    monkeypatch.setenv("MAX_TURNS", "3")
    settings = load_settings(Settings, {"max_turns": 4, "max_tokens": None})
    assert settings.anthropic_api_key is not None
    assert settings.anthropic_api_key.get_secret_value() == "sk-test"
    assert settings.docs_path == Path.home() / "handbook"
    assert (settings.limits.max_turns, settings.limits.max_tokens) == (4, 60_000)
    assert "sk-test" not in repr(settings)


def test_without_a_key_the_offline_model_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    assert load_settings(Settings).is_offline
    for blank in ("", " "):
        monkeypatch.setenv("ANTHROPIC_API_KEY", blank)
        assert load_settings(Settings).is_offline
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-test")
    assert not load_settings(Settings).is_offline
    assert load_settings(Settings, {"offline": True}).is_offline


def test_the_example_file_names_the_variables_that_exist_and_all_of_them() -> None:
    root = Path(__file__).parent.parent
    shown = set(
        re.findall(r"^#?([A-Z][A-Z_]+)=", (root / ".env.example").read_text(), re.MULTILINE)
    )
    kinds = (Settings, SlackSettings, DiscordSettings)
    known = {name.upper() for kind in kinds for name in kind.model_fields}
    assert shown - known == set()
    assert known - shown == {"OFFLINE"}  # for one question: footnote chat --offline


def test_the_readme_names_every_variable_of_core() -> None:
    readme = (Path(__file__).parent.parent / "README.md").read_text()
    missing = {name.upper() for name in Settings.model_fields if f"`{name.upper()}`" not in readme}
    assert missing == {"OFFLINE"}
