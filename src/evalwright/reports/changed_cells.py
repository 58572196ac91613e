"""The cells that changed between two runs, the worst first, with the answers before and after."""

from __future__ import annotations

from collections.abc import Collection
from fractions import Fraction
from typing import NamedTuple

import msgspec

from evalwright.model.cell import Attempt, OfCase
from evalwright.model.protocols import RunReader
from evalwright.model.result import JUDGED, Status
from evalwright.reports.context import Before
from evalwright.reports.failures import newest_verdicts

__all__ = ["ChangedCell", "ShownTrial", "changed_cells"]

_Cell = tuple[str, str]


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

    def telling(self, *, passed: bool) -> int:
        """The first trial that passed, or else the first that was judged and did not pass."""
        trials = sorted(self.statuses)
        ended = (one for one in trials if self.statuses[one] in JUDGED and (self.statuses[one] == "pass") is passed)
        return next(ended, trials[0] if trials else 0)


class _Output(msgspec.Struct, gc=False):
    final_answer: str | None = None


class _Answer(OfCase, gc=False):
    variant_name: str
    trial: int = 0
    attempt: Attempt = 1
    output: _Output = msgspec.field(default_factory=_Output)


def changed_cells(reader: RunReader, before: Before, limit: int) -> tuple[list[ChangedCell], int]:
    """The first `limit` changed cases, and the number of all of them.

    Cases that got worse come first, then by the change of the share of passed trials, then in the order of the suite.
    """
    worse: dict[_Cell, bool] = {}
    for one in before.comparison.variants:
        worse |= {(case, one.variant): True for case in one.delta.regressions}
        worse |= {(case, one.variant): False for case in one.delta.improvements}
    old, new = _trials(before.reader, worse), _trials(reader, worse)

    def order(cell: _Cell) -> tuple[bool, Fraction, float]:
        return not worse[cell], -abs(new[cell].share - old[cell].share), new[cell].place

    shown = sorted(worse, key=order)[:limit]
    befores = _shown(before.reader, {cell: old[cell].telling(passed=worse[cell]) for cell in shown}, old)
    afters = _shown(reader, {cell: new[cell].telling(passed=not worse[cell]) for cell in shown}, new)
    return [ChangedCell(*cell, worse[cell], befores[cell], afters[cell]) for cell in shown], len(worse)


def _trials(reader: RunReader, wanted: Collection[_Cell]) -> dict[_Cell, _Trials]:
    found = {cell: _Trials() for cell in wanted}
    for verdict in newest_verdicts(reader) if wanted else ():
        if (trials := found.get((verdict.case_key, verdict.variant_name))) is not None:
            trials.statuses[verdict.trial] = verdict.status
            if verdict.case_index is not None:
                trials.place = verdict.case_index
    return found


def _shown(reader: RunReader, chosen: dict[_Cell, int], trials: dict[_Cell, _Trials]) -> dict[_Cell, ShownTrial]:
    """These trials, with the answers of their newest attempts."""
    newest: dict[_Cell, _Answer] = {}
    for row in reader.traces(_Answer) if chosen else ():
        cell = row.case_key, row.variant_name
        if chosen.get(cell) == row.trial and ((old := newest.get(cell)) is None or row.attempt >= old.attempt):
            newest[cell] = row
    answers = {cell: row.output.final_answer for cell, row in newest.items()}
    return {cell: ShownTrial(trial, len(trials[cell].statuses), answers.get(cell)) for cell, trial in chosen.items()}
