"""Equality of plain data in the sense of JSON."""

from __future__ import annotations

from typing import Any

__all__ = ["deeply_equal"]


def deeply_equal(wanted: Any, given: Any) -> bool:
    """Deep equality that keeps types apart: 1 is not "1" and not true, but 1 is 1.0."""
    if isinstance(wanted, dict) and isinstance(given, dict):
        return wanted.keys() == given.keys() and all(deeply_equal(value, given[key]) for key, value in wanted.items())
    if isinstance(wanted, list) and isinstance(given, list):
        return len(wanted) == len(given) and all(map(deeply_equal, wanted, given))
    if isinstance(wanted, bool) or isinstance(given, bool):
        return wanted is given
    if isinstance(wanted, (int, float)) and isinstance(given, (int, float)):
        return wanted == given
    return type(wanted) is type(given) and bool(wanted == given)
