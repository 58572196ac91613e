"""`{{ case.a.b }}` in configured values, rendered from the case (evalh 2.0, argument templates)."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import msgspec

from evalwright.evaluators.fields import ABSENT, as_stored
from evalwright.model.snapshot import Case

__all__ = ["has_template", "renderer"]

_TEMPLATE = re.compile(r"\{\{\s*([a-zA-Z_][^\s{}]*)\s*\}\}")

_Render = Callable[[Case], Any]


def has_template(value: Any) -> bool:
    """Whether any string inside a configured value contains a template."""
    if isinstance(value, str):
        return _TEMPLATE.search(value) is not None
    if isinstance(value, dict):
        return any(map(has_template, value.values()))
    return isinstance(value, list) and any(map(has_template, value))


def renderer(value: Any) -> _Render:
    """A function from a case to the value with its templates filled in.

    A string that is a single template, blanks around it aside, gives the value itself; within other text, the value is
    written as text. An unknown root or path gives null, or nothing within text. Braces around anything that cannot be
    a path stay as they are.
    """
    if not has_template(value):
        return lambda _case: value
    if isinstance(value, dict):
        items = {key: renderer(item) for key, item in value.items()}
        return lambda case: {key: render(case) for key, render in items.items()}
    if isinstance(value, list):
        elements = [renderer(item) for item in value]
        return lambda case: [render(case) for render in elements]
    return _text_renderer(value)


def _text_renderer(text: str) -> _Render:
    whole = _TEMPLATE.fullmatch(text.strip())
    if whole is not None:
        return _look_up(whole[1])
    literals = _TEMPLATE.split(text)
    parts: list[_Render] = [
        _written(_look_up(part)) if i % 2 else renderer(part) for i, part in enumerate(literals) if part or i % 2
    ]
    return lambda case: "".join([part(case) for part in parts])


def _written(look_up: _Render) -> _Render:
    def write(case: Case) -> str:
        value = look_up(case)
        return "" if value is None else str(value)

    return write


def _look_up(path: str) -> _Render:
    root, *steps = path.split(".")
    if root != "case":
        return lambda _case: None

    def look_up(case: Case) -> Any:
        value: Any = case
        for step in steps:
            value = _child(value, step)
        value = as_stored(value)
        return None if value is ABSENT else value

    return look_up


def _child(value: Any, step: str) -> Any:
    if isinstance(value, dict):
        return value.get(step, ABSENT)
    if isinstance(value, list):
        return value[int(step)] if step.isdecimal() and int(step) < len(value) else ABSENT
    if isinstance(value, msgspec.Struct) and step in value.__struct_fields__:
        return getattr(value, step)
    return ABSENT
