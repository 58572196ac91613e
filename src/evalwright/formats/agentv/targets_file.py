"""`targets.yaml` of AgentEvals files, and the `.env` files next to it."""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace
from itertools import chain, count
from pathlib import Path
from typing import Any

from evalwright.errors import InputError, Problem, did_you_mean
from evalwright.files import yaml
from evalwright.files.credentials import credentials
from evalwright.files.dotenv import is_address
from evalwright.files.key_paths import as_written, steps_of
from evalwright.files.masker import may_be_secret
from evalwright.formats.agentv.booleans import boolean_mistake
from evalwright.formats.agentv.target_keys import (
    API_KEY,
    CREDENTIALS,
    JUDGE_TARGET,
    known_key,
    provider_in,
    reference_in,
    target_doubts,
    unread_of_target,
)
from evalwright.formats.agentv.target_settings import AGENTS, BOOLEANS, KEYS, NO_EFFECT, OPTIONAL, checked
from evalwright.formats.shared.isolation import OF_PROGRAMS, isolating, refusal
from evalwright.llm.routes import route_of
from evalwright.model.chat import ChatRequest
from evalwright.session import hide

__all__ = ["PROVIDERS", "TARGETS_NAMES", "Targets", "targets_file"]

TARGETS_NAMES = ("targets.yaml", "targets.yml", ".agentv/targets.yaml", ".agentv/targets.yml")
PROVIDERS = ("cli", "mock", "python", "replay", "openai", "anthropic", "azure", "gemini", "openrouter", *AGENTS)
_OTHERS = (
    "agentv", "bedrock", "cc-mirror", "claude-sdk", "copilot-log", "copilot-sdk", "copilot_sdk", "pi-agent-sdk",
    "transcript", "vertex", "vscode", "vscode-insiders",
)  # fmt: skip
"""Providers that AgentV has up to 4.42 and we do not."""
_DEEPEST = 10
"""Maximum number of targets that refer to each other in a row."""
_NO_WORD = re.compile(r"\W")


class Targets:
    """The targets of one file, by name.

    A target must be known, complete and free of mistakes only once it is `chosen`: files name the systems of a whole
    team, each with its own variables and programs.
    """

    path: Path
    wrong: dict[str, list[Problem]]
    """Why a target cannot be used, by its name."""

    def __init__(self, path: Path, environment: Mapping[str, str], suggested: Collection[str] = ()) -> None:
        """`suggested` are variables that are only set in a `.env`.

        Raises InputError for a file without a list of targets, and for targets without a name.
        """
        document = yaml.load(path, "yaml12")
        listed = document.value.get("targets") if isinstance(document.value, dict) else None
        if not isinstance(listed, list):
            name = "nothing" if listed is None else type(listed).__name__
            line = document.line(("targets",))
            raise InputError(Problem(str(path), f"targets: expected a list, found {name}", line, "targets"))
        read = _Reading(path, document, environment, suggested)
        for i, raw in enumerate(listed):
            read.add(i, raw)
        if read.problems:
            raise InputError(read.problems)
        self.path: Path = path
        self.wrong: dict[str, list[Problem]] = read.wrong
        self.missing: dict[str, list[Problem]] = read.missing
        self._targets, self._doubts, self._placed = read.targets, read.doubts, read.placed
        self._used: dict[str, dict[str, Any]] = {}
        self._template: str | None = None
        self.keys: dict[str, str] = read.keys
        """Keys that are written into the file, by the variables in which the targets have them."""
        others = enumerate(credentials(read.targets), 1)
        self.secrets: dict[str, str] = {
            **{f"{key}_{i}": value for i, (key, value) in others},
            **read.keys,
            **read.taken,
        }
        """Values that must be masked, by name."""

    def __len__(self) -> int:
        return len(self._targets)

    def chosen(self, name: str) -> str:
        """The name of a target, which is used from now on.

        Raises InputError if there is no such target, and for everything that keeps it from being used.
        """
        wrong: list[Problem] = []
        for meant in (resolved := self._meant(name)):
            wrong += [*self.wrong.get(meant, ()), *self.missing.get(meant, ())]
        target = self.get(name)
        if not wrong and resolved[-1] not in self._targets:
            known, near = ", ".join(self._targets) or "none", did_you_mean(resolved[-1], self._targets)
            wrong.append(Problem(str(self.path), f"there is no target {resolved[-1]!r}{near} (there are: {known})"))
        if not wrong and len(resolved) > _DEEPEST:
            wrong.append(
                Problem(str(self.path), f"use_target: the targets from {name!r} on refer to each other in a circle")
            )
        if wrong:
            raise InputError(wrong)
        if self._template is not None:
            target.setdefault("workspace_template", self._template)
        self._used.setdefault(name, target)
        return name

    def get(self, name: str) -> dict[str, Any]:
        """The target, or the one it refers to, whether it can be used or not; empty if there is none."""
        return self._targets.get(self._meant(name)[-1], {})

    def _meant(self, name: str) -> list[str]:
        """The name, and the names of the targets that it refers to, one after the other."""
        names = [name]
        while len(names) <= _DEEPEST and isinstance(other := self._targets.get(names[-1], {}).get("use_target"), str):
            names.append(other)
        return names

    def judge_of(self, name: str) -> str:
        """The target that judges the answers of `name`: its `judge_target`, else itself; it need not be usable."""
        judge = self.get(name).get(JUDGE_TARGET)
        return judge if isinstance(judge, str) else name

    def work_in_copies(self, template: str | None) -> None:
        """Let targets without a template of their own work in copies of this one, if there is one."""
        self._template = template

    def stand_in(self, name: str, other: Any, hooks: dict[str, Any]) -> None:
        """Add a target that an eval file defines: one that refers to an `other`, with its own commands around it."""
        if not isinstance(other, str) and not hooks:
            return
        meant = self.get(other if isinstance(other, str) else name)
        if name not in self._targets:
            self._targets[name] = {"name": name, "use_target": other}
        if hooks and meant:
            self._targets[name] = {**meant, "name": name, "hooks": hooks}
            for kept in (self.wrong, self.missing):
                kept[name] = kept.get(str(meant.get("name")), [])

    def located(self, name: str, key: str, message: str) -> Problem:
        """A mistake that was found when the target was built, at its place in the file."""
        meant = self._meant(name)[-1]
        return self._placed(meant, key, message) or Problem(str(self.path), message, key=f"targets.{name}.{key}")

    def used(self) -> dict[str, dict[str, Any]]:
        """The targets chosen so far; later ones are added to the same mapping."""
        return self._used

    def warnings(self) -> list[Problem]:
        """What is most likely not meant in the targets that have been chosen."""
        return [problem for name in self._used for problem in self._doubts.get(name, ())]

    def check(self) -> list[Problem]:
        """The warnings of all targets, to check the file itself. Raises InputError for mistakes."""
        if self.wrong:
            raise InputError([problem for problems in self.wrong.values() for problem in problems])
        return [problem for doubt in (*self._doubts.values(), *self.missing.values()) for problem in doubt]


