"""The numbers of results in promptfoo's files: a test is repeated as a whole, with all combinations of variables."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from typing import NamedTuple

import msgspec

from evalwright.model.snapshot import Case

__all__ = ["AuthoredCase", "TestNumbers", "own_repeat", "test_numbers", "with_places"]


class AuthoredCase(NamedTuple):
    """A combination of the variables of a test, and where the test is written."""

    case: Case
    listed: int
    """0 for `tests`, from 1 for the tests of each scenario."""
    test: int
    """The number of the test in that list."""
    group: int
    """Shared by the combinations of one test."""


class TestNumbers(NamedTuple):
    """The numbers of one case's results, by trial."""

    first: int
    step: int

    def of_trial(self, trial: int) -> int:
        return self.first + trial * self.step


def own_repeat(case: Case) -> int | None:
    """How often a test should run, if it says so itself."""
    repeat: int | None = case.extra["promptfoo"].get("options", {}).get("repeat")
    return repeat


def with_places(chosen: Sequence[AuthoredCase]) -> list[Case]:
    """The cases, each with its place among the combinations of its test, if there are several."""
    numbered: list[Case] = []
    for _, group in groupby(chosen, key=lambda chosen_case: chosen_case.group):
        cases = [chosen_case.case for chosen_case in group]
        if len(cases) > 1:
            cases = [_with_place(case, i, len(cases)) for i, case in enumerate(cases)]
        numbered += cases
    return numbered


def _with_place(case: Case, place: int, size: int) -> Case:
    own = {**case.extra["promptfoo"], "place": [place, size]}
    return msgspec.structs.replace(case, extra={**case.extra, "promptfoo": own})


def test_numbers(cases: Iterable[Case], repeat: int) -> Iterator[TestNumbers]:
    """The numbers of each case; `repeat` applies to tests without their own."""
    first = following = 0
    before: tuple[int, int] = (0, 0)
    for case in cases:
        own = case.extra.get("promptfoo", {})
        place, size = own.get("place", (0, 1))
        if place <= before[0] or size != before[1]:
            first, following = following, following + size * (own.get("options", {}).get("repeat") or repeat)
        before = (place, size)
        yield TestNumbers(first + place, size)
