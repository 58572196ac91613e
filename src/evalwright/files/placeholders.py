"""Placeholders of secrets in stored plans and cases: `${NAME}`, which `Masker.placeholders` writes."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from evalwright.files.credentials import is_credential
from evalwright.files.masker import MASKED, PART, with_texts_changed

__all__ = ["as_recorded", "expand", "expand_as_recorded", "variable_of", "variables_in"]

_PLACEHOLDER = re.compile(r"\$\$|\$\{([^{}]+)\}")


def expand(value: Any, environ: Mapping[str, str], unresolved: dict[str, str] | None = None) -> Any:
    """The data that `placeholders` was given. Placeholders whose names `environ` lacks stay, and are added to
    `unresolved`."""

    def replaced(match: re.Match[str]) -> str:
        name = match[1]
        if name is None:
            return "$"
        if name not in environ and unresolved is not None:
            unresolved[name] = match[0]
        return environ.get(name, match[0])

    return with_texts_changed(value, lambda text: _PLACEHOLDER.sub(replaced, text) if "$" in text else text)


def expand_as_recorded(value: Any, environ: Mapping[str, str], known: Mapping[str, str] = {}) -> Any:
    """The data that `placeholders` was given, as traces record it: with a mask in place of each secret.

    Under the keys of credentials it has the values in `environ`, because judges call models with them.
    """
    if isinstance(value, Mapping):
        return {
            expand_as_recorded(key, {}): expand_as_recorded(
                item, environ, environ if is_credential(key, item) else known
            )
            for key, item in value.items()
        }
    if isinstance(value, list):
        return [expand_as_recorded(item, environ, known) for item in value]
    if not isinstance(value, str):
        return value
    return _PLACEHOLDER.sub(lambda match: "$" if match[1] is None else known.get(match[1], MASKED), value)


def as_recorded(text: str) -> str:
    """Text from a stored plan or case as records contain it: they have a mask where these have a placeholder."""
    return _PLACEHOLDER.sub(lambda match: match[0] if match[1] is None else MASKED, text)


def variable_of(name: str) -> str:
    """The variable behind a placeholder, which may name a part of it."""
    return name.partition(PART)[0]


def variables_in(value: Any, environ: Mapping[str, str]) -> dict[str, str]:
    """The variables of `environ` that placeholders in stored data name, or parts of which they name."""
    variables: dict[str, str] = {}

    def noted(match: re.Match[str]) -> str:
        name = variable_of(match[1] or "")
        if name in environ:
            variables[name] = environ[name]
        return match[0]

    with_texts_changed(value, lambda text: _PLACEHOLDER.sub(noted, text) if "$" in text else text)
    return variables
