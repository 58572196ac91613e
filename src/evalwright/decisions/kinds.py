"""Cases of an indexed run, counted by outcome; their names are read only on request.

Most cells of a run are alike. So a side of a decision is a handful of kinds with the number of cases of each, and two
sides are the pairs of kinds that their cases have. The mapping of all cases by name is built only when it is needed.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import compress
from typing import Generic, NamedTuple, TypeVar
from weakref import finalize

from evalwright.model.cell_index import CellCount, CellIndex, CellMeasures, CellPairs, CellPlaces

__all__ = ["HeldIndex", "KindCells", "KindOutcomes", "KindPairs", "changed_totals", "kinds_of_both", "tallied"]

T = TypeVar("T")
U = TypeVar("U")


class HeldIndex:
    """An index that is closed when nothing refers to it any more."""

    def __init__(self, index: CellIndex) -> None:
        self.index: CellIndex = index
        self.close: Callable[[], object] = finalize(self, index.close)

    @cached_property
    def counts(self) -> Mapping[str, Sequence[CellCount]]:
        """The counts of the index by variant."""
        counts: dict[str, list[CellCount]] = defaultdict(list)
        for count in self.index.counts():
            counts[count.variant].append(count)
        return counts

    @cached_property
    def grouped(self) -> bool:
        """Whether some case is in a group."""
        return self.index.sums().grouped > 0


class KindCells:
    """The cells of one variant of an indexed run of single trials: one per case."""

    def __init__(self, held: HeldIndex, variant: str, places: CellPlaces, cases: str) -> None:
        """`cases` is a digest of all cases of the run, empty where there is none."""
        self._held, self._variant, self._places, self._cases = held, variant, places, cases
        self._times = {count.alike: count.n - count.singular for count in held.counts[variant]}

    @property
    def index(self) -> CellIndex:
        """The index that holds the cells."""
        return self._held.index

    def times(self, kind: int) -> int:
        """How many cells there are of a kind."""
        return 1 if kind < 0 else self._times[kind]

    def columns(self, kinds: Container[int]) -> Iterator[CellMeasures]:
        """The cells of some kinds with their measures, in the order of the dataset."""
        for cells in self.index.measured(self._variant):
            wanted = [kind in kinds for kind in cells.kinds]
            if all(wanted):
                yield cells
            else:
                yield CellMeasures(*(tuple(compress(column, wanted)) for column in cells))  # type: ignore[arg-type]

    def groups(self, kinds: Container[int]) -> dict[str, str]:
        """The groups of the cases of some kinds that are in one."""
        blocks = self.columns(kinds) if self._held.grouped else ()
        pairs = (pair for cells in blocks for pair in zip(cells.case_keys, cells.groups, strict=True))
        return {case: group for case, group in pairs if group is not None}

    def beside(self, other: KindCells) -> CellPairs | None:
        """The pairs of these cells and those of a run of the same cases; None for other runs."""
        if not self._cases or self._cases != other._cases:
            return None
        return self.index.pairs(other.index, self._places, other._places)


class KindOutcomes(Mapping[str, T]):
    """Outcomes by case name; cases of one kind share theirs."""

    def __init__(self, cells: KindCells, totals: Mapping[int, T]) -> None:
        self.cells: KindCells = cells
        self.totals: Mapping[int, T] = totals

    @cached_property
    def _by_case(self) -> dict[str, T]:
        joined: dict[str, T] = {}
        for cells in self.cells.columns(self.totals):
            joined.update(zip(cells.case_keys, map(self.totals.__getitem__, cells.kinds), strict=True))
        return joined

    def tallied(self) -> list[tuple[T, int]]:
        """Each outcome, and how many cases have it."""
        return [(total, n) for kind, total in self.totals.items() if (n := self.cells.times(kind))]

    def __getitem__(self, case: str) -> T:
        return self._by_case[case]

    def __iter__(self) -> Iterator[str]:
        return iter(self._by_case)

    def __len__(self) -> int:
        return sum(map(self.cells.times, self.totals))


class KindPairs(NamedTuple, Generic[T]):
    """The cases of two sides by their outcomes on both."""

    totals: list[tuple[T, T]]
    times: list[int]
    cases: Callable[[list[int]], tuple[list[str], list[int]]]
    """The names of the cases of some of these pairs, by their places, and the place of each."""


def kinds_of_both(a: Mapping[str, T], b: Mapping[str, T]) -> KindPairs[T] | None:
    """The outcomes of the cases of both; None if they are known only case by case."""
    if not isinstance(a, KindOutcomes) or not isinstance(b, KindOutcomes) or (pairs := a.cells.beside(b.cells)) is None:
        return None
    both = [(one, other, n) for one, other, n in pairs.counts if one in a.totals and other in b.totals]
    kinds = [(one, other) for one, other, _ in both]

    def cases(places: list[int]) -> tuple[list[str], list[int]]:
        wanted = {kinds[place]: place for place in places}
        cells = [(case, wanted[one, other]) for case, one, other in pairs.cases(wanted)]
        return [case for case, _ in cells], [place for _, place in cells]

    return KindPairs([(a.totals[one], b.totals[other]) for one, other in kinds], [n for *_, n in both], cases)


def tallied(outcomes: Mapping[str, T]) -> list[tuple[T, int]]:
    """Each outcome, and how many cases have it; cases that share a total are counted together."""
    if isinstance(outcomes, KindOutcomes):
        return outcomes.tallied()
    counts: dict[int, int] = {}
    for key in map(id, outcomes.values()):
        counts[key] = counts.get(key, 0) + 1
    return [(total, counts[key]) for key, total in {id(total): total for total in outcomes.values()}.items()]


def changed_totals(outcomes: Mapping[str, T], change: Callable[[T], U]) -> Mapping[str, U]:
    """The same cases with another value derived from their outcomes."""
    if isinstance(outcomes, KindOutcomes):
        return KindOutcomes(outcomes.cells, {kind: change(total) for kind, total in outcomes.totals.items()})
    return {case: change(total) for case, total in outcomes.items()}
