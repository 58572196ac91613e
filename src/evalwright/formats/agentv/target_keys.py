"""The keys of a target of `targets.yaml`: their spellings, and those that are most likely not meant."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from evalwright.errors import did_you_mean
from evalwright.formats.agentv.health import HEALTH_KEYS
from evalwright.formats.agentv.target_settings import KEYS
from evalwright.formats.agentv.vocabulary import snake_case
from evalwright.formats.shared.isolation import OF_PROGRAMS, isolating

__all__ = [
    "ALSO_NAMED",
    "API_KEY",
    "CREDENTIALS",
    "JUDGE_TARGET",
    "known_key",
    "provider_in",
    "reference_in",
    "target_doubts",
    "unread_of_target",
]

JUDGE_TARGET = "judge_target"
_SPELLINGS = {"azure-openai": "azure", "google": "gemini", "google-gemini": "gemini"}
ALSO_NAMED = {
    "grader_target": JUDGE_TARGET,
    "attachments_format": "files_format",
    "keep_output_files": "keep_temp_files",
    "cli_verbose": "verbose",
    "resource": "endpoint",
    "resource_name": "endpoint",
    "deployment_name": "deployment",
    "binary": "executable",
    "arguments": "args",
    "log_directory": "log_dir",
    "log_output_format": "log_format",
}
"""Other names of keys; one that is written under its first name, too, has the value of that."""
_REFERENCE = re.compile(r"\$\{\{\s*([A-Za-z_][A-Za-z0-9_]*)\s*\}\}\Z")
API_KEY = "api_key"
CREDENTIALS: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(("openai", "anthropic", "gemini", "openrouter"), (API_KEY,)),
    "azure": (API_KEY, "endpoint"),
}
"""Keys whose values belong in the environment, by provider."""


def provider_in(raw: Mapping[str, Any]) -> str:
    """The provider in a single spelling."""
    named = str(raw.get("provider")).strip().lower()
    return _SPELLINGS.get(named, named)


def known_key(key: Any) -> str:
    """A key in snake case, under its first name."""
    name = snake_case(str(key))
    return ALSO_NAMED.get(name, name)


def unread_of_target(raw: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """The keys that nothing reads."""
    for key, value in raw.items():
        name = known_key(key)
        if name not in KEYS and not any(isolating({key: value}, (), OF_PROGRAMS)):
            yield str(key), f"nothing reads the key {key!r}{did_you_mean(name, KEYS)}"
        for inner in value if name == "healthcheck" and isinstance(value, dict) else ():
            if snake_case(str(inner)) not in HEALTH_KEYS:
                yield f"{key}.{inner}", f"nothing reads the key {inner!r}{did_you_mean(str(inner), HEALTH_KEYS)}"


def target_doubts(raw: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """What is allowed but most likely not meant, among keys that are read."""
    if raw.get("command_template") and raw.get("command"):
        yield "command", f"command of target {raw.get('name')!r} is not used: there is command_template, too"
    for key, value in raw.items():
        name = known_key(key)
        if name not in KEYS:
            continue
        if name in CREDENTIALS.get(provider_in(raw), ()) and reference_in(value) is None:
            yield str(key), f"{key} of target {raw.get('name')!r}: the standard wants a variable, '${{{{ NAME }}}}'"
        elif isinstance(value, str) and "${{" in value and reference_in(value) is None:
            yield str(key), f"{key}: '${{{{ NAME }}}}' stands for a variable only where it is the whole value"


def reference_in(value: Any) -> re.Match[str] | None:
    return _REFERENCE.match(value.strip()) if isinstance(value, str) else None
