"""Values in records of any format: times, numbers, nesting, and what they are in a few words."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from evalwright.errors import InputError, Problem
from evalwright.files.numbers import is_number

__all__ = ["RECORDING_DEPTH", "described", "dictionaries", "in_utc", "moment", "numbers_in_range", "too_deep"]

RECORDING_DEPTH = 100
"""Levels of nesting that a record may have; deeper ones could be read, but not written again."""


def too_deep(value: Any) -> bool:
    """Whether a value is nested deeper than RECORDING_DEPTH."""
    for inner in value.values() if type(value) is dict else _inner(value):
        if type(inner) in _NESTED:
            break
    else:
        return False  # most are flat, and this is called for each
    level = [value]
    for _ in range(RECORDING_DEPTH + 1):
        nested = [item for item in level if isinstance(item, _NESTED)]
        if not nested:
            return False
        level = [item for entry in nested for item in _inner(entry)]
    return True


_NESTED = (dict, list)


def _inner(value: Any) -> Iterable[Any]:
    return value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()


def described(value: Any) -> str:
    """A value in a few words, for messages that say what was found."""
    if isinstance(value, str | int | float) and not isinstance(value, bool) and len(repr(value)) <= 40:
        return f"the {'string' if isinstance(value, str) else 'number'} {value!r}"
    kinds = {type(None): "nothing", bool: "a boolean", str: "a string", list: "a list", dict: "an object"}
    return kinds.get(type(value), "a number")


def in_utc(time: datetime) -> datetime | None:
    """The same time in UTC; a time without a zone is taken as UTC. None if the year would be before 1 or after 9999."""
    try:
        return time if time.tzinfo is UTC else time.astimezone(UTC) if time.tzinfo else time.replace(tzinfo=UTC)
    except OverflowError:
        return None


@contextmanager
def numbers_in_range(files: Sequence[Path]) -> Iterator[None]:
    """Raise InputError for a number in the files that is too large: JSON allows any, and costs, times and scores are
    computed with."""
    try:
        yield
    except OverflowError as error:
        raise InputError([Problem(str(file), f"has a number that is too large: {error}") for file in files]) from error


def moment(value: Any, per_second: int = 1) -> datetime | None:
    """A time from ISO 8601 text (UTC if it has no zone) or a number since 1970, of seconds unless there are more
    `per_second`; None for anything else."""
    try:
        if isinstance(value, str) and value:
            return in_utc(datetime.fromisoformat(value))
        if is_number(value):
            return datetime.fromtimestamp(value / per_second, UTC)
    except (ValueError, OverflowError, OSError):
        pass
    return None


def dictionaries(value: Any) -> Iterator[dict[str, Any]]:
    """The objects of a list."""
    for item in value if isinstance(value, list) else []:
        if isinstance(item, dict):
            yield item
