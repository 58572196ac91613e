"""One side of the same cases against another: what got worse, what got better, and how sure that is."""

from __future__ import annotations

from collections.abc import Mapping

from evalwright.model.summary import ComparisonReport, VariantDelta
from evalwright.statistics.paired import mcnemar_exact, paired_mean_interval

__all__ = ["Shares", "delta", "variants_compared"]

Shares = Mapping[str, float]
"""Share of passed trials by case."""


def variants_compared(
    baseline: str, shares: Mapping[str, Shares], rates: Mapping[str, float], latencies: Mapping[str, float]
) -> ComparisonReport:
    """Every other variant of a run against its baseline variant, in their order (specification evalh, d.5)."""
    deltas = [
        delta(
            name,
            shares[baseline],
            shares[name],
            rates[name] - rates[baseline],
            latencies[name] - latencies[baseline],
        )
        for name in shares
        if name != baseline
    ]
    return ComparisonReport(
        baseline,
        deltas,
        regressions_count=sum(len(delta.regressions) for delta in deltas),
        improvements_count=sum(len(delta.improvements) for delta in deltas),
    )


def delta(name: str, before: Shares, after: Shares, rate: float, latency: float) -> VariantDelta:
    both = before.keys() & after.keys()
    differences = [after[case] - before[case] for case in both]
    return VariantDelta(
        name,
        rate,
        latency,
        sorted(case for case in both if after[case] < before[case]),
        sorted(case for case in both if after[case] > before[case]),
        len(both),
        paired_mean_interval(differences),
        mcnemar_exact(sum(d < 0 for d in differences), sum(d > 0 for d in differences)),
    )
