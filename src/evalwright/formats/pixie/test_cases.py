"""Entries as pixie-qa 0.5 had them: everything but the arguments and the evaluators is below `test_case`."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from evalwright.errors import Problem

__all__ = ["TEST_CASE", "unread_in_test_cases", "with_flat_entries"]

TEST_CASE = "test_case"
_OF_ENTRY = ("entry_kwargs", "evaluators")
"""What stayed beside the `test_case`, and is not read inside of it."""


def with_flat_entries(dataset: dict[str, Any]) -> dict[str, Any]:
    """The dataset with such entries in the form of later releases."""
    entries = dataset.get("entries")
    return {**dataset, "entries": [*map(_flat, entries)]} if isinstance(entries, list) else dataset


def unread_in_test_cases(path: Path, dataset: dict[str, Any]) -> Iterator[Problem]:
    """Warnings about keys that are only read beside a `test_case`."""
    entries = dataset.get("entries")
    for number, entry in enumerate(entries if isinstance(entries, list) else ()):
        for key in _OF_ENTRY:
            if key in _inside(entry):
                message = f"Entry #{number + 1}: nothing reads {key!r} below {TEST_CASE}: it belongs beside it"
                yield Problem(str(path), message, key=f"entries.{number}.{TEST_CASE}.{key}", unread=True)


def _flat(entry: Any) -> Any:
    inside = {key: value for key, value in _inside(entry).items() if key not in _OF_ENTRY}
    return {**inside, **{key: value for key, value in entry.items() if key != TEST_CASE}} if inside else entry


def _inside(entry: Any) -> dict[str, Any]:
    value = entry.get(TEST_CASE) if isinstance(entry, dict) else None
    return value if isinstance(value, dict) else {}
