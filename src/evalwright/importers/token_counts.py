"""What a recording says about its tokens, its cost and its time."""

from __future__ import annotations

import math
from datetime import datetime
from typing import Any

import msgspec

from evalwright.files.numbers import is_number
from evalwright.importers.record_values import in_utc, moment
from evalwright.importers.sources import ImportNotes

__all__ = [
    "Tokens",
    "anthropic_tokens",
    "openai_tokens",
    "recorded_dollars",
    "recorded_milliseconds",
    "recorded_time",
    "reply_tokens",
    "token_count",
]

_LONGEST = 10**15
"""Milliseconds; a number above is none that was measured, and may be too large to be stored."""


class Tokens(msgspec.Struct, gc=False):
    """What model calls used; None if it was not reported."""

    input: int | None = None
    """All input, cached or not."""
    output: int | None = None
    thinking: int | None = None
    cache_read: int | None = None
    cache_write: int | None = None
    cost: float | None = None

    def __iadd__(self, other: Tokens) -> Tokens:
        self.input = _sum(self.input, other.input)
        self.output = _sum(self.output, other.output)
        if other.thinking is not None:
            self.thinking = _sum(self.thinking, other.thinking)
        if other.cache_read is not None:
            self.cache_read = _sum(self.cache_read, other.cache_read)
        if other.cache_write is not None:
            self.cache_write = _sum(self.cache_write, other.cache_write)
        if other.cost is not None:
            self.cost = _sum(self.cost, other.cost)
        return self


def _sum(one: Any, other: Any) -> Any:
    """None only if neither is known."""
    return other if one is None else one if other is None else one + other


def token_count(value: Any, notes: ImportNotes) -> int | None:
    """A number of tokens; a value that cannot be one is counted as lost."""
    whole = value if type(value) is not float or not value.is_integer() else int(value)
    if type(whole) is int and whole >= 0:
        return whole
    if value is not None:
        notes.lose("token counts that are not whole numbers")
    return None


def openai_tokens(usage: Any, notes: ImportNotes) -> Tokens:
    """What a usage in the form of OpenAI's APIs says: cached tokens are part of the input, reasoning of the output."""
    if not isinstance(usage, dict):
        return Tokens()
    sent, written = (
        ("input_tokens", "output_tokens") if "input_tokens" in usage else ("prompt_tokens", "completion_tokens")
    )

    def detail(counts: str, key: str) -> int | None:
        details = usage.get(f"{counts}_details")
        return token_count(details.get(key), notes) if isinstance(details, dict) else None

    return Tokens(
        token_count(usage.get(sent), notes),
        token_count(usage.get(written), notes),
        detail(written, "reasoning_tokens"),
        detail(sent, "cached_tokens"),
    )


def reply_tokens(usage: Any, notes: ImportNotes) -> Tokens:
    """What a usage says in the form of either API: Anthropic's has cached tokens beside the input."""
    if isinstance(usage, dict) and "input_tokens" in usage and not usage.keys().isdisjoint(_COUNTS[2:]):
        return anthropic_tokens(notes, usage)
    return openai_tokens(usage, notes)


def anthropic_tokens(notes: ImportNotes, *usages: Any) -> Tokens:
    """The sum of usages as Anthropic counts them: `input_tokens` does not include cached ones."""
    sums: dict[str, int] = {}
    for usage in usages:
        if not isinstance(usage, dict):
            if usage is not None:
                token_count(usage, notes)
            continue
        for key in _COUNTS:
            number = usage.get(key)
            if type(number) is int and number >= 0:  # nearly all blocks: saves the call
                sums[key] = sums.get(key, 0) + number
            elif (count := token_count(number, notes)) is not None:
                sums[key] = sums.get(key, 0) + count
    sent, out, read, written = map(sums.get, _COUNTS)
    parts = [part for part in (sent, read, written) if part is not None]
    return Tokens(sum(parts) if parts else None, out, None, read, written)


_COUNTS = ("input_tokens", "output_tokens", "cache_read_input_tokens", "cache_creation_input_tokens")


def recorded_dollars(value: Any, notes: ImportNotes) -> float | None:
    """A cost in US dollars; a value that cannot be one is counted as lost."""
    if is_number(value) and 0 <= value < math.inf:
        return value
    if value is not None:
        notes.lose("costs that are negative or not numbers")
    return None


def recorded_milliseconds(value: Any, notes: ImportNotes, *, unit: int = 1) -> int | None:
    """A duration in whole milliseconds; `unit` is how many the recorded unit has. What cannot be one is counted as
    lost."""
    if is_number(value) and 0 <= value * unit < _LONGEST:
        return round(value * unit)
    if value is not None:
        notes.lose("durations that are negative or not numbers")
    return None


def recorded_time(value: Any, notes: ImportNotes, *, per_second: int = 1) -> datetime | None:
    """A time in UTC: one that was read before, or one from ISO 8601 text or from a number since 1970, of seconds unless
    there are more `per_second`. What cannot be one is counted as lost."""
    time = in_utc(value) if isinstance(value, datetime) else moment(value, per_second)
    if time is None and value is not None and value != "":
        notes.lose("times that cannot be read")
    return time
