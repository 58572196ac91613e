"""Which cells belong together because an evaluator compares their answers, when a run is resumed or re-evaluated."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Set

from evalwright.model.plan import EvaluatorSpec, Plan
from evalwright.model.protocols import RunReader, RunWriter
from evalwright.run.cells import Grid
from evalwright.run.history import History
from evalwright.run.judge import compares

__all__ = ["compares_cells", "finished_beside", "whole_comparisons"]


def compares_cells(plan: Plan, reader: RunReader) -> bool:
    """Whether any evaluator of a run, or of its cases, compares answers."""
    if not plan.evaluators_by_case:
        return _any(plan.evaluators)
    return any(_any(case.evaluators or ()) for case in reader.cases())


def whole_comparisons(plan: Plan, writer: RunWriter, again: frozenset[int]) -> frozenset[int]:
    """The cells to be run again, and those whose answers are compared with theirs."""
    grid = Grid(plan)
    is_compared = _cases_of(plan, writer)
    return again.union(*(grid.beside(n) for n in again if is_compared(grid.case_index(n))))


def finished_beside(plan: Plan, writer: RunWriter, history: History, again: Set[int]) -> set[int]:
    """The finished cells whose answers have to be compared with those of unfinished cells."""
    if not (plan.evaluators_by_case or _any(plan.evaluators)):
        return set()
    grid = Grid(plan)
    is_compared = _cases_of(plan, writer)
    done = [history.finished(n) and n not in again for n in range(grid.total)]
    indices: set[int] = set()
    for number in range(grid.total):
        if done[number] and not all(done[n] for n in grid.beside(number)) and is_compared(grid.case_index(number)):
            indices.add(number)
    return indices


def _cases_of(plan: Plan, writer: RunWriter) -> Callable[[int], bool]:
    """Whether the answers to the case at a position are compared."""
    if not plan.evaluators_by_case:
        answer = _any(plan.evaluators)
        return lambda _: answer
    return lambda index: _any(writer.case(index).evaluators or ())


def _any(specs: Iterable[EvaluatorSpec]) -> bool:
    return any(compares(spec.type) for spec in specs)
