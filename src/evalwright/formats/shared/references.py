"""References to variables: read as marks, so that a secret's value is never seen, and written as `${NAME}`."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from evalwright.formats.shared.environment import SUITE_FOLDER

__all__ = ["NAMED", "OWN_NAMES", "marked_names", "references_in", "shown", "written"]

_OPEN, _CLOSE = "\ue0f0", "\ue0f1"
NAMED = re.compile(f"{_OPEN}([A-Z_][A-Z0-9_]*){_CLOSE}")
"""A mark, with the name of its variable."""
_LITERAL = re.compile(r"\$(?=\{\s*[A-Za-z_][\w.-]*\s*(?::?[-=?+][^}]*)?\})")
_DOLLAR = "${__:-$}"
"""Reads as a dollar sign, so that the braces after it are text and not a reference."""
OWN_NAMES = frozenset({"__", SUITE_FOLDER.strip("${}")})
"""Names in converted files that are not the user's variables."""


_REFERENCE = re.compile(r"\$\{\{?\s*[A-Z_][A-Z0-9_]*")
_WITH_DEFAULT = re.compile(r"\$\{[A-Z_][A-Z0-9_]*:-[^}]*\}")


def references_in(paths: Iterable[Path], *, defaults: bool = False) -> list[str]:
    """The references in files, each up to its name; with `defaults` also those with a default, in full."""
    texts = [path.read_text("utf-8", errors="replace") for path in paths]
    patterns = (_REFERENCE, _WITH_DEFAULT) if defaults else (_REFERENCE,)
    return [match for text in texts for pattern in patterns for match in pattern.findall(text)]


def marked_names(names: Iterable[str]) -> dict[str, str]:
    """Values for variables that stand for references to them."""
    return {name: f"{_OPEN}{name}{_CLOSE}" for name in names}


def shown(value: Any) -> Any:
    """A value for people, with its marks as references."""
    if isinstance(value, dict):
        return {key: shown(item) for key, item in value.items()}
    if isinstance(value, list):
        return [shown(item) for item in value]
    return NAMED.sub(r"${\1}", value) if isinstance(value, str) else value


def written(value: Any) -> Any:
    """A value for `eval.yaml`: marks become references, and text that looks like a reference is escaped to stay
    text."""
    if isinstance(value, dict):
        return {key: written(item) for key, item in value.items()}
    if isinstance(value, list):
        return [written(item) for item in value]
    if not isinstance(value, str):
        return value
    home = SUITE_FOLDER if value.startswith(SUITE_FOLDER) else ""
    return home + NAMED.sub(r"${\1}", _LITERAL.sub(lambda _: _DOLLAR, value.removeprefix(home)))
