"""Counts of one evaluator's results on one variant of a run."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from evalwright.model.summary import EvaluatorRate
from evalwright.scoring.case_trials import JUDGED_TRIAL, PASSED_TRIAL, add_groups, add_trials, passed_and_judged
from evalwright.statistics.rates import rate_of_cases, rate_of_singles
from evalwright.statistics.sums import ExactSum

__all__ = ["EvaluatorCount"]


class EvaluatorCount:
    """Results of one evaluator on one variant. `n` counts those with a verdict, passed or not."""

    __slots__ = ("_scores", "cases", "costed", "errors", "full", "groups", "n", "passed", "scored", "skipped", "spent")

    def __init__(self, by_case: bool = False) -> None:
        self.cases: dict[str, int] | None = {} if by_case else None
        """Passed and judged trials by case, packed; None if no case is repeated."""
        self.groups: dict[str, list[int]] = {}
        """Passed and judged cases by group, if cases are not counted one by one."""
        self.n: int = 0
        self.passed: int = 0
        self.errors: int = 0
        self.skipped: int = 0
        self.scored: int = 0
        self.full: int = 0
        """Scores of exactly 1, as most are that are not 0."""
        self.costed: int = 0
        self._scores: ExactSum = ExactSum()
        """All others."""
        self.spent: ExactSum = ExactSum()

    def add_alike(self, cell: EvaluatorCount, times: int) -> None:
        """Count, this many times, one cell's result whose score is 0 or 1 and which cost nothing."""
        for name in ("n", "passed", "errors", "skipped", "scored", "full"):
            setattr(self, name, getattr(self, name) + times * getattr(cell, name))

    def add_score(self, score: float) -> None:
        """Count a score that is neither 0 nor 1."""
        self._scores.add(score)

    @property
    def avg_score(self) -> float | None:
        """The mean of all scores; None without any."""
        total = ExactSum()
        total.add(self.full)
        total.merge(self._scores)
        return total.over(self.scored) if self.scored else None

    def merge(self, other: EvaluatorCount) -> None:
        for name in ("n", "passed", "errors", "skipped", "scored", "full", "costed"):
            setattr(self, name, getattr(self, name) + getattr(other, name))
        self._scores.merge(other._scores)
        self.spent.merge(other.spent)
        if self.cases is not None and other.cases is not None:
            add_trials(self.cases, other.cases)
        add_groups(self.groups, other.groups)

    def add_verdict(self, case: str, group: str | msgspec.UnsetType, passed: bool) -> None:
        """Count one result with a verdict."""
        self.n += 1
        self.passed += passed
        if self.cases is not None:
            self.cases[case] = self.cases.get(case, 0) + (JUDGED_TRIAL + PASSED_TRIAL if passed else JUDGED_TRIAL)
        elif group is not msgspec.UNSET:
            of = self.groups.setdefault(group, [0, 0])
            of[0] += passed
            of[1] += 1

    def rate(self, groups: Mapping[str, str]) -> EvaluatorRate:
        """The rate of its results with a verdict, by the rule for the pass rate of cells; none without such results.

        `groups` are the cases' groups, if cases are counted one by one.
        """
        if self.cases is None:
            rate = rate_of_singles(self.passed, self.n, ((passed, of) for passed, of in self.groups.values()))
        else:
            rate = rate_of_cases({case: passed_and_judged(value) for case, value in self.cases.items()}, groups)
        return EvaluatorRate(
            pass_rate=rate.rate,
            avg_score=self.avg_score,
            n=self.n,
            pass_rate_ci95=rate.ci,
            scored=self.scored,
            errors=self.errors,
            skipped=self.skipped,
            cases=rate.units,
            cost_usd=self.cost_usd,
            grouped=bool(self.groups or groups),
        )

    @property
    def cost_usd(self) -> float | None:
        """Cost of this evaluator's model calls; None if no result reports one."""
        return self.spent.total if self.costed else None
