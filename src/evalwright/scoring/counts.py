"""Counts of one variant of a run. Counts of parts of a run add up to those of the whole."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection
from datetime import datetime
from math import fsum
from typing import NamedTuple, get_args

import msgspec

from evalwright.model.facts import ResultLike, TraceLike
from evalwright.model.plan import PassCriteria
from evalwright.model.result import Status
from evalwright.model.summary import EvaluatorRate
from evalwright.scoring.case_trials import (
    ERROR_TRIAL,
    JUDGED_TRIAL,
    PASSED_TRIAL,
    TARGET_ERROR_TRIAL,
    add_groups,
    add_trials,
    errors_in,
    passed_and_judged,
)
from evalwright.scoring.evaluator_counts import EvaluatorCount
from evalwright.statistics.distributions import Interval
from evalwright.statistics.rates import DesignRate, rate_of_cases, rate_of_counts, rate_of_singles
from evalwright.statistics.sums import Mean
from evalwright.statistics.trials import within_variance

__all__ = ["CaseCounts", "CountedErrors", "Measures", "VariantCount"]

_STATUSES: tuple[Status, ...] = get_args(Status)

_OF_STATUS: dict[str, int] = {
    "pass": JUDGED_TRIAL + PASSED_TRIAL,
    "borderline": JUDGED_TRIAL,
    "fail": JUDGED_TRIAL,
    "skip": 0,
    "error": ERROR_TRIAL,
}


class CaseCounts(NamedTuple):
    """A variant's cells seen as cases."""

    cases: int
    passed: int
    """Cases in which every judged trial passed and no trial is without a verdict because of an error."""
    errored: int
    """Cases with a trial whose target errored."""
    pass_rate: float | None
    """Mean over judged cases of the share of passed trials: repeats are averaged inside their case. None without such
    cases."""
    judged: int
    """Cases with a trial that has a verdict; the n of `pass_rate`."""


class CountedErrors(NamedTuple):
    """Which errors count as not passed, because the suite asks for it; all others are in no rate."""

    cells: bool
    """Cells with the verdict `error`."""
    results: bool
    """Results with an error."""
    traces: bool
    """Whether results on traces whose system errored count at all."""

    @classmethod
    def of(cls, criteria: PassCriteria) -> CountedErrors:
        return cls(
            criteria.errored_cases == "count", criteria.errored_evaluators == "fail", criteria.errored_cases != "error"
        )


class Measures:
    """What the calls of some cells took and cost, None if unknown, and when the last of them was finished.

    Numbers side by side: many cells wait in them without keeping any of their records.
    """

    __slots__ = ("cost", "finished_at", "latency", "tokens_input", "tokens_output")

    def __init__(self) -> None:
        self.latency: list[float | None] = []
        self.cost: list[float | None] = []
        self.tokens_input: list[float | None] = []
        self.tokens_output: list[float | None] = []
        self.finished_at: datetime | None = None

    def add(self, trace: TraceLike) -> None:
        metrics, finished = trace.metrics, trace.finished_at
        self.latency.append(trace.latency_ms)
        self.cost.append(metrics.cost_usd)
        self.tokens_input.append(metrics.token_input)
        self.tokens_output.append(metrics.token_output)
        if finished is not None and (self.finished_at is None or finished > self.finished_at):
            self.finished_at = finished

    def clear(self) -> None:
        for values in (self.latency, self.cost, self.tokens_input, self.tokens_output):
            values.clear()


