"""`targets.yaml` of AgentEvals files, and the `.env` files next to it."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from itertools import chain, count
from pathlib import Path
from typing import Any

from evalwright.errors import InputError, Problem, did_you_mean
from evalwright.files import yaml
from evalwright.files.credentials import credentials
from evalwright.files.dotenv import is_address
from evalwright.files.key_paths import steps_of
from evalwright.files.masker import may_be_secret
from evalwright.formats.agentv.target_settings import KEYS, checked
from evalwright.formats.shared.isolation import isolating, refusal
from evalwright.llm.routes import route_of
from evalwright.model.chat import ChatRequest
from evalwright.session import hide

__all__ = ["Targets", "targets_file"]

_NAMES = ("targets.yaml", "targets.yml", ".agentv/targets.yaml", ".agentv/targets.yml")
_PROVIDERS = (
    "cli", "mock", "python", "openai", "anthropic", "azure", "gemini", "codex", "claude-code", "copilot-cli", "pi",
    "vscode",
)  # fmt: skip
_AGENTS = ("codex", "claude-code", "copilot-cli", "pi", "vscode")
_REFERENCE = re.compile(r"\$\{\{\s*([A-Za-z_][A-Za-z0-9_]*)\s*\}\}\Z")
_KEY = "api_key"
_CREDENTIALS = {"openai": (_KEY,), "anthropic": (_KEY,), "gemini": (_KEY,), "azure": (_KEY, "endpoint")}
"""What belongs into the environment, by provider."""
_NO_WORD = re.compile(r"\W")
_CAMEL = re.compile(r"(?<=[a-z])[A-Z]")


class Targets:
    """The targets of one file, by name; a mistake in one that is not used is reported all the same.

    Variables need values in targets that are used only: files name the systems of a whole team.
    """

    path: Path
    unset: dict[str, list[Problem]]
    """By target, the variables that are not set."""
    refused: dict[str, list[Problem]]
    """By target, the keys that isolate and are not supported."""
    warnings: list[Problem]

    def __init__(self, path: Path, environment: Mapping[str, str], suggested: Collection[str] = ()) -> None:
        """`suggested` are the variables that only a `.env` sets. Raises InputError with every mistake of the file."""
        document = yaml.load(path, "yaml12")
        listed = document.value.get("targets") if isinstance(document.value, dict) else None
        if not isinstance(listed, list):
            found = "nothing" if listed is None else type(listed).__name__
            line = document.line(("targets",))
            raise InputError(Problem(str(path), f"targets: expected a list, found {found}", line, "targets"))
        read = _Reading(path, document, environment, suggested)
        for i, raw in enumerate(listed):
            read.add(i, raw)
        if read.problems:
            raise InputError(read.problems)
        self.path, self.warnings, self.unset, self._targets = path, read.warnings, read.unset, read.targets
        self.refused = read.refused
        self.keys: dict[str, str] = read.keys
        """Keys that are written into the file, by the variables that the targets have them in."""
        others = enumerate(credentials(read.targets), 1)
        self.secrets: dict[str, str] = {
            **{f"{key}_{i}": value for i, (key, value) in others},
            **read.keys,
            **read.taken,
        }
        """What must be masked, by name."""

    def chosen(self, name: str) -> str:
        """The name itself. Raises InputError when there is no such target, or a variable of it is not set."""
        if wrong := [*self.unset.get(name, ()), *self.refused.get(name, ())]:
            raise InputError(wrong)
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

    def work_in_copies(self, template: str | None) -> None:
        """Let the targets without a template of their own work in copies of this one, if there is one."""
        for target in self._targets.values() if template is not None else ():
            target.setdefault("workspace_template", template)

    def all(self) -> dict[str, dict[str, Any]]:
        return self._targets


def targets_file(named: Path | None, roots: list[Path]) -> Path | None:
    """The file that is named or lies in a named folder, else the one in the nearest of the search roots."""
    if named is not None and named.is_file():
        return named
    candidates = [folder / name for folder in ([named] if named is not None else roots) for name in _NAMES]
    return next((path for path in candidates if path.is_file()), None)


class _Reading:
    """One pass over a file."""

    def __init__(
        self, path: Path, document: yaml.Document, environment: Mapping[str, str], suggested: Collection[str]
    ) -> None:
        self._path, self._document, self._environment = path, document, environment
        self._suggested = suggested
        self.problems: list[Problem] = []
        self.warnings: list[Problem] = []
        self.targets: dict[str, dict[str, Any]] = {}
        self.unset: dict[str, list[Problem]] = {}
        self.refused: dict[str, list[Problem]] = {}
        self.keys: dict[str, str] = {}
        self.taken: dict[str, str] = {}
        """Values of variables, by name."""

    def add(self, i: int, raw: Any) -> None:
        self.problems += [self._problem(i, key, message) for key, message in _mistakes(raw)]
        if not isinstance(raw, dict) or not isinstance(name := raw.get("name"), str):
            return
        self.warnings += [self._problem(i, key, message) for key, message in _doubts(raw)]
        if isolated := [key for key in isolating(raw, ()) if _snake(key) not in KEYS]:
            self.refused[name] = [self._problem(i, key, refusal(key)) for key in isolated]
        resolved, unset = _resolved(raw, self._environment)
        self._hide(raw)
        for key, variable in unset:
            message = f"{key}: the environment variable {variable} of target {name!r} is not set"
            self.unset.setdefault(name, []).append(self._problem(i, key, message))
        unset += [(key, "") for key in self._diverted(i, name, raw)]
        if isinstance(key := resolved.pop(_KEY, None), str):
            resolved["api_key_env"] = variable = self._variable(name, key)
            self.keys[variable] = key
        if not unset:
            self.targets[name], wrong = checked(resolved)
            self.problems += [self._problem(i, key, message) for key, message in wrong]

    def _diverted(self, i: int, name: str, raw: dict[str, Any]) -> Iterator[str]:
        """Keys with an address that only a `.env` sets, and to which a key of the environment would be sent."""
        named = {_snake(str(key)): reference[1] for key, value in raw.items() if (reference := _reference_in(value))}
        secret = named.get(_KEY)
        wanted = [secret] if secret else [] if raw.get(_KEY) else _keys_of(str(raw.get("provider")))
        sent = [one for one in wanted if self._environment.get(one) and one not in self._suggested]
        for key, variable in named.items():
            if sent and variable in self._suggested and is_address(key):
                message = (
                    f"{key}: {sent[0]} of your environment would be sent to the address that only a .env sets "
                    f"({variable}); set both there or both in the environment"
                )
                self.unset.setdefault(name, []).append(self._problem(i, key, message))
                yield key

    def _hide(self, raw: dict[str, Any]) -> None:
        named = [reference[1] for key, value in raw.items() if key != "name" and (reference := _reference_in(value))]
        taken = {name: self._environment[name] for name in named if may_be_secret(self._environment.get(name, ""))}
        self.taken |= taken
        hide(taken)

    def _variable(self, name: str, key: str) -> str:
        """The variable for a target's key: one that holds nothing else, here or in the environment."""
        plain = _NO_WORD.sub("_", name).upper()
        names = chain([f"{plain}_API_KEY"], (f"{plain}_{number}_API_KEY" for number in count(2)))
        return next(n for n in names if {self.keys.get(n), self._environment.get(n)} <= {None, key})

    def _problem(self, i: int, key: str, message: str) -> Problem:
        line = self._document.line(("targets", i, *steps_of(key)))
        return Problem(str(self._path), message, line, f"targets[{i}].{key}".rstrip("."))


