"""Key paths inside a file: `systems[0].target` names one value.

Messages write them this way. Some original programs write `systems.0.target`: messages about suites that are read by
their rules use this form, and users may write either.
"""

from __future__ import annotations

import re

__all__ = ["Place", "bracketed", "dotted", "steps_of"]

Place = tuple[str | int, ...]
"""Keys of mappings and positions in lists, from the outside in."""

_STEP = re.compile(r"\[(\d+)\]|([^.\[]+)")


def dotted(place: Place) -> str:
    """`systems.0.target`, as evalh and pixie-qa write it."""
    return ".".join(map(str, place))


def bracketed(place: Place) -> str:
    """`systems[0].target`"""
    text = ""
    for step in place:
        text += f"[{step}]" if isinstance(step, int) else f".{step}" if text else step
    return text


def steps_of(path: str) -> Place:
    """The place that a path of either form names; a step of digits is a position in a list."""
    return tuple(int(i or name) if i or name.isdecimal() else name for i, name in _STEP.findall(path))
