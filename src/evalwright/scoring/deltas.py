"""The change of a pass rate between two sides of the same cases: regressions, improvements, interval and p."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from math import fsum

from evalwright.model.summary import VariantDelta
from evalwright.statistics.clusters import paired_difference_clustered
from evalwright.statistics.paired import mcnemar_exact, newcombe_paired, paired_t
from evalwright.statistics.proportions import Interval

__all__ = ["Trials", "delta"]

Trials = Mapping[str, tuple[int, int]]
"""Passed trials and judged trials (at least one) by case."""


def delta(
    name: str,
    before: Trials,
    after: Trials,
    groups: Mapping[str, str],
    latency: float | None,
    rate: float | None = None,
) -> VariantDelta:
    """`after` minus `before`. A case is a regression if a smaller share of its trials passes.

    The difference of rates is `rate` if given, else the mean over the cases that both sides judged.

    Interval and p use the cases that both sides judged: Newcombe's paired interval and McNemar's exact test if each
    case ran once, else the paired t-test on the cases' shares, as repeats of a case are not independent. Nor are cases
    of one group (`groups`, by case): if there are any, the t-test has cluster-robust errors.
    """
    worse, better, differences = [], [], []
    clusters: list[Hashable] = []
    both_pass, repeated = 0, False
    for case, (passed, judged) in before.items():
        other = after.get(case)
        if other is None:
            continue
        difference = other[0] / other[1] - passed / judged
        differences.append(difference)
        clusters.append(groups.get(case, (case,)))
        if difference < 0:
            worse.append(case)
        elif difference > 0:
            better.append(case)
        else:
            both_pass += passed > 0
        repeated = repeated or judged > 1 or other[1] > 1
    if len(set(clusters)) < len(clusters):
        test = paired_difference_clustered([0.0] * len(differences), differences, clusters)
        interval, p = _within_rates(test.ci), test.p_two_sided
    else:
        interval, p = _paired(differences, both_pass, len(worse), len(better), repeated)
    if rate is None:
        rate = fsum(differences) / len(differences) if differences else 0.0
    return VariantDelta(name, rate, latency, sorted(worse), sorted(better), len(differences), interval, p)


def _paired(
    differences: list[float], both_pass: int, worse: int, better: int, repeated: bool
) -> tuple[Interval | None, float | None]:
    n = len(differences)
    if repeated:
        test = paired_t(differences)
        return _within_rates(test.ci), test.p_two_sided
    interval = newcombe_paired(both_pass, worse, better, n - both_pass - worse - better)
    return interval, mcnemar_exact(worse, better) if n else None


def _within_rates(interval: Interval | None) -> Interval | None:
    """The t-test knows no bounds, a difference of rates has them."""
    return interval and (max(-1.0, interval[0]), min(1.0, interval[1]))
