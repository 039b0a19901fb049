"""Settings: typed, from the environment and `.env`, checked as a whole at start.

It must not know any platform: an adapter subclasses `Settings` for its own variables.
"""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar

from pydantic import AfterValidator, BeforeValidator, Field, SecretStr, ValidationError
from pydantic_settings import BaseSettings, SettingsConfigDict

from core.errors import ConfigError
from core.types import Limits

HELP_CENTER = Path(__file__).resolve().parent.parent / "examples" / "help-center"


def _trimmed(value: object) -> object:
    return value.strip() if isinstance(value, str) else value


def _is_address(value: str) -> str:
    if not re.match(r"https?://[^/]", value):
        raise ValueError("must begin with http:// or https://")
    return value


Text = Annotated[str, BeforeValidator(_trimmed)]
Address = Annotated[Text, AfterValidator(_is_address)]
Secret = Annotated[SecretStr, BeforeValidator(_trimmed)]
Folder = Annotated[Path, AfterValidator(Path.expanduser)]  # no shell expands what is in .env


class Settings(BaseSettings):
    """What core can be told. Each field is an environment variable of the same name."""

    model_config = SettingsConfigDict(
        env_file=".env", env_file_encoding="utf-8", extra="ignore", env_ignore_empty=True
    )

    anthropic_api_key: Secret | None = None
    anthropic_base_url: Address | None = None
    model: Text = "claude-haiku-5-5"
    thinking: Literal["disabled", "adaptive"] = "disabled"
    citations: bool = True
    offline: bool = False

    docs_path: Folder = HELP_CENTER
    docs_base_url: Text | None = None
    docs_include: Text = ""
    data_dir: Folder = Path(".data")
    search_by_meaning: bool = True
    search_results: int = Field(default=3, ge=1, le=20)

    redis_url: Secret | None = None
    memory_ttl_days: int = Field(default=180, ge=1)
    history_ttl_days: int = Field(default=30, ge=1)
    run_ttl_days: int = Field(default=7, ge=1)
    history_tokens: int = Field(default=8_000, ge=0)

    max_turns: int = Field(default=6, ge=1, le=50)
    max_tokens: int = Field(default=60_000, ge=1)
    max_reply_tokens: int = Field(default=1_500, ge=16)
    timeout_s: float = Field(default=120.0, gt=0)
    tool_timeout_s: float = Field(default=20.0, gt=0)

    concurrent_runs: int = Field(default=64, ge=1)
    lease_s: float = Field(default=10.0, ge=0.2)
    grace_s: float = Field(default=20.0, ge=0)
    health_port: int | None = Field(default=None, ge=0, le=65_535)
    log_level: Literal["DEBUG", "INFO", "WARNING", "ERROR"] = "WARNING"

    @property
    def is_offline(self) -> bool:
        """Whether the offline model answers: asked for, or no key is set."""
        return self.offline or not self.anthropic_api_key

    @property
    def limits(self) -> Limits:
        """What one run may use."""
        return Limits(
            max_turns=self.max_turns,
            max_tokens=self.max_tokens,
            max_reply_tokens=self.max_reply_tokens,
            timeout_s=self.timeout_s,
            tool_timeout_s=self.tool_timeout_s,
        )


S = TypeVar("S", bound=Settings)


def load_settings(kind: type[S], overrides: Mapping[str, Any] | None = None) -> S:
    """Settings of `kind` from the environment, `.env` and `overrides` (which win).

    Raises:
        ConfigError: naming every bad variable at once, and never a value; or `.env` is no text.
    """
    given = {name: value for name, value in (overrides or {}).items() if value is not None}
    try:
        return kind(**given)
    except (OSError, UnicodeDecodeError):
        raise ConfigError("The file .env cannot be read; it must be text in UTF-8.") from None
    except ValidationError as err:
        lines = [
            f"  {'.'.join(str(part) for part in problem['loc']).upper()}: "
            f"{problem['msg'].removeprefix('Value error, ')}"
            for problem in err.errors(include_input=False, include_url=False)
        ]
        raise ConfigError("These settings are wrong:\n" + "\n".join(lines)) from None
