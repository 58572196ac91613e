"""`${NAME}` and `${NAME:-default}` in the values of a file."""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Iterable, Mapping
from itertools import chain
from typing import Any

from evalwright.files.credentials import credentials, in_address, secret_parts
from evalwright.files.key_paths import Place
from evalwright.files.masker import is_secret, looks_secret, may_be_secret
from evalwright.session import hide

__all__ = ["SUITE_FOLDER", "Expansion", "at_home", "is_folder", "literal_secrets"]

SUITE_FOLDER = "${EVALWRIGHT_SUITE_FOLDER}"
"""The beginning of a path that is relative to the folder of `eval.yaml`."""

_PUBLIC = frozenset(("eval", "metadata", "run", "gate", "dataset", "pass_criteria", "metrics", "totals"))
"""Sections of a suite that are stored to be read: their values from variables are masked only if the name suggests
it."""
_REFERENCE = re.compile(r"\$\{([A-Z_][A-Z0-9_]*)(?::-([^}]*))?\}")
_MISSPELT = re.compile(r"\$\{\s*([A-Za-z_][\w.-]*)\s*(?::?[-=?+][^}]*)?\}")
"""What was meant as a reference, but has lower case, blanks, a hyphen in the name, or another operator of the shell."""

_ELSEWHERE = re.compile(r"\A\$[A-Z_][A-Z0-9_]+\Z|\$\{\{\s*[\w.]+\s*\}\}|(?<!\$)\{\{\s*env\.\w+\s*\}\}")
"""References as shells without braces, AgentV, CI and promptfoo write them."""


class Expansion:
    """Expands strings at any depth, and remembers what is missing and what is secret.

    A variable that is set but empty takes precedence over the default; without an environment nothing is expanded.
    """

    def __init__(self, environment: Mapping[str, str] | None, folder: str = ".") -> None:
        self._environment, self._folder = environment, folder
        self._secrets: dict[str, str] = {}
        self._public: set[str] = set()
        self._composed: set[str] = set()
        self.named: set[str] = set()
        """The variables that are named anywhere."""
        self.unset: list[tuple[Place, str]] = []
        """Where a variable is used that is not set and has no default, and its name."""
        self.misspelt: list[tuple[Place, str]] = []
        """Where something looks like a reference but is none, and its text."""
        self.given: set[Place] = set()
        """Where a value is one reference and nothing else."""
        self.secret: list[tuple[Place, str]] = []
        """Where the value of a secret variable is used, and its name."""

    @property
    def expands(self) -> bool:
        """Whether there is an environment to take values from."""
        return self._environment is not None

    def expanded(self, value: Any, place: Place = ()) -> Any:
        if isinstance(value, dict):
            return {key: self.expanded(item, (*place, key)) for key, item in value.items()}
        if isinstance(value, list):
            return [self.expanded(item, (*place, i)) for i, item in enumerate(value)]
        if isinstance(value, str) and self._environment is not None and ("$" in value or "{{" in value):
            self.misspelt += [(place, match[0]) for match in _ELSEWHERE.finditer(value)]
            value = at_home(value, self._folder)
            self.misspelt += [(place, match[0]) for match in _MISSPELT.finditer(_REFERENCE.sub("", value))]
            expanded = _REFERENCE.sub(lambda match: self._value(match, place), value)
            if _REFERENCE.fullmatch(value):
                self.given.add(place)
            if any(match[1] in self._environment for match in _REFERENCE.finditer(value)):
                self._composed.add(expanded)
            return expanded
        return value

    def _value(self, match: re.Match[str], place: Place) -> str:
        assert self._environment is not None
        name, default = match[1], match[2]
        self.named.add(name)
        value = self._environment.get(name, default)
        if value is None:
            self.unset.append((place, name))
            return match[0]
        if name in self._environment:
            self._learn(name, value, place)
        return value

    def _learn(self, name: str, value: str, place: Place) -> None:
        if looks_secret(name) or is_secret(name, value):
            self.secret.append((place, name))
        elif place[-1:] == ("name",):
            self._public.add(name)  # names are stored and shown
            return
        elif place[:1] in {(section,) for section in _PUBLIC} or is_folder(place) or not may_be_secret(value):
            return
        self._secrets[name] = value
        hide({name: value})

    def learn_from(self, lines: Iterable[str]) -> None:
        """Learn in advance which variables the values of a file that is read later will use."""
        for line in lines:
            for match in _REFERENCE.finditer(line) if "${" in line else ():
                self.named.add(match[1])
                if self._environment is not None and match[1] in self._environment:
                    self._learn(match[1], self._environment[match[1]], ())

    def secrets(self, document: Any) -> dict[str, str]:
        """Values that must be masked, by name: of variables, and credentials."""
        secrets = {name: value for name, value in self._secrets.items() if name not in self._public}
        known = {part for secret in secrets.values() for part in (secret, *in_address(secret))}
        basic = (("authorization", text) for text in self._composed if text.lower().startswith("basic "))
        for key, value in chain(credentials(document), basic):
            # A text that contains a variable's value is masked there, and stays readable around it.
            for secret_part in secret_parts(value) if self._holds_variable(value, known) else (value,):
                if secret_part not in known and not self._holds_variable(secret_part, known):
                    secrets[_unused_name(key, secrets)] = secret_part
        return secrets

    def _holds_variable(self, value: str, known: Collection[str]) -> bool:
        return any(secret and secret in value for secret in known) and any(value in text for text in self._composed)


def literal_secrets(document: Any) -> dict[str, str]:
    """The credentials in a document, by name."""
    return Expansion(None).secrets(document)


def is_folder(place: Place) -> bool:
    """Whether a place names where a store is kept on this machine."""
    return place[:1] == ("output",) and place[-1:] == ("path",)


def at_home(value: Any, folder: str) -> Any:
    """A value in which every path that begins with SUITE_FOLDER is absolute, at any depth."""
    if isinstance(value, dict):
        return {key: at_home(item, folder) for key, item in value.items()}
    if isinstance(value, list):
        return [at_home(item, folder) for item in value]
    if isinstance(value, str) and value.startswith(SUITE_FOLDER):
        return os.path.normpath(folder + value.removeprefix(SUITE_FOLDER))
    return value


def _unused_name(name: str, names: Mapping[str, str]) -> str:
    """The name, with a number if two systems have different keys."""
    number, free = 1, name
    while free in names:
        number += 1
        free = f"{name}_{number}"
    return free
