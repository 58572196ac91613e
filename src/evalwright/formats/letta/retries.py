"""The key `max_retries` of a Letta suite's target and judges."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from evalwright.files.key_paths import Place, as_written
from evalwright.files.numbers import whole_number_in

__all__ = ["MOST_RETRIES", "checked_retries"]

MOST_RETRIES = 999
"""With the first attempt, as many attempts as a judge may make."""


def checked_retries(value: Any, place: Place, report: Callable[[Place, str], None]) -> int:
    """The number of retries; 0 for a mistake, which is reported."""
    number = whole_number_in(value)
    if number is None or not 0 <= number <= MOST_RETRIES:
        report(place, f"max_retries: expected a whole number from 0 to {MOST_RETRIES}, found {as_written(value)}")
        return 0
    return number