def _mistakes(raw: Any) -> Iterator[tuple[str, str]]:
    if not isinstance(raw, dict):
        yield "", f"expected a mapping, found {type(raw).__name__}"
        return
    name = raw.get("name")
    if not isinstance(name, str) or not name:
        yield "name", "name: a target needs a name"
    provider = raw.get("provider")
    if not isinstance(provider, str):
        yield "provider", f"provider: target {name!r} needs a provider"
    elif provider not in _PROVIDERS:
        near = did_you_mean(provider, _PROVIDERS)
        yield (
            "provider",
            f"unknown provider {provider!r} of target {name!r}{near} (there are: {', '.join(_PROVIDERS)})",
        )
    elif provider in _AGENTS:
        yield "provider", f"target {name!r}: the provider {provider!r} is not available; wrap the program with 'cli'"


def _doubts(raw: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """What is allowed, but most likely not meant."""
    for key, value in raw.items():
        name = _snake(str(key))
        if name not in KEYS and not any(isolating({key: value}, ())):
            yield str(key), f"nothing reads the key {key!r}{did_you_mean(name, KEYS)}"
        elif name in _CREDENTIALS.get(str(raw.get("provider")), ()) and _reference_in(value) is None:
            yield str(key), f"{key} of target {raw.get('name')!r}: the standard wants a variable, '${{{{ NAME }}}}'"
        elif isinstance(value, str) and "${{" in value and _reference_in(value) is None:
            yield str(key), f"{key}: '${{{{ NAME }}}}' stands for a variable only where it is the whole value"


def _resolved(raw: dict[str, Any], environment: Mapping[str, str]) -> tuple[dict[str, Any], list[tuple[str, str]]]:
    """The target with `${{ NAME }}` replaced; a key stays the name of its variable, so that it is never stored."""
    found: dict[str, Any] = {}
    unset = []
    for key, value in raw.items():
        name = _snake(str(key))
        reference = _reference_in(value)
        if reference is None:
            found[name] = value
        elif not environment.get(reference[1]):
            unset.append((name, reference[1]))
        elif name == _KEY:
            found["api_key_env"] = reference[1]
        else:
            found[name] = environment[reference[1]]
    return found, unset


def _keys_of(provider: str) -> list[str]:
    """The variables in which a provider looks for its key."""
    if provider not in _CREDENTIALS:
        return []
    return route_of(ChatRequest(f"{provider}/any", [])).key_variable.split(" or ")


def _reference_in(value: Any) -> re.Match[str] | None:
    return _REFERENCE.match(value.strip()) if isinstance(value, str) else None


def _snake(key: str) -> str:
    return _CAMEL.sub(lambda match: "_" + match[0].lower(), key)
