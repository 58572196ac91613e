"""Files of programs whose suites are not read here, recognised by what is in them, so that none is read as another."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

__all__ = ["foreign_format"]

_LOOKED_AT = 1 << 16
"""Characters of a file."""
_OPENAI_EVAL = re.compile(
    r"^[\w.-]+:\s*(?:#.*)?\n(?:[ \t]+\w+:.*\n)*?[ \t]+(?:class:[ \t]*[\"']?evals\.|metrics:[ \t]*\[)", re.M
)
"""An entry of the registry of OpenAI Evals: a class of `evals`, or an eval with its metrics."""


def foreign_format(path: Path, head: Mapping[str, Any]) -> str:
    """The program whose configuration this is; "" if it is none that is known here. `head` is the top-level mapping."""
    if path.suffix.lower() not in (".yaml", ".yml", ".json"):
        return ""
    if head.keys().isdisjoint({"eval", "tests", "evalcases", "graders"}) and _OPENAI_EVAL.search(_text(path)):
        return "OpenAI Evals"
    return ""


def _text(path: Path) -> str:
    try:
        with path.open(encoding="utf-8-sig", errors="replace") as file:
            return file.read(_LOOKED_AT)
    except OSError:
        return ""