class VariantCount:
    """Everything counted about one variant; per case only if trials are `repeated`."""

    cost: Mean
    latency: Mean
    tokens_input: Mean
    tokens_output: Mean

    __slots__ = (
        "_of_status",
        "_unjudged",
        "cases",
        "cells",
        "cost",
        "errored",
        "evaluators",
        "group_counts",
        "grouped",
        "groups",
        "latency",
        "repeated",
        "tokens_input",
        "tokens_output",
    )

    def __init__(self, criteria: PassCriteria, *, repeated: bool) -> None:
        self.repeated: bool = repeated
        """Whether a case may have several trials."""
        self._unjudged = CountedErrors.of(criteria)
        self._of_status = {**_OF_STATUS, "error": JUDGED_TRIAL} if self._unjudged.cells else _OF_STATUS
        self.cells: dict[str, int] = dict.fromkeys(_STATUSES, 0)
        self.errored: int = 0
        self.latency, self.cost, self.tokens_input, self.tokens_output = Mean(), Mean(), Mean(), Mean()
        self.evaluators: dict[str, EvaluatorCount] = {}
        self.cases: dict[str, int] | None = {} if repeated else None
        self.grouped: dict[str, str] = {}
        """The groups of the judged cases that have one, if cases are counted one by one."""
        self.groups: dict[str, str] = {}
        """The groups of all cases that have one, if each evaluator's results are counted by case."""
        self.group_counts: dict[str, list[int]] = {}
        """Passed and judged cases by group, if they are not."""

    def add(self, trace: TraceLike, results: Collection[ResultLike], status: Status) -> None:
        """Count one cell."""
        self.cells[status] += 1
        errored = trace.error is not None
        self.errored += errored
        # None is "not measured", 0 a measurement: only the former stays out of a mean.
        if (latency := trace.latency_ms) is not None:
            self.latency.add(latency)
        metrics = trace.metrics
        if (cost := metrics.cost_usd) is not None:
            self.cost.add(cost)
        if (tokens := metrics.token_input) is not None:
            self.tokens_input.add(tokens)
        if (tokens := metrics.token_output) is not None:
            self.tokens_output.add(tokens)
        if self.cases is not None:
            value = self._of_status[status] + (TARGET_ERROR_TRIAL if errored else 0)
            case = trace.case_key
            self.cases[case] = self.cases.get(case, 0) + value
        # Only cells with a verdict: a group without one is not a unit of the rate, but would count in its interval.
        if trace.group is not msgspec.UNSET and self._of_status[status] & JUDGED_TRIAL:
            if self.cases is not None:
                self.grouped[trace.case_key] = trace.group
            else:
                of = self.group_counts.setdefault(trace.group, [0, 0])
                of[0] += status == "pass"
                of[1] += 1
        # Evaluators that are called on errored traces, too, judge no answer there: they would lower their own rates.
        if not errored or self._unjudged.traces:
            if self.repeated and trace.group is not msgspec.UNSET:
                self.groups[trace.case_key] = trace.group
            self._add_results(trace, results)

    def _add_results(self, trace: TraceLike, results: Collection[ResultLike]) -> None:
        evaluators, errors_count = self.evaluators, self._unjudged.results
        # what its name is made of costs a call, and is read only where trials are repeated
        case, group = trace.case_key if self.repeated else "", trace.group
        for row in results:
            count = evaluators.get(row.evaluator)
            if count is None:
                count = evaluators[row.evaluator] = EvaluatorCount(self.repeated)
            if row.error is not None:
                count.errors += 1
                if errors_count:
                    count.add_verdict(case, group, False)
            elif row.skipped:
                count.skipped += 1
            else:
                count.add_verdict(case, group, row.passed)
                if (score := row.score) is not None:
                    count.scored += 1
                    if score == 1:
                        count.full += 1
                    elif score:
                        count.add_score(score)
            if (cost := row.cost_usd) is not None:
                count.costed += 1
                count.spent.add(cost)

    def add_measures(self, measures: Measures) -> None:
        """Count what the calls of cells took and cost that are counted elsewhere."""
        self.latency.add_all(measures.latency)
        self.cost.add_all(measures.cost)
        self.tokens_input.add_all(measures.tokens_input)
        self.tokens_output.add_all(measures.tokens_output)

    def rate(self, evaluator: str) -> EvaluatorRate:
        """One evaluator's share of passed results."""
        return self.evaluators.get(evaluator, EvaluatorCount()).rate(self.groups)

    def judge_cost_usd(self) -> float | None:
        """Total cost of all evaluators' models, if any result reports it."""
        costs = [cost for count in self.evaluators.values() if (cost := count.cost_usd) is not None]
        return fsum(costs) if costs else None

    def add_alike(self, trace: TraceLike, results: Collection[ResultLike], status: Status, times: int) -> None:
        """Count many cells that differ only in their cases and in what they took: not by case, and in no group."""
        variant_count = VariantCount(PassCriteria(), repeated=False)
        variant_count._unjudged, variant_count._of_status = self._unjudged, self._of_status
        variant_count.add(trace, results, status)
        self.cells[status] += times
        self.errored += times * variant_count.errored
        for name, count in variant_count.evaluators.items():
            self.evaluators.setdefault(name, EvaluatorCount()).add_alike(count, times)

    def merge(self, other: VariantCount) -> None:
        """Add the count of other cells of the same variant."""
        for status, number in other.cells.items():
            self.cells[status] += number
        self.errored += other.errored
        for name in ("latency", "cost", "tokens_input", "tokens_output"):
            getattr(self, name).merge(getattr(other, name))
        for name, count in other.evaluators.items():
            self.evaluators.setdefault(name, EvaluatorCount(self.repeated)).merge(count)
        self.grouped.update(other.grouped)
        self.groups.update(other.groups)
        add_groups(self.group_counts, other.group_counts)
        if self.cases is not None and other.cases is not None:
            add_trials(self.cases, other.cases)

    def trials(self) -> dict[str, tuple[int, int]]:
        """Passed and judged trials of each case that has a judged trial."""
        cases = self.cases or {}
        # A million cases have a handful of different counts: each is unpacked once.
        unpacked = {value: passed_and_judged(value) for value in set(cases.values())}
        return {case: unpacked[value] for case, value in cases.items() if unpacked[value][1]}

    def by_case(self) -> CaseCounts:
        if self.cases is None:
            total, passed = sum(self.cells.values()), self.cells["pass"]
            judged = sum(number for status, number in self.cells.items() if self._of_status[status] & JUDGED_TRIAL)
            rate = passed / judged if judged else self._rate_of_nothing
            return CaseCounts(total, passed, self.errored, rate, judged)
        always = errored = judged = 0
        shares: list[float] = []
        for value, number in Counter(self.cases.values()).items():
            passed, of = passed_and_judged(value)
            errored += number * (value >= TARGET_ERROR_TRIAL)
            if of:
                judged += number
                always += number if passed == of and not errors_in(value) else 0
                shares.append(number * (passed / of))
        # Exactly summed: a run that is counted in another order of cells gives the same last digit.
        rate = fsum(shares) / judged if judged else self._rate_of_nothing
        return CaseCounts(len(self.cases), always, errored, rate, judged)

    @property
    def _rate_of_nothing(self) -> float | None:
        """0 without any cell where errors count as failed, as in evalh, which divides by the number of cases or 1."""
        return 0.0 if self._unjudged.cells and not any(self.cells.values()) else None

    def pass_interval(self) -> Interval | None:
        """The 95 % interval of the pass rate, which accounts for trials and groups; None without a rate."""
        return self._design().ci

    def _design(self) -> DesignRate:
        if self.cases is not None:
            return rate_of_cases(self.trials(), self.grouped)
        groups = ((passed, of) for passed, of in self.group_counts.values())
        return rate_of_singles(self.cells["pass"], self.by_case().judged, groups)

    def detectable(self) -> float | None:
        """The difference that another run of the same cases and trials needs in order to be shown with 80 % power."""
        shares = self._shares()
        trials = (self.trials() if self.cases is not None else {}).values()
        cases, most = float(sum(shares.values())), max((judged for _, judged in trials), default=1)
        rate = fsum(share * number for share, number in shares.items()) / cases if cases else 0.0
        within = within_variance(trials) if most > 1 else rate * (1 - rate)
        if not within:
            return None
        from evalwright.statistics.changes import flipping_share
        from evalwright.statistics.power import detectable_difference

        if (self.grouped or self.group_counts) and (ends := self._design().effective_n):
            cases = cases / max(1.0, rate_of_counts(shares).effective_n / ends)
        difference = detectable_difference(cases, 0.0, within, most, flipping_share(shares, most))
        return difference if difference is not None and 0 < difference <= 1 else None

    def _shares(self) -> dict[float, int]:
        """How many cases have each share of passed trials."""
        if self.cases is None:
            case = self.by_case()
            return {1.0: self.cells["pass"], 0.0: case.judged - self.cells["pass"]} if case.judged else {}
        shares: dict[float, int] = {}
        for value, number in Counter(self.cases.values()).items():
            passed, of = passed_and_judged(value)
            if of:
                shares[passed / of] = shares.get(passed / of, 0) + number
        return shares
