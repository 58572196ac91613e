"""`${NAME}` and `${NAME:-default}` in the values of a file."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from typing import Any

from evalwright.files.credentials import credentials, in_address
from evalwright.files.key_paths import Place
from evalwright.files.masker import is_secret, looks_secret

__all__ = ["SUITE_FOLDER", "Expansion", "at_home"]

SUITE_FOLDER = "${EVALWRIGHT_SUITE_FOLDER}"
"""What a path begins with that is meant from the folder of `eval.yaml`."""

_REFERENCE = re.compile(r"\$\{([A-Z_][A-Z0-9_]*)(?::-([^}]*))?\}")


class Expansion:
    """Expands strings at any depth and remembers what is missing and what is secret.

    A variable that is set but empty wins over the default; without an environment nothing is expanded.
    """

    def __init__(self, environment: Mapping[str, str] | None, folder: str = ".") -> None:
        self._environment, self._folder = environment, folder
        self._secrets: dict[str, str] = {}
        self.unset: list[tuple[Place, str]] = []
        """Where a variable stands that is not set and has no default, and its name."""
        self.secret: list[tuple[Place, str]] = []
        """Where the value of a secret variable stands, and its name."""

    @property
    def expands(self) -> bool:
        """Whether there is an environment to take values from."""
        return self._environment is not None

    def expanded(self, value: Any, place: Place = ()) -> Any:
        if isinstance(value, dict):
            return {key: self.expanded(item, (*place, key)) for key, item in value.items()}
        if isinstance(value, list):
            return [self.expanded(item, (*place, i)) for i, item in enumerate(value)]
        if isinstance(value, str) and self._environment is not None and "${" in value:
            value = at_home(value, self._folder)
            return _REFERENCE.sub(lambda match: self._value(match, place), value)
        return value

    def _value(self, match: re.Match[str], place: Place) -> str:
        assert self._environment is not None
        name, default = match[1], match[2]
        value = self._environment.get(name, default)
        if value is None:
            self.unset.append((place, name))
            return match[0]
        if name in self._environment and (looks_secret(name) or is_secret(name, value)):
            self._secrets[name] = value
            self.secret.append((place, name))
        return value

    def secrets(self, document: Any) -> dict[str, str]:
        """Values that must be masked, by name: of secret variables, and credentials."""
        found = dict(self._secrets)
        parts = {part for secret in found.values() for part in in_address(secret)}
        for key, value in credentials(document):
            # What holds the value of a variable, or is a part of it, is masked with it, and stays readable around it.
            if value not in parts and not any(secret and secret in value for secret in found.values()):
                found[_unused(key, found)] = value
        return found


def at_home(value: Any, folder: str) -> Any:
    """A value with every path that begins with SUITE_FOLDER made absolute, at any depth."""
    if isinstance(value, dict):
        return {key: at_home(item, folder) for key, item in value.items()}
    if isinstance(value, list):
        return [at_home(item, folder) for item in value]
    if isinstance(value, str) and value.startswith(SUITE_FOLDER):
        return os.path.normpath(folder + value.removeprefix(SUITE_FOLDER))
    return value


def _unused(name: str, taken: Mapping[str, str]) -> str:
    """The name, with a number when two systems have different keys."""
    number, free = 1, name
    while free in taken:
        number += 1
        free = f"{name}_{number}"
    return free
