"""How many cases and trials it takes to show a difference, before they are paid for."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import closing
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from evalwright.api.arguments import kind_problems
from evalwright.api.problems import masked_problems, named_as_arguments, points_of, refused
from evalwright.api.runs import Run, run_of
from evalwright.errors import InputError, Problem
from evalwright.files.masker import Masker
from evalwright.model.cell_index import rereading
from evalwright.model.plan import MOST_TRIALS
from evalwright.model.suite import Suite
from evalwright.session.imports import nothing_imported
from evalwright.statistics.levels import LEAST_ALPHA

if TYPE_CHECKING:
    from evalwright.decisions.gate_planning import GatePlan
    from evalwright.decisions.planning import PlanRow, SuitePlan
    from evalwright.decisions.sides import SideCounts
    from evalwright.model.summary import RunSummary

__all__ = ["CasesPlan", "plan"]


class CasesPlan:
    """How many cases it takes to show a difference; printing it shows what `evalwright plan` prints."""

    __slots__ = ("_record", "_runs", "warnings")

    def __init__(self, record: SuitePlan, runs: str, warnings: Sequence[str]) -> None:
        """Not to be called: `plan` gives plans."""
        self._record, self._runs = record, runs
        self.warnings: Sequence[str] = warnings
        """What is wrong with the suite but does not keep it from running, and tests that are not counted because code
        of the suite makes them."""

    @property
    def rows(self) -> Sequence[PlanRow]:
        """One row per assumption and number of trials: `assumed`, `trials`, `power` of the suite as it is (0 to 1),
        `detectable` (the least difference that it shows), `needs` (for some powers `cases`, `cost_usd`, `minutes`),
        `cheapest`, `curve` (cases and power), `cases_range` (cases for the requested power at both ends of the 95 %
        interval of how much cases vary in the runs)."""
        return tuple(self._record.rows)

    @property
    def notes(self) -> Sequence[str]:
        """About the judges of the runs: how much of a change that people would see their verdicts show."""
        return tuple(self._record.notes)

    @property
    def gate(self) -> GatePlan | None:
        """What a gate `at_least` would do: it passes from `passes_from` cases on; `rows` are true rates and chances."""
        return self._record.gate

    @property
    def cases(self) -> int:
        """The number of cases of the suite."""
        return self._record.cases

    @property
    def reached(self) -> bool | None:
        """Whether the suite as it is has the requested power with one of the numbers of trials, and can pass the gate;
        None if that depends on what is assumed of how much cases change."""
        return self._record.reached

    def needed(self, trials: int = 1) -> int | None:
        """Cases for the requested power, under the first assumption.

        Args:
            trials: One of the numbers of trials that were planned.

        Returns:
            The number of cases; None if no number gives the power, or the trials were not planned.
        """
        power = self._record.power
        rows = (row for row in self._record.rows if row.trials == trials)
        return next((need.cases for row in rows for need in row.needs if need.power == power), None)

    def svg(self) -> str:
        """The power for each number of cases, as a picture (SVG)."""
        from evalwright.reports.pictures.planning import plan_svg

        return plan_svg(self._record)

    def __str__(self) -> str:
        from evalwright.reports.planning import planning_lines

        return "\n".join([*planning_lines(self._record, self._runs), *(f"warning: {line}" for line in self.warnings)])

    def __repr__(self) -> str:
        return f"<CasesPlan of {self._record.suite!r}: {self.cases} cases, reached: {self.reached}>"

    def _repr_html_(self) -> str:
        from html import escape

        picture = self.svg() if self._record.rows else ""
        return f"<div><pre>{escape(str(self))}</pre>{picture}</div>"


@masked_problems()
@nothing_imported()
def plan(
    suite: Suite | int | str | os.PathLike[str],
    *,
    detect: float | str | None = None,
    metric: str = "pass_rate",
    margin: float | str = 0.0,
    at_least: float | None = None,
    power: float = 0.8,
    alpha: float = 0.05,
    runs: Run | str | os.PathLike[str] | Sequence[Run | str | os.PathLike[str]] = (),
    trials: Sequence[int] = (1, 3, 5),
) -> CasesPlan:
    """How many cases and trials it takes to show a difference, or what a gate would do. Nothing is run, and no
    code of the suite is executed.

    Exact power of McNemar's test for one trial, else the noncentral t distribution with the variances of Miller 2024
    (arXiv 2411.00640, section 5).

    Args:
        suite: A suite, its file, or a number of cases.
        detect: The difference in pass rates to show (0 to 1): 0.03 and "3pp" are 3 points. Of a score, in its units.
        metric: `pass_rate`, or an evaluator: its mean score, which needs `runs`.
        margin: Show that B is worse by at most this (0 to 1), if it is really better by `detect`.
        at_least: The rate (0 to 1) of a gate to try.
        power: The chance (0 to 1) of showing the difference.
        alpha: The error rate (0 to 1) of the two-sided test.
        runs: A run of the suite, or two of the same cases, which show how much cases and trials vary and what a cell
            costs. None: some shares of changing pairs are assumed, for the first number of trials.
        trials: Numbers of trials to compare (1 to 10,000).

    Returns:
        The plan.

    Raises:
        InputError: arguments that cannot be used, a suite or a run that cannot be read.
    """
    from evalwright.decisions.planned_judges import judge_notes
    from evalwright.decisions.planning import Aim, suite_plan
    from evalwright.decisions.score_planning import score_plan

    seen = None if detect is None else points_of(detect, "detect", metric)
    loss = points_of(margin, "margin", metric)
    problems = [*kind_problems(suite=suite, runs=runs), *_problems(seen, loss, metric, at_least, power, alpha, trials)]
    if problems:
        raise InputError(problems)
    listed = [runs] if isinstance(runs, Run | str | os.PathLike) else list(runs or ())
    found = [_side(run_of(run)) for run in listed]
    sides = [side for side, _ in found]
    planned = _planned(suite)
    aim = Aim(seen or 0.0, loss, alpha, power)
    numbers = sorted(set(trials))
    if metric == "pass_rate":
        record = suite_plan(planned.name, planned.cases, sides, numbers, aim, at_least, planned.concurrency)
        record.notes = judge_notes([summary for _, summary in found], aim.detect)
    else:
        with named_as_arguments():
            record = score_plan(planned.name, planned.cases, sides, numbers, aim, metric, planned.concurrency)
    return CasesPlan(record, ", ".join(run_of(run)._label for run in listed), planned.warnings)


def _problems(
    detect: float | None, margin: float, metric: str, at_least: Any, power: Any, alpha: Any, trials: Any
) -> Iterator[Problem]:
    most, points = (1.0, "from 0 to 1") if metric == "pass_rate" else (inf, "of at least 0, and finite")
    if at_least is not None and metric != "pass_rate":
        yield refused("at_least", "is about the pass rate, and metric about a score: expected one of them")
    if detect is None and at_least is None:
        yield refused("detect", "expected the difference to see (0.03), or at_least, the rate of a gate (0.8)")
    elif detect is not None and not 0 <= detect < most:
        yield refused("detect", f"expected a difference {points}, found {detect!r}")
    elif detect is not None and not detect + margin > 0:
        yield refused("detect", f"expected a difference above 0, found {detect!r}")
    if not 0 <= margin < most:
        yield refused("margin", f"expected a number {points}, found {margin!r}")
    for key, value in (("at_least", at_least), ("power", power), ("alpha", alpha)):
        if value is not None and (not isinstance(value, int | float) or not 0 < value < 1):
            yield refused(key, f"expected a number between 0 and 1, found {value!r}")
        elif key == "alpha" and value is not None and value < LEAST_ALPHA:
            yield refused(key, f"expected a number of at least {LEAST_ALPHA:g}, found {value!r}")
    if (
        not isinstance(trials, Sequence)
        or not trials
        or not all(isinstance(k, int) and 1 <= k <= MOST_TRIALS for k in trials)
    ):
        yield refused("trials", f"expected numbers from 1 to {MOST_TRIALS:,}, found {trials!r:.60}")


@rereading
def _side(run: Run) -> tuple[SideCounts, RunSummary | None]:
    from evalwright.decisions.sides import sides_of
    from evalwright.decisions.spreads import judged_side

    reader, stored = run._open_records()
    with closing(reader):
        side, summary = judged_side(sides_of(reader, stored)), reader.summary()
    if side is None:
        raise InputError(refused("runs", f"{run._label} has no cell with a verdict"))
    return side, summary


class _Planned(NamedTuple):
    """What is planned: a suite, or merely a number of cases."""

    name: str
    cases: int
    concurrency: int = 1
    """Cells in flight at once."""
    warnings: Sequence[str] = ()


def _planned(suite: Suite | int | str | os.PathLike[str]) -> _Planned:
    from evalwright.formats.loading import load_suite

    if isinstance(suite, int):
        if suite < 1:
            raise InputError(refused("suite", f"expected at least one case, found {suite}"))
        return _Planned("a suite", suite)
    read = suite if isinstance(suite, Suite) else load_suite(Path(suite), None, to_run=False)
    mask = Masker.of(read.secrets, os.environ).mask_text
    warnings = tuple(mask(str(problem)) for problem in read.warnings)
    return _Planned(read.name, sum(1 for _ in read.cases), read.run.max_concurrency, warnings)
