"""Equality of plain data in the sense of JSON."""

from __future__ import annotations

from typing import Any

__all__ = ["deeply_equal"]


def deeply_equal(expected: Any, actual: Any) -> bool:
    """Deep equality that keeps types apart: 1 is not "1" and not true, but 1 is 1.0."""
    if isinstance(expected, dict) and isinstance(actual, dict):
        return expected.keys() == actual.keys() and all(
            deeply_equal(value, actual[key]) for key, value in expected.items()
        )
    if isinstance(expected, list) and isinstance(actual, list):
        return len(expected) == len(actual) and all(map(deeply_equal, expected, actual))
    if isinstance(expected, bool) or isinstance(actual, bool):
        return expected is actual
    if isinstance(expected, (int, float)) and isinstance(actual, (int, float)):
        return expected == actual
    return type(expected) is type(actual) and bool(expected == actual)
