"""The rate of what is passed trial by trial: one rule for cells and for each evaluator, so that their rows agree."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping

from evalwright.statistics.rates import DesignRate, rate_of_counts, rate_of_units, rate_with_design_effect
from evalwright.statistics.units import Cluster, units_from

__all__ = ["rate_of_cases", "rate_of_singles"]


def rate_of_cases(trials: Mapping[str, tuple[int, int]], groups: Mapping[str, str]) -> DesignRate:
    """The mean over cases of the share of passed trials, by passed and judged trials of each case.

    Cases of one of the `groups` are one unit of the interval.
    """
    if not any(case in groups for case in trials):
        return rate_of_counts(Counter(passed / of for passed, of in trials.values()))
    return rate_with_design_effect(
        [passed / of for passed, of in trials.values()], [groups.get(case, (case,)) for case in trials]
    )


def rate_of_singles(passed: int, judged: int, groups: Iterable[tuple[int, int]] = ()) -> DesignRate:
    """The same of cases of one trial each, which need not be known one by one.

    `groups` are passed and judged cases of each group; all other cases are units of their own.
    """
    parts = Counter(Cluster(float(passes), of) for passes, of in groups)
    if not parts:
        return rate_of_counts({1.0: passed, 0.0: judged - passed} if judged else {})
    passed -= round(sum(unit.total * times for unit, times in parts.items()))
    judged -= sum(unit.size * times for unit, times in parts.items())
    parts[Cluster(1.0, 1)] += passed
    parts[Cluster(0.0, 1)] += judged - passed
    return rate_of_units(units_from(+parts))
