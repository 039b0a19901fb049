"""What is told when Slack is not set up right: everything at once, with a remedy, no secret."""

import asyncio
import subprocess
import sys
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import pytest

from bots.process import checks_text
from bots.slack.doctor import doctor
from bots.slack.manifest import manifest_text, wanted_scopes
from bots.slack.settings import SlackSettings
from core.config import load_settings
from core.errors import ConfigError
from tests.slack_server import APP_TOKEN, BOT_TOKEN, SCOPES, SlackServer
from tests.support_slack import ROOT


@pytest.fixture
async def slack() -> AsyncGenerator[SlackServer]:
    async with SlackServer() as slack:
        yield slack


def _settings(slack: SlackServer, **given: Any) -> SlackSettings:
    known = {"slack_bot_token": BOT_TOKEN, "slack_app_token": APP_TOKEN, "slack_api_url": slack.url}
    return load_settings(SlackSettings, {**known, **given})


async def test_all_is_well(slack: SlackServer):
    checks = await doctor(_settings(slack, slack_bot_token=f"  {BOT_TOKEN}\n"))
    assert all(check.is_ok for check in checks), checks_text(checks)
    assert [check.name for check in checks] == [
        *("SLACK_BOT_TOKEN", "SLACK_APP_TOKEN", "auth.test", "scopes", "socket")
    ]
    assert BOT_TOKEN not in checks_text(checks)


async def test_missing_scopes_are_named_with_what_they_are_for(slack: SlackServer):
    slack.scopes = SCOPES.replace("channels:history,", "").replace("files:read", "chat:write")
    text = checks_text(await doctor(_settings(slack)))
    assert "FAIL  scopes: missing channels:history, files:read" in text
    assert "without it follow-ups in public channels never arrive" in text
    assert "install the app again" in text


@pytest.mark.parametrize("method", ["auth.test", "apps.connections.open"])
@pytest.mark.parametrize("error", ["invalid_auth", "account_inactive", "ratelimited"])
async def test_each_refusal_of_slack_has_a_remedy(slack: SlackServer, method: str, error: str):
    slack.fail(method, error, times=9, retry_after_s=100)
    failed = [check for check in await doctor(_settings(slack)) if not check.is_ok]
    assert len(failed) == 1
    assert failed[0].detail == error
    assert failed[0].remedy


async def test_slack_out_of_reach_is_said(slack: SlackServer):
    checks = await doctor(_settings(slack, slack_api_url="http://127.0.0.1:9/api/"))
    assert "cannot be reached" in checks_text(checks)


async def test_http_mode_needs_the_signing_secret_and_no_app_token(slack: SlackServer):
    checks = await doctor(_settings(slack, slack_mode="http", slack_app_token=None))
    assert [check.name for check in checks if not check.is_ok] == ["SLACK_SIGNING_SECRET"]
    secret = {"slack_signing_secret": "0" * 32}
    checks = await doctor(_settings(slack, slack_mode="http", slack_app_token=None, **secret))
    assert all(check.is_ok for check in checks)


async def _run(slack: SlackServer, folder: Path, **more: str) -> tuple[int, str]:
    """The exit code and stderr of the real process."""
    environment = {"SLACK_API_URL": slack.url, "PYTHONPATH": str(ROOT), "DATA_DIR": str(folder)}
    return await asyncio.to_thread(_run_now, {**environment, **more}, folder)


def _run_now(environment: dict[str, str], folder: Path) -> tuple[int, str]:
    command = [sys.executable, "-m", "bots.slack"]
    done = subprocess.run(
        command,
        env=environment,
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    return done.returncode, done.stderr


async def test_swapped_tokens_end_the_process_at_once(slack: SlackServer, tmp_path: Path):
    swapped = {"SLACK_BOT_TOKEN": "xapp-9-hidden", "SLACK_APP_TOKEN": "xoxb-9-hidden\n"}
    code, text = await _run(slack, tmp_path, **swapped)
    assert code == 2
    assert "SLACK_BOT_TOKEN: should start with xoxb-, but starts with xapp-" in text
    assert "SLACK_APP_TOKEN: should start with xapp-, but starts with xoxb-" in text
    assert "exchange them" in text
    assert "hidden" not in text
    assert "Traceback" not in text


async def test_missing_scope_ends_the_process_at_once(slack: SlackServer, tmp_path: Path):
    slack.scopes = SCOPES.replace("channels:history,", "")
    tokens = {"SLACK_BOT_TOKEN": f"{BOT_TOKEN}\n", "SLACK_APP_TOKEN": APP_TOKEN}
    code, text = await _run(slack, tmp_path, **tokens)
    assert code == 2
    assert "missing channels:history" in text
    assert slack.connections == 0


async def test_wrong_settings_and_a_wrong_redis_url_are_told_without_the_secret(
    slack: SlackServer, tmp_path: Path
):
    tokens = {"SLACK_BOT_TOKEN": BOT_TOKEN, "SLACK_APP_TOKEN": APP_TOKEN}
    code, text = await _run(slack, tmp_path, **tokens, SLACK_MODE="carrier-pigeon", PORT="x")
    assert code == 2
    assert "SLACK_MODE" in text
    assert "PORT" in text
    code, text = await _run(slack, tmp_path, **tokens, REDIS_URL="rediss://hidden@127.0.0.1:6379")
    assert code == 2
    assert "rediss://" in text
    assert "hidden" not in text


def test_manifest_for_both_ways_to_connect():
    socket = manifest_text("socket")
    assert "socket_mode_enabled: true" in socket
    assert "request_url" not in socket
    http = manifest_text("http", "https://bot.example.com/")
    assert "socket_mode_enabled: false" in http
    assert http.count("request_url: https://bot.example.com/slack/events") == 2
    assert http.count("      url: https://bot.example.com/slack/events") == 2
    with pytest.raises(ConfigError, match="https"):
        manifest_text("http", "http://bot.example.com")
    assert wanted_scopes() == frozenset(SCOPES.split(","))
    for event in ("message.channels", "message.im", "app_mention", "agent_session_stopped"):
        assert f"- {event}\n" in socket
