"""`${NAME}` and `${NAME:-default}` in the values of a file (specification evalh, b.4)."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from evalwright.files.masking import looks_secret

__all__ = ["Expansion"]

_REFERENCE = re.compile(r"\$\{([A-Z_][A-Z0-9_]*)(?::-([^}]*))?\}")

Place = tuple[str | int, ...]


class Expansion:
    """Expands strings at any depth and remembers what is missing and what is secret.

    A variable that is set but empty wins over the default; without an environment nothing is expanded.
    """

    def __init__(self, environment: Mapping[str, str] | None) -> None:
        self._environment = environment
        self._secrets: dict[str, str] = {}
        self.problems: list[tuple[Place, str, str]] = []

    def expanded(self, value: Any, place: Place = ()) -> Any:
        if isinstance(value, dict):
            return {key: self.expanded(item, (*place, key)) for key, item in value.items()}
        if isinstance(value, list):
            return [self.expanded(item, (*place, i)) for i, item in enumerate(value)]
        if isinstance(value, str) and self._environment is not None:
            return _REFERENCE.sub(lambda match: self._value(match, place), value)
        return value

    def _value(self, match: re.Match[str], place: Place) -> str:
        assert self._environment is not None
        name, default = match[1], match[2]
        value = self._environment.get(name, default)
        if value is None:
            key = _bracketed(place)
            self.problems.append((place, f"the environment variable {name!r} is not set and has no default", key))
            return match[0]
        if name in self._environment and looks_secret(name):
            self._secrets[name] = value
        return value

    def secrets(self, document: Any) -> dict[str, str]:
        """Values that must be masked: of secret variables, and of keys that hold credentials."""
        return {**_credentials(document), **self._secrets}


def _bracketed(place: Place) -> str:
    """`systems[0].target`"""
    text = ""
    for step in place:
        text += f"[{step}]" if isinstance(step, int) else f".{step}" if text else step
    return text


def _credentials(value: Any, name: str = "") -> dict[str, str]:
    found: dict[str, str] = {}
    if isinstance(value, dict):
        for key, item in value.items():
            found |= _credentials(item, str(key))
    elif isinstance(value, list):
        for item in value:
            found |= _credentials(item, name)
    elif isinstance(value, str) and looks_secret(name.replace("-", "_")) and not name.lower().startswith("max_"):
        found[name] = value
    return found
