"""One side of the same cases against another: what got worse, what got better, and how sure that is."""

from __future__ import annotations

from collections.abc import Mapping
from math import fsum

from evalwright.model.summary import VariantDelta
from evalwright.statistics.paired import mcnemar_exact, newcombe_paired, paired_t
from evalwright.statistics.proportions import Interval

__all__ = ["Trials", "delta"]

Trials = Mapping[str, tuple[int, int]]
"""Passed trials and judged trials (at least one) by case."""


def delta(name: str, before: Trials, after: Trials, latency: float | None, rate: float | None = None) -> VariantDelta:
    """`after` against `before`; a case got worse when its share of passed trials is lower (specification evalh, d.5).

    The difference of rates is `rate` where given, else the mean over the cases that both sides judged.

    Interval and p look at the cases that both sides judged: Newcombe's paired interval and McNemar's exact test
    where each ran once, else the paired t-test on the cases' shares (repeats of a case are not independent).
    """
    worse, better, differences = [], [], []
    both_pass, repeated = 0, False
    for case, (passed, judged) in before.items():
        other = after.get(case)
        if other is None:
            continue
        difference = other[0] / other[1] - passed / judged
        differences.append(difference)
        if difference < 0:
            worse.append(case)
        elif difference > 0:
            better.append(case)
        else:
            both_pass += passed > 0
        repeated = repeated or judged > 1 or other[1] > 1
    interval, p = _surely(differences, both_pass, len(worse), len(better), repeated)
    if rate is None:
        rate = fsum(differences) / len(differences) if differences else 0.0
    return VariantDelta(name, rate, latency, sorted(worse), sorted(better), len(differences), interval, p)


def _surely(
    differences: list[float], both_pass: int, worse: int, better: int, repeated: bool
) -> tuple[Interval | None, float | None]:
    n = len(differences)
    if repeated:
        test = paired_t(differences)
        return test.ci and (max(-1.0, test.ci[0]), min(1.0, test.ci[1])), test.p_two_sided
    interval = newcombe_paired(both_pass, worse, better, n - both_pass - worse - better)
    return interval, mcnemar_exact(worse, better) if n else None
