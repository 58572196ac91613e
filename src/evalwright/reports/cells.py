"""The cells of a run with everything about them: newest trace, newest results, verdict."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from itertools import islice

from evalwright.model.cell import OfCase
from evalwright.model.cell_index import CellIndex, CellOrder, CellSelection, StaleIndex, index_of
from evalwright.model.facts import AttemptFacts, CellKey
from evalwright.model.plan import Plan
from evalwright.model.protocols import RunReader
from evalwright.model.result import CaseVerdict, EvaluationResult
from evalwright.model.trace import Trace
from evalwright.reports.order import order_of
from evalwright.scoring.verdict import cell_verdict

__all__ = ["Choice", "FullCell", "chosen_cells"]


@dataclass(frozen=True, slots=True)
class Choice:
    """Which cells are wanted; `failed` means a trace with an error, or a result that did not pass."""

    case: str | None = None
    variant: str | None = None
    failed: bool = False

    def names(self, cell: OfCase, variant: str) -> bool:
        return self.case in (None, cell.case_id, cell.case_key) and self.variant in (None, variant)


@dataclass(frozen=True, slots=True)
class FullCell:
    """A cell with its newest trace, the results of that attempt, and its verdict."""

    trace: Trace
    results: list[EvaluationResult]
    verdict: CaseVerdict
    is_judged: bool
    """Whether the verdict is stored; otherwise it follows from the results."""


def chosen_cells(
    reader: RunReader, plan: Plan, needed: Sequence[str], choice: Choice, order: CellOrder = "stored"
) -> Iterator[FullCell]:
    """The chosen cells in the order of their newest traces or of the dataset; `needed` is what `names_needed` says.

    A cell without a stored verdict (unfinished, or in a folder written by another program) gets one by the plan's
    criteria.
    """
    shown = 0
    if (index := index_of(reader)) is not None:
        with closing(index):
            try:
                for cell in _looked_up(index, plan, needed, choice, order):
                    yield cell
                    shown += 1
                return
            except StaleIndex:
                pass  # the scan gives the same cells in the same order: it continues after those already given
    cells: Iterable[FullCell] = _scanned_cells(reader, plan, needed, choice)
    if order == "dataset":
        place = order_of(plan.variants)
        cells = sorted(cells, key=lambda cell: place(cell.trace))
    yield from islice(cells, shown, None)


def _looked_up(
    index: CellIndex, plan: Plan, needed: Sequence[str], choice: Choice, order: CellOrder
) -> Iterator[FullCell]:
    """The chosen cells by an index of the run: read one after the other, and no others."""
    chosen = CellSelection(choice.case, choice.variant, failed=choice.failed)
    for trace, rows, verdict in index.chosen_records(chosen, order):
        yield _full_cell(plan, needed, trace, rows, verdict)


def _full_cell(
    plan: Plan, needed: Sequence[str], trace: Trace, rows: list[EvaluationResult], stored: CaseVerdict | None
) -> FullCell:
    verdict = stored or cell_verdict(plan.pass_criteria, needed, trace, rows)
    return FullCell(trace, rows, verdict, is_judged=stored is not None)


def _scanned_cells(reader: RunReader, plan: Plan, needed: Sequence[str], choice: Choice) -> Iterator[FullCell]:
    """The chosen cells of a run without an index. Results and verdicts of the chosen names are held in memory."""
    newest = _newest(reader, choice)
    results, verdicts = _results(reader, choice, newest), _verdicts(reader, choice, newest)
    for position, trace in enumerate(reader.traces(Trace)):
        key = (trace.case_key, trace.variant_name, trace.trial)
        if newest.get(key, (0, -1))[1] != position:
            continue
        rows = list(results.pop(key, {}).values())
        if choice.failed and not _is_failed(trace, rows):
            continue
        yield _full_cell(plan, needed, trace, rows, verdicts.pop(key, None))


def _newest(reader: RunReader, choice: Choice) -> dict[CellKey, tuple[int, int]]:
    """Attempt and position of the trace of each chosen cell that counts: the highest attempt, then the last."""
    newest: dict[CellKey, tuple[int, int]] = {}
    for position, mark in enumerate(reader.traces(AttemptFacts)):
        if choice.names(mark, mark.variant_name):
            key = (mark.case_key, mark.variant_name, mark.trial)
            if mark.attempt >= newest.get(key, (0, 0))[0]:
                newest[key] = (mark.attempt, position)
    return newest


def _results(
    reader: RunReader, choice: Choice, newest: dict[CellKey, tuple[int, int]]
) -> dict[CellKey, dict[str, EvaluationResult]]:
    """The last result of each evaluator on the attempt that counts."""
    results: dict[CellKey, dict[str, EvaluationResult]] = {}
    for row in reader.results(EvaluationResult):
        key = (row.case_key, row.variant_name, row.trial)
        if choice.names(row, row.variant_name) and row.attempt == newest.get(key, (1, 0))[0]:
            results.setdefault(key, {})[row.evaluator] = row
    return results


def _verdicts(reader: RunReader, choice: Choice, newest: dict[CellKey, tuple[int, int]]) -> dict[CellKey, CaseVerdict]:
    """The last stored verdict on the attempt that counts: how it was reached is the rule of the run's format."""
    verdicts = {}
    for verdict in reader.verdicts(CaseVerdict):
        key = (verdict.case_key, verdict.variant_name, verdict.trial)
        if choice.names(verdict, verdict.variant_name) and verdict.attempt == newest.get(key, (1, 0))[0]:
            verdicts[key] = verdict
    return verdicts


def _is_failed(trace: Trace, results: list[EvaluationResult]) -> bool:
    return trace.error is not None or any(not row.passed and not row.skipped for row in results)
