"""The change of a pass rate between two sides of the same cases: which cases changed, and how sure the change is."""

from __future__ import annotations

from collections.abc import Hashable, Mapping

from evalwright.model.summary import VariantDelta
from evalwright.statistics.differences import decide_difference

__all__ = ["Trials", "delta"]

Trials = Mapping[str, tuple[int, int]]
"""Passed trials and judged trials (at least one) by case."""


def delta(
    name: str,
    before: Trials,
    after: Trials,
    groups: Mapping[str, str],
    latency: float | None,
) -> VariantDelta:
    """`after` minus `before`, over the cases that both sides judged. Cases of one group (`groups`, by case) are a unit.

    Without such cases there is no difference.
    """
    worse, better, differences = [], [], []
    units: list[Hashable] = []
    single = True
    for case, (passed, judged) in before.items():
        other = after.get(case)
        if other is None:
            continue
        difference = other[0] / other[1] - passed / judged
        differences.append(difference)
        units.append(groups.get(case, (case,)))
        if difference < 0:
            worse.append(case)
        elif difference > 0:
            better.append(case)
        single = single and judged == other[1] == 1
    found = decide_difference(differences, units if groups else None, one_trial=single)
    return VariantDelta(
        name, found.difference, latency, sorted(worse), sorted(better), found.n, found.ci, found.p_value
    )
