"""The cells of a run: every case with every variant, as often as it has trials; numbered, never held."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

from evalwright.model.plan import Plan, Variant
from evalwright.model.protocols import RunReader
from evalwright.model.snapshot import Case

__all__ = ["Cell", "Grid"]


class Cell(NamedTuple):
    """One thing to run: `number` is its place in the grid, `attempt` counts tries at it from 1."""

    number: int
    case_index: int
    case: Case
    variant: Variant
    trial: int
    attempt: int


class Grid:
    """The numbering of a plan's cells: cases in file order, then variants, then trials."""

    def __init__(self, plan: Plan) -> None:
        self.variants: list[Variant] = plan.variants
        self.trials: list[int] = [variant.trials or plan.run.trials for variant in plan.variants]
        self.cases: int = plan.cases_total
        self._offsets = [sum(self.trials[:i]) for i in range(len(self.trials))]
        self._places = {variant.name: i for i, variant in enumerate(plan.variants)}
        self.per_case: int = sum(self.trials)
        self.total: int = self.per_case * plan.cases_total

    def number(self, case_index: int | None, variant_name: str, trial: int) -> int | None:
        """The number of the cell that a record belongs to, None for a record of no cell of this plan."""
        place = self._places.get(variant_name)
        if place is None or case_index is None or not 0 <= case_index < self.cases:
            return None
        if not 0 <= trial < self.trials[place]:
            return None
        return case_index * self.per_case + self._offsets[place] + trial

    def cells(
        self, reader: RunReader, variants: list[Variant], attempt_of: Callable[[int], int], start: int = 0
    ) -> Iterator[Cell]:
        """The cells of some variants from the case at `start`; `attempt_of(number)` is 0 for one not to be run."""
        chosen = [(self._places[v.name], v) for v in variants]
        for case_index, case in enumerate(reader.cases(start), start):
            first = case_index * self.per_case
            for place, variant in chosen:
                for trial in range(self.trials[place]):
                    number = first + self._offsets[place] + trial
                    attempt = attempt_of(number)
                    if attempt:
                        yield Cell(number, case_index, case, variant, trial, attempt)
