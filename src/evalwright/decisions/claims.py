"""Claims of a gate about a whole run, each with its error rate: not worse or better than a baseline, or a rate."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from evalwright.decisions.engine import side_rate
from evalwright.decisions.kinds import changed_totals, tallied
from evalwright.decisions.pairing import Counting, scale_of, with_skips
from evalwright.decisions.runs import TwoRuns
from evalwright.decisions.sensitivity import error_counts
from evalwright.decisions.sides import PASS_RATE, SideCounts
from evalwright.decisions.terms import Guard, Terms
from evalwright.errors import counted
from evalwright.model.decision import PARTIAL, UNREAD, Decision, DecisionVerdict, SideRate
from evalwright.model.summary import GateOutcome, GatePart, decisions_of
from evalwright.statistics.differences import verdict_of

__all__ = ["all_of", "decided_against", "decided_rates", "terms_of", "without_baseline"]

_WORDS = {"not_worse_than": "not worse than", "better_than": "better than"}
_OPEN = {
    "data": "too few data",
    "errors": "errors could turn it",
    PARTIAL: "cells that were not run could turn it",
    "guard": "a guard is open",
}


def terms_of(claim: Mapping[str, Any], family: int = 1) -> Terms:
    """How the two sides of a checked claim are decided. A claim to be better needs no margin."""
    better = claim["claim"] == "better_than"
    margin = claim.get("margin")
    return Terms(
        metric=claim["metric"],
        margin=0.0 if better and margin is None else margin,
        alpha=claim["alpha"],
        better=better,
        slices=tuple(claim.get("slices", ())),
        slice_margin=claim.get("slice_margin"),
        guards=tuple(Guard(name, limit) for name, limit in claim.get("guards", {}).items()),
        errors=claim.get("errors", "exclude"),
        group=claim["group"],
        family=family,
    )


def decided_against(claim: Mapping[str, Any], runs: TwoRuns, pairs: Sequence[tuple[str, str]]) -> GateOutcome:
    """The claim about each pair of variants, decided together: every one must hold."""
    parts, decisions, reasons = [], [], []
    for before, after in pairs:
        decision = runs.decision(before, after)
        name = f"{claim['metric']} of {after} {_WORDS[claim['claim']]} {claim['against']}"
        parts += _parts(decision, name, better=claim["claim"] == "better_than", slice_margin=claim.get("slice_margin"))
        decisions.append(decision)
        reasons += [_reason(decision)] if decision.verdict != "ship" else []
    outcome = _outcome([decision.verdict for decision in decisions], parts, reasons, claim)
    outcome.decision = decisions[0] if len(decisions) == 1 else None
    outcome.decisions = decisions if len(decisions) > 1 else []
    return outcome


def _parts(decision: Decision, name: str, *, better: bool, slice_margin: float | None) -> list[GatePart]:
    """The verdict of the metric, of each guard, and of the slices that contradict the claim."""
    points = "points" if decision.metric == PASS_RATE else ""
    answer = verdict_of(decision.ci, decision.margin, better=better)
    turned = decision.judge is not None and decision.judge.turns
    if turned or not decision.errors.same_verdict or UNREAD in decision.reasons:
        answer = "undecided"
    limit = 0.0 if better else -decision.margin
    numbers = decision.difference, "gt", limit, decision.n, decision.ci, answer == "undecided"
    parts = [GatePart(name, answer == "ship", *numbers, unit=points)]
    for guard in decision.guards:
        loss = guard.name.startswith("evaluator:")
        of = guard.value, "gte" if loss else "lte", guard.limit, 0, guard.ci, guard.state == "undecided"
        unit = "points" if loss else "ratio"
        title = f"guard {guard.name} of {decision.variant_b}"
        missing = guard.reason if guard.ci is None else ""
        parts.append(GatePart(title, guard.state == "holds", *of, interval_reason=missing, unit=unit))
    for part in decision.slices if slice_margin is not None else ():
        if f"slice {part.key}={part.value}" in decision.reasons:
            title = f"slice {part.key}={part.value} of {decision.variant_b}"
            of = part.difference, "gte", -(slice_margin or 0.0), part.n, part.ci, False
            parts.append(GatePart(title, False, *of, unit=points))
    return parts


def _reason(decision: Decision) -> str:
    """Why a claim does not hold, in a few words."""
    if decision.n == 0:
        return "no case was judged in both runs"
    broken = [guard.name for guard in decision.guards if guard.state == "broken"]
    if decision.verdict == "dont":
        worse = f"worse: {', '.join(decision.reasons)}" if decision.reasons else "worse"
        return f"guard {', '.join(broken)} is broken" if broken else worse
    return ", ".join(_OPEN.get(reason, reason) for reason in decision.reasons)


def without_baseline(claim: Mapping[str, Any], why: str) -> GateOutcome:
    """The claim if there is no baseline to compare with."""
    part = GatePart(f"{claim['metric']} {_WORDS[claim['claim']]} {claim['against']}", False, undecided=True)
    return _outcome(["undecided"], [part], [f"baseline: {why}"], claim)


def decided_rates(claim: Mapping[str, Any], runs: TwoRuns) -> GateOutcome:
    """Whether the rate, or the mean score, of every variant of B is shown to be as high as claimed."""
    least, metric, parts, reasons = claim["at_least"], claim["metric"], [], []
    verdicts: list[DecisionVerdict] = []
    for side in runs.b.values():
        scale = scale_of(side, side, metric)
        worst, best = (Counting(*[end] * len(Counting())) for end in scale)
        groups = side.groups if claim["group"] is None else runs.known.groups
        name = f"{metric} of {side.variant}"
        try:
            measured, *extremes = (_rate(claim, side, groups, counting) for counting in (Counting(), worst, best))
        except OverflowError:
            parts.append(GatePart(name, False, undecided=True))
            verdicts.append("undecided")
            reasons.append("the scores are too large for an interval")
            continue
        verdict = _at_least(measured, least, claim["rule"])
        others = {_at_least(bound, least, claim["rule"]) for bound in extremes}
        if verdict != "undecided" and others != {verdict}:
            verdict = "undecided"
            reasons += [_OPEN[reason] for reason in error_counts(side.outcomes(metric)).missing]
        elif verdict == "undecided":
            reasons.append("too few data" if measured.n else "nothing was measured")
        elif verdict == "ship":
            reasons += _turning_skips(claim, side, groups)
        numbers = measured.rate, "gte", least, measured.n, measured.ci, verdict == "undecided"
        parts.append(GatePart(name, verdict == "ship", *numbers, unit="rate" if metric == PASS_RATE else ""))
        verdicts.append(verdict)
    if not parts:
        return _outcome(["undecided"], [GatePart(metric, False, undecided=True)], ["nothing was measured"], claim)
    return _outcome(verdicts, parts, reasons, claim)


def _rate(claim: Mapping[str, Any], side: SideCounts, groups: Mapping[str, str], counting: Counting) -> SideRate:
    """The rate, with trials that have no verdict counted as `counting` says."""
    metric = claim["metric"]
    return side_rate(counting.over(side.outcomes(metric)), groups, metric, claim["alpha"], scale_of(side, side, metric))


def _turning_skips(claim: Mapping[str, Any], side: SideCounts, groups: Mapping[str, str]) -> list[str]:
    """That the rate is high enough only because skipped trials count for nothing: systems may skip what they would
    fail."""
    metric = claim["metric"]
    low, outcomes = scale_of(side, side, metric).low, side.outcomes(metric)
    skipped = sum(outcome.skipped * n for outcome, n in tallied(outcomes))
    if not skipped:
        return []
    failed = changed_totals(outcomes, lambda outcome: with_skips(outcome, low))
    rate = side_rate(failed, groups, metric, claim["alpha"], scale_of(side, side, metric))
    if _at_least(rate, claim["at_least"], claim["rule"]) == "ship":
        return []
    had = "failed" if metric == PASS_RATE else "got the worst score"
    counts, they = ("counts", "it") if skipped == 1 else ("count", "they")
    trials = f"{counted(skipped, 'skipped trial')} of {side.variant} {counts} for nothing"
    return [f"{trials}: the gate would not pass if {they} had {had}"]


def _at_least(rate: SideRate, least: float, rule: str) -> DecisionVerdict:
    if rate.rate is None or rate.ci is None:
        return "undecided"
    low, high = (rate.rate, rate.rate) if rule == "point" else rate.ci
    return "ship" if low >= least else "dont" if high < least else "undecided"


def _outcome(
    verdicts: Sequence[DecisionVerdict], parts: list[GatePart], reasons: Sequence[str], claim: Mapping[str, Any]
) -> GateOutcome:
    undecided = "dont" not in verdicts and "undecided" in verdicts
    tolerated = undecided and claim["on_undecided"] == "pass"
    passed = set(verdicts) == {"ship"} or tolerated
    return GateOutcome(passed, parts, "; ".join(dict.fromkeys(reasons)), undecided=undecided, tolerated=tolerated)


def all_of(outcomes: Sequence[GateOutcome]) -> GateOutcome:
    """Gates that must all pass: a failed one settles it, then an undecided one."""
    if len(outcomes) == 1:
        return outcomes[0]
    failed = any(not outcome.passed and not outcome.undecided for outcome in outcomes)
    undecided = not failed and any(outcome.undecided for outcome in outcomes)
    return GateOutcome(
        all(outcome.passed for outcome in outcomes),
        [part for outcome in outcomes for part in outcome.parts],
        "; ".join(dict.fromkeys(reason for outcome in outcomes for reason in outcome.reason.split("; ") if reason)),
        [run for outcome in outcomes for run in outcome.runs],
        undecided,
        undecided and all(outcome.tolerated or not outcome.undecided for outcome in outcomes),
        decisions=[decision for outcome in outcomes for decision in decisions_of(outcome)],
    )
