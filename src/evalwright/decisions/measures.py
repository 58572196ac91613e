"""What the judged trials of each case used: money, time, tokens."""

from __future__ import annotations

from collections.abc import Collection, Container, Mapping, Sequence
from functools import cached_property
from itertools import chain, repeat

from evalwright.decisions.kinds import KindCells
from evalwright.model.cell_index import CellMeasure, CellMeasures
from evalwright.statistics.sums import exact_mean

__all__ = ["MEASURES", "KindMeasured", "MeasuredValues", "both_tokens"]

MEASURES = ("cost", "latency", "tokens")
_COLUMNS: dict[str, CellMeasure] = {"cost": "cost_usd", "latency": "latency_ms"}


class MeasuredValues:
    """One measure, value by value."""

    def __init__(self) -> None:
        self._first: dict[str, float] = {}
        self._several: dict[str, list[float]] = {}
        """All values of the cases that have more than one."""

    def add(self, case: str, value: float) -> None:
        """Add the value of one trial."""
        first, several = self._first, self._several
        if case not in first:
            first[case] = value
        elif case in several:
            several[case].append(value)
        else:
            several[case] = [first[case], value]

    def by_case(self) -> Mapping[str, Sequence[float]]:
        """The values of each case."""
        return {case: (value,) for case, value in self._first.items()} | self._several

    def means(self) -> Mapping[str, float]:
        """The mean of each case."""
        return {**self._first, **{case: exact_mean(values) for case, values in self._several.items()}}

    def values(self) -> list[float]:
        """The values of all trials, in no particular order."""
        if not self._several:
            return list(self._first.values())
        return [value for case, first in self._first.items() for value in self._several.get(case, (first,))]

    def mean(self) -> tuple[float | None, int]:
        """The mean of all values, and their number."""
        values = self.values()
        return (exact_mean(values) if values else None), len(values)

    def mean_of_cases(self) -> float | None:
        """The mean of the means of all cases."""
        means = [*self.means().values()]
        return exact_mean(means) if means else None


class KindMeasured(MeasuredValues):
    """One measure of the cells of some kinds of an indexed run; cases by name are read on request."""

    def __init__(self, measure: str, cells: KindCells, kinds: Container[int], alike: Collection[int]) -> None:
        """Take the cells of these `kinds`, all of them with the same counts in the index, which `alike` names."""
        self._measure, self._cells, self._kinds, self._alike = measure, cells, kinds, alike

    @cached_property
    def _by_case(self) -> dict[str, float]:
        means: dict[str, float] = {}
        for cells in self._cells.columns(self._kinds):
            pairs = zip(cells.case_keys, self._column(cells), strict=True)
            means.update((case, value) for case, value in pairs if value is not None)
        return means

    def _column(self, cells: CellMeasures) -> Sequence[float | None]:
        if self._measure == "tokens":
            return list(map(both_tokens, cells.tokens_in, cells.tokens_out))
        return cells.cost_usd if self._measure == "cost" else cells.latency_ms

    def by_case(self) -> Mapping[str, Sequence[float]]:
        return {case: (value,) for case, value in self._by_case.items()}

    def means(self) -> Mapping[str, float]:
        return self._by_case

    def values(self) -> list[float]:
        column = _COLUMNS.get(self._measure)
        if column is None:
            return list(self._by_case.values())
        spread = self._cells.index.spread(column, self._alike)
        return list(chain.from_iterable(repeat(value, n) for value, n in spread))

    def mean(self) -> tuple[float | None, int]:
        column = _COLUMNS.get(self._measure)
        if column is None:
            return super().mean()
        n, total = self._cells.index.total(column, self._alike)
        return (total / n if n else None), n

    def mean_of_cases(self) -> float | None:
        return self.mean()[0]


def both_tokens(sent: int | None, received: int | None) -> int | None:
    """Tokens of both directions; None where neither was counted."""
    return None if sent is None and received is None else (sent or 0) + (received or 0)