def targets_file(named: Path | None, roots: list[Path]) -> Path | None:
    """The named file, or the one in the named folder; else the one in the nearest search root."""
    if named is not None and os.path.isfile(named):
        return named
    candidates = [folder / name for folder in ([named] if named is not None else roots) for name in TARGETS_NAMES]
    return next((path for path in candidates if os.path.isfile(path)), None)


class _Reading:
    """One pass over a file."""

    def __init__(
        self, path: Path, document: yaml.Document, environment: Mapping[str, str], suggested: Collection[str]
    ) -> None:
        self._path, self._document, self._environment = path, document, environment
        self._suggested = suggested
        self.problems: list[Problem] = []
        self.doubts: dict[str, list[Problem]] = {}
        self.targets: dict[str, dict[str, Any]] = {}
        self.wrong: dict[str, list[Problem]] = {}
        self.missing: dict[str, list[Problem]] = {}
        """By target, what is correct but not available here: variables, providers."""
        self._numbers: dict[str, int] = {}
        self.keys: dict[str, str] = {}
        self.taken: dict[str, str] = {}
        """Values of variables, by name."""

    def add(self, i: int, raw: Any) -> None:
        name = raw.get("name") if isinstance(raw, dict) else None
        if not isinstance(raw, dict) or not isinstance(name, str) or not name:
            found = ("name", "name: a target needs a name")
            strange = ("", f"expected a mapping, found {as_written(raw)}")
            self.problems.append(self._problem(i, *(found if isinstance(raw, dict) else strange)))
            return
        first, self._numbers[name] = self._numbers.get(name), i
        self.targets.pop(name, None)  # the last target with a name counts, as a whole
        self.wrong[name] = [self._problem(i, key, message) for key, message in (*_mistakes(raw), *_no_booleans(raw))]
        self.missing[name] = [self._problem(i, key, message) for key, message in _not_here(raw)]
        unread = [replace(self._problem(i, key, message), unread=True) for key, message in unread_of_target(raw)]
        self.doubts[name] = unread + [self._problem(i, key, message) for key, message in target_doubts(raw)]
        if first is not None:
            problem = f"name: {name!r} is also the name of targets[{first}], which is not used"
            self.doubts[name].append(self._problem(i, "name", problem))
        isolated = [key for key in isolating(raw, (), OF_PROGRAMS) if known_key(key) not in KEYS]
        self.wrong[name] += [self._problem(i, key, refusal(key, KEYS)) for key in isolated]
        resolved, unset = _resolved_target(raw, self._environment)
        self._hide(raw)
        for key, variable in unset:
            message = f"{key}: the environment variable {variable} of target {name!r} is not set"
            if known_key(key) in OPTIONAL:
                self.doubts[name].append(self._problem(i, key, f"{message}: {key} is not used"))
            else:
                self.missing[name].append(self._problem(i, key, message))
        self.missing[name] += self._diverted_keys(i, raw)
        if isinstance(key := resolved.pop(API_KEY, None), str):
            resolved["api_key_env"] = variable = self._variable(name, key)
            self.keys[variable] = key
        self.targets[name], mistakes = checked(resolved)
        self.wrong[name] += [self._problem(i, key, message) for key, message in mistakes]
        self.wrong = {target: problems for target, problems in self.wrong.items() if problems}

    def _diverted_keys(self, i: int, raw: dict[str, Any]) -> Iterator[Problem]:
        """Keys with an address that only a `.env` sets, to which a key of the environment would be sent."""
        named = {known_key(key): reference[1] for key, value in raw.items() if (reference := reference_in(value))}
        secret = named.get(API_KEY)
        wanted = [secret] if secret else [] if raw.get(API_KEY) else _keys_of(provider_in(raw))
        sent = [name for name in wanted if self._environment.get(name) and name not in self._suggested]
        for key, variable in named.items():
            if sent and variable in self._suggested and is_address(key):
                message = (
                    f"{key}: {sent[0]} of your environment would be sent to the address that only a .env sets "
                    f"({variable}); set both there or both in the environment"
                )
                yield self._problem(i, key, message)

    def _hide(self, raw: dict[str, Any]) -> None:
        named = [reference[1] for key, value in raw.items() if key != "name" and (reference := reference_in(value))]
        secrets = {name: self._environment[name] for name in named if may_be_secret(self._environment.get(name, ""))}
        self.taken |= secrets
        hide(secrets)

    def _variable(self, name: str, key: str) -> str:
        """The variable for a target's key: one that contains nothing else, here or in the environment."""
        plain = _NO_WORD.sub("_", name).upper()
        names = chain([f"{plain}_API_KEY"], (f"{plain}_{number}_API_KEY" for number in count(2)))
        return next(n for n in names if {self.keys.get(n), self._environment.get(n)} <= {None, key})

    def placed(self, name: str, key: str, message: str) -> Problem | None:
        """The mistake with its line; None for a target that is not in the file."""
        return self._problem(self._numbers[name], key, message) if name in self._numbers else None

    def _problem(self, i: int, key: str, message: str) -> Problem:
        line = self._document.line(("targets", i, *steps_of(key)))
        return Problem(str(self._path), message, line, f"targets[{i}].{key}".rstrip("."))


