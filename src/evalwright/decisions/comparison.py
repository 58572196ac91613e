"""Comparison of two runs of the same cases: one decision for each variant, with its rates."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import msgspec

from evalwright.decisions.engine import side_rate
from evalwright.decisions.kinds import changed_totals
from evalwright.decisions.pairing import ValueRange, scale_of
from evalwright.decisions.runs import TwoRuns
from evalwright.decisions.sides import PASS_RATE, CaseTotal, SideCounts
from evalwright.model.decision import UNREAD, Decision, SideRate
from evalwright.model.summary import ComparisonReport, VariantDelta
from evalwright.statistics.corrections import adjust_p_values
from evalwright.statistics.latency import QuantileByUnit, quantiles

__all__ = [
    "EvaluatorComparison",
    "Regression",
    "RunComparison",
    "Side",
    "VariantComparison",
    "against_baseline",
    "comparison_of",
    "delta_of",
    "evaluator_changes",
    "regressions",
]


class Side(msgspec.Struct):
    """One run's share of a comparison: a rate with the number of cases behind it and its 1 - alpha interval.

    None where no case was judged. The interval accounts for repeated trials and groups of cases.
    """

    rate: float | None
    n: int
    ci95: tuple[float, float] | None
    avg_latency_ms: float | None = None
    latency_n: int = 0
    avg_cost_usd: float | None = None
    cost_n: int = 0
    p50_latency_ms: float | None = None
    p50_latency_ci95: tuple[float, float] | None = None
    """By order statistics, of as many trials as those of a case or group are worth."""
    p95_latency_ms: float | None = None


class VariantComparison(msgspec.Struct):
    """One variant in both runs: rates and means of all cases of each side, the delta of the cases that both judged."""

    variant: str
    a: Side
    b: Side
    delta: VariantDelta
    decision: Decision
    a_only: list[str] = []
    b_only: list[str] = []
    avg_cost_delta_usd: float | None = None


class EvaluatorComparison(msgspec.Struct):
    """One evaluator on one variant in both runs."""

    evaluator: str
    variant: str
    a: Side
    b: Side
    rate_delta: float | None = None
    """Of the pass rates over the cases that both sides judged, as all that follows."""
    rate_ci: tuple[float, float] | None = None
    rate_p: float | None = None
    scored: bool = False
    """Whether its scores carry more information than pass or fail."""
    paired: float | None = None
    """Of scores, where the evaluator gives scores."""
    ci: tuple[float, float] | None = None
    p: float | None = None
    q: float | None = None


class RunComparison(msgspec.Struct):
    """Run B against run A."""

    a: str
    b: str
    variants: list[VariantComparison]
    evaluators: list[EvaluatorComparison]
    variants_a_only: list[str] = []
    variants_b_only: list[str] = []


def comparison_of(runs: TwoRuns, a: str, b: str) -> RunComparison:
    """The comparison of two runs that are already counted; `a` and `b` are their places."""
    both = [name for name in runs.a if name in runs.b]
    variants = [_variant(name, runs) for name in both]
    decisions = {variant.variant: variant.decision for variant in variants}
    adjusted(variant.delta for variant in variants)
    return RunComparison(
        a,
        b,
        variants,
        [pair for name in both for pair in evaluator_changes(runs, name, decisions[name])],
        [name for name in runs.a if name not in runs.b],
        [name for name in runs.b if name not in runs.a],
    )


def against_baseline(runs: TwoRuns, baseline: str) -> ComparisonReport | None:
    """The other variants of B against one of A; None where it has no cells."""
    if baseline not in runs.a:
        return None
    names = [name for name in runs.b if name != baseline]
    decisions = [runs.decision(baseline, name) for name in names]
    deltas = adjusted(
        delta_of(name, decision, runs.latency_change(baseline, name))
        for name, decision in zip(names, decisions, strict=True)
    )
    return ComparisonReport(
        baseline,
        deltas,
        regressions_count=sum(len(delta.regressions) for delta in deltas),
        improvements_count=sum(len(delta.improvements) for delta in deltas),
        decision=decisions[0] if len(decisions) == 1 else None,
        decisions=decisions if len(decisions) > 1 else [],
    )


def adjusted(deltas: Iterable[VariantDelta]) -> list[VariantDelta]:
    """The same, with p adjusted for their number if there are several."""
    listed = list(deltas)
    tested = [(delta, delta.p_value) for delta in listed if delta.p_value is not None]
    if len(tested) > 1:
        holm = adjust_p_values([p for _, p in tested])["holm_adjusted"]
        for (delta, _), p in zip(tested, holm, strict=True):
            delta.p_holm = float(p)
    return listed


def _variant(name: str, runs: TwoRuns) -> VariantComparison:
    decision = runs.decision(name, name)
    one, other = _side(runs.a[name], decision.a), _side(runs.b[name], decision.b)
    delta = delta_of(name, decision, _gap(one.avg_latency_ms, other.avg_latency_ms))
    identity = decision.identity
    cost = _gap(one.avg_cost_usd, other.avg_cost_usd)
    return VariantComparison(name, one, other, delta, decision, identity.a_only, identity.b_only, cost)


def delta_of(name: str, decision: Decision, latency: float | None) -> VariantDelta:
    """A decision in the form in which runs store changes."""
    changed = decision.changed
    numbers = decision.n, decision.ci, decision.p_better
    return VariantDelta(name, decision.difference, latency, sorted(changed.worse), sorted(changed.better), *numbers)


def _gap(before: float | None, after: float | None) -> float | None:
    return None if before is None or after is None else after - before


def _side(counts: SideCounts, rate: SideRate) -> Side:
    times = quantiles(counts.measures["latency"].values())
    means = *counts.mean("latency"), *counts.mean("cost")
    single = not counts.groups and counts.cells == len(counts.passes)
    ends = times.median_ci if single else _median_ends(counts)
    return Side(rate.rate, rate.n, rate.ci, *means, times.p50, ends, times.p95)


def _median_ends(counts: SideCounts) -> tuple[float, float] | None:
    """Trials of a case, or of cases of a group, are not independent."""
    by_case = counts.measures["latency"].by_case()
    pairs = sorted((value, case) for case, values in by_case.items() for value in values)
    units = [counts.groups.get(case, (case,)) for _, case in pairs]
    return QuantileByUnit.of([value for value, _ in pairs], units, 0.5).ends if pairs else None


def evaluator_changes(runs: TwoRuns, variant: str, decision: Decision) -> list[EvaluatorComparison]:
    """The evaluators that both runs have: rates of all cases of each side, changes as the decision has them."""
    pairs = []
    paired = {part.name: part for part in decision.evaluators}
    before, after = runs.a[variant], runs.b[variant]
    groups = runs.groups_of(before, after)
    for name in sorted(before.scores.keys() & after.scores.keys()):
        one, other = (_pass_side(side.scores[name], groups, decision) for side in (before, after))
        pair = EvaluatorComparison(name, variant, one, other)
        if (part := paired.get(name)) is not None:
            pair.rate_delta, pair.rate_ci, pair.rate_p = part.rate_difference, part.rate_ci, part.rate_p
            pair.scored, pair.paired, pair.ci, pair.p, pair.q = part.scored, part.difference, part.ci, part.p, part.q
        pairs.append(pair)
    return pairs


def _pass_side(outcomes: Mapping[str, CaseTotal], groups: Mapping[str, str], decision: Decision) -> Side:
    passes = changed_totals(outcomes, lambda count: CaseTotal(count.passed, count.judged))
    rate = side_rate(passes, groups, PASS_RATE, decision.alpha / decision.family, ValueRange())
    return Side(rate.rate, rate.n, rate.ci)


class Regression(NamedTuple):
    """Whether one variant of B is worse by one metric, beyond noise and by more than the margin."""

    decision: Decision
    is_worse: bool | None
    """None where errors, cells that were not run or unreadable records could decide it, and where nothing was
    measured."""


def regressions(runs: TwoRuns, decisions: Sequence[Decision], margin: float) -> list[Regression]:
    """Whether the variants of B are worse than those of A: by their pass rates or, in a suite of only scores, by the
    mean of any of these, as means may drop although no fewer cases have scores of 1.

    `margin` is a loss of the pass rate, or of scores as a share of their range. However many variants and metrics there
    are, the chance that any of an unchanged system is worse is at most half of alpha.
    """
    tested = [(decision, metric) for decision in decisions for metric in _metrics(runs, decision)]
    if len(tested) == 1 and tested[0][1] == PASS_RATE:
        return [Regression(decisions[0], _regressed(decisions[0], margin))]
    return [_regression(runs, decision, metric, margin, len(tested)) for decision, metric in tested]


def _metrics(runs: TwoRuns, decision: Decision) -> list[str]:
    """What is to be no worse. Scores that are all 0 or 1 say no more than the pass rate."""
    scored = any(part.scored for part in decision.evaluators)
    return [part.name for part in decision.evaluators] if runs.has_only_scores and scored else [PASS_RATE]


def _regression(runs: TwoRuns, decision: Decision, metric: str, margin: float, family: int) -> Regression:
    """By one of so many metrics and variants that are tested together."""
    if metric == PASS_RATE and _regressed(decision, margin) is False:
        return Regression(decision, False)  # a smaller alpha makes no interval narrower
    one, other = decision.variant_a, decision.variant_b
    terms = msgspec.structs.replace(runs.terms, metric=metric, family=family)
    if metric != PASS_RATE:
        margin *= scale_of(runs.a[one], runs.b[other], metric).width
        terms = msgspec.structs.replace(terms, margin=None)  # which is in the units of the metric
    together = msgspec.structs.replace(runs, terms=terms).decision(one, other)
    return Regression(together, _regressed(together, margin))


def _regressed(decision: Decision, margin: float) -> bool | None:
    below = {high < -margin for _, high in decision.readings}
    if UNREAD in decision.reasons and True not in below:
        return None
    return below.pop() if len(below) == 1 else None
