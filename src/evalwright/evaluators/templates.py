"""`{{ case.a.b }}` in configured values, rendered from the case (specification evalh, c.1)."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import msgspec

from evalwright.model.snapshot import Case

__all__ = ["has_template", "renderer"]

_TEMPLATE = re.compile(r"\{\{\s*(.*?)\s*\}\}", re.DOTALL)


def has_template(value: Any) -> bool:
    """Whether any string inside a configured value holds a template."""
    if isinstance(value, str):
        return _TEMPLATE.search(value) is not None
    if isinstance(value, dict):
        return any(map(has_template, value.values()))
    return isinstance(value, list) and any(map(has_template, value))


def renderer(value: Any) -> Callable[[Case], Any]:
    """A function from a case to the value with its templates filled in.

    A string that is one template gives the native value; within other text a value is written as text. An unknown
    root or path is null, or nothing within text.
    """
    if not has_template(value):
        return lambda _case: value
    return lambda case: _render(value, {"case": _dumped(case)})


def _dumped(case: Case) -> dict[str, Any]:
    return {
        "schema_version": case.schema_version,
        "id": case.id,
        "input": case.input,
        "metadata": case.metadata,
        "expected": msgspec.structs.asdict(case.expected),
        "tags": case.tags,
    }


def _render(value: Any, roots: dict[str, Any]) -> Any:
    if isinstance(value, dict):
        return {key: _render(item, roots) for key, item in value.items()}
    if isinstance(value, list):
        return [_render(item, roots) for item in value]
    if not isinstance(value, str):
        return value
    whole = _TEMPLATE.fullmatch(value)
    if whole is not None and "{{" not in whole[1]:
        return _look_up(whole[1], roots)
    return _TEMPLATE.sub(lambda match: _text(_look_up(match[1], roots)), value)


def _text(value: Any) -> str:
    return "" if value is None else str(value)


def _look_up(path: str, roots: dict[str, Any]) -> Any:
    value: Any = roots
    for part in path.split("."):
        if isinstance(value, dict) and part in value:
            value = value[part]
        elif isinstance(value, list) and part.isdigit() and int(part) < len(value):
            value = value[int(part)]
        else:
            return None
    return value