def _mistakes(raw: dict[str, Any]) -> Iterator[tuple[str, str]]:
    name, provider = raw["name"], raw.get("provider")
    if raw.get("use_target") is not None:
        return
    if not isinstance(provider, str):
        found = "" if provider is None else f", found {as_written(provider)}"
        yield "provider", f"provider: target {name!r} needs a provider{found}"
    elif provider_in(raw) not in (*PROVIDERS, *_OTHERS):
        near = did_you_mean(provider, PROVIDERS)
        yield (
            "provider",
            f"unknown provider {provider!r} of target {name!r}{near} (there are: {', '.join(PROVIDERS)})",
        )


def _no_booleans(raw: dict[str, Any]) -> Iterator[tuple[str, str]]:
    for key, value in raw.items():
        if known_key(key) in BOOLEANS and reference_in(value) is None and (mistake := boolean_mistake(str(key), value)):
            yield str(key), f"target {raw['name']!r}: {mistake}"


def _not_here(raw: dict[str, Any]) -> Iterator[tuple[str, str]]:
    if provider_in(raw) in _OTHERS:
        message = f"the provider {raw['provider']!r} is not available; wrap the program with 'cli'"
        yield "provider", f"target {raw['name']!r}: {message}"
    if raw.get("fallback_targets"):
        message = "other targets in place of one that fails would be judged under its name, and are not supported"
        yield "fallback_targets", f"fallback_targets of target {raw['name']!r}: {message}"


def _resolved_target(
    raw: dict[str, Any], environment: Mapping[str, str]
) -> tuple[dict[str, Any], list[tuple[str, str]]]:
    """The target with `${{ NAME }}` replaced; a key stays the name of its variable, so that it is never stored.

    Also the variables that are not set, unless nothing depends on them.
    """
    references: dict[str, Any] = {}
    unset = []
    for key, value in raw.items():
        name = known_key(key)
        reference = reference_in(value)
        if name != key and name in raw:
            continue
        if reference is None:
            references[name] = provider_in(raw) if name == "provider" else value
        elif not environment.get(reference[1]):
            if name in KEYS - NO_EFFECT:
                unset.append((str(key), reference[1]))
        elif name == API_KEY:
            references["api_key_env"] = reference[1]
        else:
            references[name] = environment[reference[1]]
    return references, unset


def _keys_of(provider: str) -> list[str]:
    """The variables in which a provider looks for its key."""
    if provider not in CREDENTIALS:
        return []
    return route_of(ChatRequest(f"{provider}/any", [])).key_variable.split(" or ")
