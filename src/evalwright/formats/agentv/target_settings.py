"""The settings that a target of `targets.yaml` may have, whatever its provider."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any, ClassVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError, ValidationInfo, field_validator

from evalwright.files.key_paths import as_written, bracketed, kind_in_words
from evalwright.files.masker import looks_secret
from evalwright.sandbox.patterns import compiled_pattern

__all__ = ["AGENTS", "BOOLEANS", "KEYS", "NO_EFFECT", "OPTIONAL", "checked", "settings_schema"]

AGENTS = {
    "claude": "claude", "claude-cli": "claude", "claude-code": "claude", "codex": "codex", "codex-cli": "codex",
    "copilot": "copilot", "copilot-cli": "copilot", "pi": "pi", "pi-cli": "pi", "pi-coding-agent": "pi",
}  # fmt: skip
"""The agent for each name of a provider."""
_Milliseconds = Annotated[float, Field(ge=0, le=3_600_000)]


_NUMBERS = (
    "workers", "max_retries", "retry_initial_delay_ms", "retry_max_delay_ms", "retry_backoff_factor", "temperature",
    "max_output_tokens", "timeout_seconds",
)  # fmt: skip


class _Response(BaseModel):
    pattern: str
    response: Any

    @field_validator("pattern")
    @classmethod
    def _is_pattern(cls, pattern: str) -> str:
        try:
            compiled_pattern(pattern)
        except ValueError as error:
            raise ValueError(f"not a regular expression: {error}") from None
        return pattern


class _Settings(BaseModel):
    """All known keys; numbers may be strings, from variables."""

    model_config: ClassVar[ConfigDict] = ConfigDict(extra="ignore")

    @field_validator("command", "args", mode="before")
    @classmethod
    def _is_of_words(cls, value: Any, info: ValidationInfo) -> Any:
        text = " or a text" if info.field_name == "command" else ""
        sound = isinstance(value, list) and all(type(word) in (str, int, float) for word in value)
        if not (sound or value is None or (text and isinstance(value, str))):
            raise ValueError(f"expected a list of texts{text}")
        return value

    @field_validator(*_NUMBERS, mode="before")
    @classmethod
    def _is_no_truth_value(cls, value: Any) -> Any:
        if isinstance(value, bool):
            raise ValueError("expected a number")
        return value

    name: Any = None
    provider: Any = None
    judge_target: str | None = None
    workers: Annotated[int, Field(ge=1, le=50)] | None = None
    provider_batching: bool | None = None
    max_retries: Annotated[int, Field(ge=0, le=100)] | None = None
    retry_initial_delay_ms: _Milliseconds | None = None
    retry_max_delay_ms: _Milliseconds | None = None
    retry_backoff_factor: Annotated[float, Field(ge=1, le=100)] | None = None
    retry_status_codes: list[Annotated[int, Field(ge=100, le=599)]] | None = None
    temperature: Annotated[float, Field(ge=0)] | None = None
    max_output_tokens: Annotated[int, Field(ge=1)] | None = None
    response: Any = None
    responses: list[_Response] | None = None
    command_template: str | None = None
    command: str | list[str | int | float] | None = None
    files_format: str | None = None
    executable: str | None = None
    args: list[str | int | float] | None = None
    model_reasoning_effort: str | None = None
    subprovider: str | None = None
    thinking: str | None = None
    tools: str | None = None
    cwd: str | None = None
    workspace_template: str | None = None
    timeout_seconds: Annotated[float, Field(gt=0)] | None = None
    healthcheck: Any = None
    keep_temp_files: bool | None = None
    log_dir: Any = None
    log_format: Any = None
    stream_log: Any = None
    use_target: str | None = None
    verbose: bool | None = None
    model: str | None = None
    base_url: str | None = None
    endpoint: str | None = None
    api_key: Any = None
    api_key_env: Any = None
    deployment: str | None = None
    version: str | None = None
    api_version: str | None = None
    callable: str | None = None
    fixtures: str | None = None
    source_target: str | None = None
    suite: str | None = None
    eval_path: str | None = None
    variant: str | None = None


KEYS = frozenset(_Settings.model_fields) - {"api_key_env"}
"""The keys that files may have, in snake case."""
BOOLEANS = frozenset(key for key, field in _Settings.model_fields.items() if field.annotation == bool | None)
NO_EFFECT = frozenset({"verbose", "version", "api_version", "log_dir", "log_format", "stream_log"})
"""Known keys without effect: a chattier console, logs, and what Azure's newer interface no longer has."""
OPTIONAL = frozenset({"cwd", "executable"})
"""Keys that are as if they were not written if their variable is not set, as in the original."""


def settings_schema() -> dict[str, Any]:
    """The JSON Schema of one target, as pydantic writes it."""
    return _Settings.model_json_schema()


def checked(target: dict[str, Any]) -> tuple[dict[str, Any], list[tuple[str, str]]]:
    """The target with values of the right types, and what is wrong, as key and message."""
    try:
        settings = _Settings.model_validate(target)
    except ValidationError as error:
        return target, list(_mistakes(error, target.get("name")))
    return {**target, **settings.model_dump(exclude_unset=True)}, []


def _mistakes(error: ValidationError, name: Any) -> Iterator[tuple[str, str]]:
    for mistake in error.errors():
        key = bracketed(mistake["loc"])
        message = mistake["msg"].removeprefix("Value error, ")
        found = kind_in_words(mistake["input"]) if looks_secret(key) else as_written(mistake["input"])
        yield key, f"{key} of target {name!r}: {message[0].lower()}{message[1:]}, found {found}"
