"""`{{ path }}` and `{{ path | json }}` in what is sent to a system.

Roots are `input`, `case_id` and `case.{id,input,metadata}`. The expected behaviour of a case cannot be reached: a
system must not see what it is tested for.
"""

from __future__ import annotations

import json
import re
from typing import Any

from evalwright.model.snapshot import Case

__all__ = ["Template"]

_FIELD = re.compile(r"\{\{([^{}|]+)(\|\s*json\s*)?\}\}")


class Template:
    """A text with places for values of the case; braces around anything else stay as they are."""

    def __init__(self, text: str) -> None:
        pieces = _FIELD.split(text)
        self._start = pieces[0]
        self._fields = [
            (path.strip().split("."), filtered is not None, after)
            for path, filtered, after in zip(pieces[1::3], pieces[2::3], pieces[3::3], strict=True)
        ]

    def render(self, case: Case) -> str:
        """Fill in the values: strings as they are, others as JSON, missing ones as nothing; `| json` makes all JSON."""
        roots = {
            "input": case.input,
            "case_id": case.id,
            "case": {"id": case.id, "input": case.input, "metadata": case.metadata},
        }
        written = [self._start]
        for path, as_json, after in self._fields:
            written += (_written(_found(roots, path), as_json), after)
        return "".join(written)


def _found(value: Any, path: list[str]) -> Any:
    for key in path:
        value = value.get(key) if isinstance(value, dict) else None
    return value


def _written(value: Any, as_json: bool) -> str:
    if as_json:
        return json.dumps(value)
    if value is None:
        return ""
    return value if isinstance(value, str) else json.dumps(value)
