"""`targets.yaml` of AgentEvals files, and the `.env` files beside it (specification agentv, 6)."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from evalwright.errors import InputError, Problem, did_you_mean
from evalwright.files import yaml

__all__ = ["Targets", "targets_file"]

_NAMES = ("targets.yaml", "targets.yml", ".agentv/targets.yaml", ".agentv/targets.yml")
_PROVIDERS = (
    "cli", "mock", "python", "openai", "anthropic", "azure", "gemini", "codex", "claude-code", "copilot-cli", "pi",
    "vscode",
)  # fmt: skip
_KEYS = {
    "name", "provider", "judge_target", "workers", "provider_batching", "temperature", "max_output_tokens", "response",
    "responses", "command_template", "command", "files_format", "cwd", "timeout_seconds", "healthcheck", "model",
    "base_url", "endpoint", "api_key", "deployment", "callable",
}  # fmt: skip
_AGENTS = ("codex", "claude-code", "copilot-cli", "pi", "vscode")
_REFERENCE = re.compile(r"\$\{\{\s*([A-Za-z_][A-Za-z0-9_]*)\s*\}\}\Z")
_KEY = "api_key"
_CAMEL = re.compile(r"(?<=[a-z])[A-Z]")


class Targets:
    """The targets of one file, by name; a mistake in one that is not used is told all the same.

    Variables need values in targets that are used only: files name the systems of a whole team.
    """

    def __init__(
        self, path: Path, targets: dict[str, dict[str, Any]], unset: dict[str, list[Problem]], warnings: list[Problem]
    ) -> None:
        self.path, self._targets, self.unset, self.warnings = path, targets, unset, warnings

    @classmethod
    def read(cls, path: Path, environment: Mapping[str, str]) -> Targets:
        """Raises InputError with every mistake of the file."""
        return cls(path, *_read(path, environment))

    def chosen(self, name: str) -> str:
        """The name itself. Raises InputError when there is no such target, or a variable of it is not set."""
        if name in self.unset:
            raise InputError(self.unset[name])
        if name not in self._targets:
            named = [*self._targets, *self.unset]
            known, near = ", ".join(named), did_you_mean(name, named)
            raise InputError(Problem(str(self.path), f"there is no target {name!r}{near} (there are: {known})"))
        return name

    def get(self, name: str) -> dict[str, Any]:
        return self._targets[name]

    def judge_of(self, name: str) -> str:
        """The target that judges what `name` answers: its `judge_target`, else itself."""
        judge = self._targets[name].get("judge_target")
        return self.chosen(judge) if isinstance(judge, str) else name

    def all(self) -> dict[str, dict[str, Any]]:
        return self._targets


def targets_file(named: Path | None, roots: list[Path]) -> Path | None:
    """The file that is named or lies in a named folder, else the one in the nearest of the search roots."""
    if named is not None and named.is_file():
        return named
    candidates = [folder / name for folder in ([named] if named is not None else roots) for name in _NAMES]
    return next((path for path in candidates if path.is_file()), None)


def _read(
    path: Path, environment: Mapping[str, str]
) -> tuple[dict[str, dict[str, Any]], dict[str, list[Problem]], list[Problem]]:
    document = yaml.load(path, "yaml12")
    listed = document.value.get("targets") if isinstance(document.value, dict) else None
    if not isinstance(listed, list):
        found = "nothing" if listed is None else type(listed).__name__
        raise InputError(
            Problem(str(path), f"targets: expected a list, found {found}", document.line(("targets",)), "targets")
        )
    problems: list[Problem] = []
    warnings = []
    targets = {}
    waiting: dict[str, list[Problem]] = {}
    for i, raw in enumerate(listed):
        for key, message in _mistakes(raw):
            problems.append(Problem(str(path), message, document.line(("targets", i)), f"targets[{i}]{key}"))
        if isinstance(raw, dict) and isinstance(raw.get("name"), str):
            resolved, unset = _resolved(raw, environment)
            for key, name in unset:
                message = f"{key}: the environment variable {name} of target {raw['name']!r} is not set"
                problem = Problem(str(path), message, document.line(("targets", i, key)), f"targets[{i}].{key}")
                waiting.setdefault(raw["name"], []).append(problem)
            if not unset:
                targets[raw["name"]] = resolved
            for key, message in _doubts(raw):
                warnings.append(Problem(str(path), message, document.line(("targets", i, key)), f"targets[{i}].{key}"))
    if problems:
        raise InputError(problems)
    return targets, waiting, warnings


def _mistakes(raw: Any) -> Iterator[tuple[str, str]]:
    if not isinstance(raw, dict):
        yield "", f"expected a mapping, found {type(raw).__name__}"
        return
    name = raw.get("name")
    if not isinstance(name, str) or not name:
        yield ".name", "name: a target needs a name"
    for key, value in raw.items():
        if _snake(str(key)) == _KEY and not (isinstance(value, str) and _REFERENCE.match(value.strip())):
            yield f".{key}", f"{key} of target {name!r}: expected the name of a variable, '${{{{ NAME }}}}', not a key"
    provider = raw.get("provider")
    if not isinstance(provider, str):
        yield ".provider", f"provider: target {name!r} needs a provider"
    elif provider not in _PROVIDERS:
        near = did_you_mean(provider, _PROVIDERS)
        yield (
            ".provider",
            f"unknown provider {provider!r} of target {name!r}{near} (there are: {', '.join(_PROVIDERS)})",
        )
    elif provider in _AGENTS:
        yield ".provider", f"target {name!r}: the provider {provider!r} is not available; wrap the program with 'cli'"


def _doubts(raw: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """What is allowed, but most likely not meant."""
    for key in raw:
        name = _snake(str(key))
        if name not in _KEYS:
            yield str(key), f"nothing reads the key {key!r}{did_you_mean(name, _KEYS)}"


def _resolved(raw: dict[str, Any], environment: Mapping[str, str]) -> tuple[dict[str, Any], list[tuple[str, str]]]:
    """The target with `${{ NAME }}` replaced; a key stays the name of its variable, so that it is never stored."""
    found: dict[str, Any] = {}
    unset = []
    for key, value in raw.items():
        name = _snake(str(key))
        reference = _REFERENCE.match(value.strip()) if isinstance(value, str) else None
        if reference is None:
            found[name] = value
        elif not environment.get(reference[1]):
            unset.append((name, reference[1]))
        elif name == _KEY:
            found["api_key_env"] = reference[1]
        else:
            found[name] = environment[reference[1]]
    return found, unset


def _snake(key: str) -> str:
    return _CAMEL.sub(lambda match: "_" + match[0].lower(), key)
