"""The cells that changed between two runs, the worst first, with the answers before and after."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import closing, suppress
from fractions import Fraction
from typing import NamedTuple

import msgspec

from evalwright.model.cell import Attempt, OfCase
from evalwright.model.cell_index import CellEntry, CellIndex, CellSelection, StaleIndex, index_of
from evalwright.model.protocols import RunReader
from evalwright.model.result import JUDGED, Status
from evalwright.reports.context import EarlierRun
from evalwright.reports.failures import finished_index, newest_verdicts

__all__ = ["ChangedCell", "ShownTrial", "changed_cells"]

_Cell = tuple[str, str]
_Ended = tuple[_Cell, int, Status | None, int | None]
"""A trial of a cell, how it ended, and the index of its case."""
_LOOKED_UP, _READ = 5, 40
"""Finding a cell of an index by its name, or reading its records, takes as long as passing over so many cells."""


class ShownTrial(NamedTuple):
    """One trial of several, counted from 0, and what it answered; None for no answer."""

    trial: int
    trials: int
    answer: str | None

    @property
    def name(self) -> str:
        """Empty for the only one."""
        return f"trial {self.trial + 1} of {self.trials}" if self.trials > 1 else ""


class ChangedCell(NamedTuple):
    """One case on one variant, with trials that show the change: one that passed, and one that did not."""

    case_key: str
    variant: str
    worse: bool
    before: ShownTrial
    after: ShownTrial


class _Trials(msgspec.Struct):
    """How the trials of a case ended, and its place in the suite."""

    statuses: dict[int, Status] = {}
    place: float = float("inf")

    @property
    def share(self) -> Fraction:
        """The share of judged trials that passed."""
        judged = [status == "pass" for status in self.statuses.values() if status in JUDGED]
        return Fraction(sum(judged), max(1, len(judged)))

    def representative_trial(self, *, passed: bool) -> int:
        """The first trial that passed, or else the first that was judged and did not pass."""
        trials = sorted(self.statuses)
        ended = (
            trial for trial in trials if self.statuses[trial] in JUDGED and (self.statuses[trial] == "pass") is passed
        )
        return next(ended, trials[0] if trials else 0)


class _Output(msgspec.Struct, gc=False):
    final_answer: str | None = None


class _Answer(OfCase, gc=False):
    variant_name: str
    trial: int = 0
    attempt: Attempt = 1
    output: _Output = msgspec.field(default_factory=_Output)


def changed_cells(reader: RunReader, before: EarlierRun, limit: int) -> tuple[list[ChangedCell], int]:
    """The first `limit` changed cases, and the number of all of them.

    Cases that got worse come first, then by the change of the share of passed trials, then in the order of the suite.
    """
    worse: dict[_Cell, bool] = {}
    for variant in before.comparison.variants:
        worse |= {(case, variant.variant): True for case in variant.delta.regressions}
        worse |= {(case, variant.variant): False for case in variant.delta.improvements}
    old, new = _trials(before.reader, worse), _trials(reader, worse)

    def order(cell: _Cell) -> tuple[bool, Fraction, float]:
        return not worse[cell], -abs(new[cell].share - old[cell].share), new[cell].place

    shown = sorted(worse, key=order)[:limit]
    befores = _shown_trials(
        before.reader, {cell: old[cell].representative_trial(passed=worse[cell]) for cell in shown}, old
    )
    afters = _shown_trials(
        reader, {cell: new[cell].representative_trial(passed=not worse[cell]) for cell in shown}, new
    )
    return [ChangedCell(*cell, worse[cell], befores[cell], afters[cell]) for cell in shown], len(worse)


def _trials(reader: RunReader, wanted: Collection[_Cell]) -> dict[_Cell, _Trials]:
    if wanted and (index := finished_index(reader)) is not None:
        with closing(index), suppress(StaleIndex):
            entries = _entries(index, wanted)
            return _trials_of_cells(
                wanted, (((e.case_key, e.variant), e.trial, e.status, e.case_index) for e in entries)
            )
    verdicts = newest_verdicts(reader) if wanted else ()
    return _trials_of_cells(wanted, (((v.case_key, v.variant_name), v.trial, v.status, v.case_index) for v in verdicts))


def _entries(index: CellIndex, wanted: Collection[_Cell]) -> Iterator[CellEntry]:
    """All cells with these cases and variants, and maybe others."""
    if len(wanted) * _LOOKED_UP > len(index):
        yield from index.cells()
        return
    for case, variant in wanted:
        yield from index.cells(CellSelection(case=case, variant=variant))


def _trials_of_cells(wanted: Collection[_Cell], ended: Iterable[_Ended]) -> dict[_Cell, _Trials]:
    cells = {cell: _Trials() for cell in wanted}
    for cell, trial, status, place in ended:
        if status is not None and (trials := cells.get(cell)) is not None:
            trials.statuses[trial] = status
            if place is not None:
                trials.place = place
    return cells


def _shown_trials(reader: RunReader, chosen: dict[_Cell, int], trials: dict[_Cell, _Trials]) -> dict[_Cell, ShownTrial]:
    answers = _answers(reader, chosen)
    return {cell: ShownTrial(trial, len(trials[cell].statuses), answers.get(cell)) for cell, trial in chosen.items()}


def _answers(reader: RunReader, chosen: Mapping[_Cell, int]) -> dict[_Cell, str | None]:
    """What the newest attempts of these trials answered."""
    if chosen and (index := index_of(reader)) is not None:
        with closing(index), suppress(StaleIndex):
            if len(chosen) * _READ <= len(index):
                entries = {cell: index.cell(*cell, trial) for cell, trial in chosen.items()}
                known = {cell: index.records(entry) for cell, entry in entries.items() if entry is not None}
                return {cell: records.trace.output.final_answer for cell, records in known.items()}
    newest: dict[_Cell, _Answer] = {}
    for row in reader.traces(_Answer) if chosen else ():
        cell = row.case_key, row.variant_name
        if chosen.get(cell) == row.trial and ((old := newest.get(cell)) is None or row.attempt >= old.attempt):
            newest[cell] = row
    return {cell: row.output.final_answer for cell, row in newest.items()}
