"""Trials of a case, counted in one int, and cases of a group."""

from __future__ import annotations

from collections.abc import Mapping

__all__ = [
    "ERROR_TRIAL",
    "JUDGED_TRIAL",
    "PASSED_TRIAL",
    "TARGET_ERROR_TRIAL",
    "add_groups",
    "add_trials",
    "errors_in",
    "passed_and_judged",
]

# 16-bit counters per case in one int: 32 bytes, 36 with an error, instead of the 90 of a list. A plan is rejected if it
# has so many trials that a counter could overflow into the next.
_BITS = 16
JUDGED_TRIAL, PASSED_TRIAL, ERROR_TRIAL, TARGET_ERROR_TRIAL = (1 << _BITS * place for place in range(4))
"""One trial: with a verdict, passed, left without a verdict by an error, with an error of the system."""
_MASK = (1 << _BITS) - 1


def add_trials(cases: dict[str, int], others: Mapping[str, int]) -> None:
    """Add the counted trials of other cells by case."""
    for case, value in others.items():
        cases[case] = cases.get(case, 0) + value


def add_groups(groups: dict[str, list[int]], others: Mapping[str, list[int]]) -> None:
    """Add passed and judged cases by group."""
    for group, (passed, judged) in others.items():
        of = groups.setdefault(group, [0, 0])
        of[0] += passed
        of[1] += judged


def passed_and_judged(value: int) -> tuple[int, int]:
    """Passed and judged trials of a case."""
    return value >> _BITS & _MASK, value & _MASK


def errors_in(value: int) -> int:
    """Trials of a case that an error left without a verdict."""
    return value >> 2 * _BITS & _MASK
