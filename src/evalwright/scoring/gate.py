"""Gates: whether a run as a whole passes, by conditions on the scores of its evaluators.

A gate is a tree of plain data with the kinds of Letta Evals: conditions `simple`, `weighted_average` and `legacy`,
combined by `logical`. Means are plain sums over counts, in the order of the scores: another order could change the
last digit, and with it a comparison that the original program decides the other way. Whoever calls sees to an order
that does not depend on when which cell ended.
"""

from __future__ import annotations

import operator
from array import array
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

from evalwright.errors import counted
from evalwright.model.facts import ResultLike, TraceLike
from evalwright.model.plan import Plan
from evalwright.model.result import Status
from evalwright.model.summary import GateOutcome, GatePart, RunSummary
from evalwright.scoring.counts import Unjudged

__all__ = ["AGGREGATIONS", "OPERATORS", "GateTotals", "aggregated", "decided"]

OPERATORS: dict[str, Callable[[float, float], bool]] = {
    "gt": operator.gt,
    "gte": operator.ge,
    "lt": operator.lt,
    "lte": operator.le,
    "eq": operator.eq,
}
_PERCENTILES = {"median": 50, "p50": 50, "p95": 95, "p99": 99}
AGGREGATIONS = ("avg_score", "accuracy", "min", "max", *_PERCENTILES)

Scores = Mapping[str, Sequence[float]]
"""The scores of each evaluator in the order of the rows."""


class GateTotals:
    """Scores by evaluator, eight bytes each, and how many are unknown because of an error."""

    reads_scores_only = True

    def __init__(self, plan: Plan, gate: Mapping[str, Any]) -> None:
        self._gate = gate
        self._scores = {spec.name: array("d") for spec in plan.evaluators}
        self._unknown = dict.fromkeys(self._scores, 0)
        self._counted = Unjudged.of(plan.pass_criteria)

    def add(
        self, trace: TraceLike, results: Collection[ResultLike], status: Status, score: float | None = None
    ) -> None:
        if trace.error is not None and (not self._counted.traces or not results):
            for name in self._scores:
                self._without_score(name, self._counted.cells)
            return
        for row in results:
            if row.skipped or row.evaluator not in self._scores:
                continue
            if row.error is not None:
                self._without_score(row.evaluator, self._counted.results)
            else:
                self._scores[row.evaluator].append(float(row.passed) if row.score is None else row.score)

    def _without_score(self, name: str, counts: bool) -> None:
        if counts:
            self._scores[name].append(0.0)
        else:
            self._unknown[name] += 1

    def merge(self, other: Any) -> None:
        for name, scores in other._scores.items():
            self._scores[name].extend(scores)
            self._unknown[name] += other._unknown[name]

    def finish(self, summary: RunSummary) -> None:
        # cells end in any order: sorted, the same scores give the same last digit of a mean
        summary.gate = decided(self._gate, {k: sorted(v) for k, v in self._scores.items()}, self._unknown)


def decided(
    rule: Mapping[str, Any], scores: Scores, unknown: Mapping[str, int] = {}, *, empty_is_zero: bool = False
) -> GateOutcome:
    """Apply a checked gate to the scores.

    A condition on an evaluator without scores is not measured, or its value is 0 with `empty_is_zero`. `unknown`
    scores, of results with an error, take part in no value. The gate is undecided if it is not measured, or if the
    outcome would be another were they all 0 or all 1.
    """
    parts: list[GatePart] = []
    outcome = _holds(rule, scores, parts, empty_is_zero)
    gate = GateOutcome(outcome is True, parts)
    if outcome is None:
        gate.undecided, gate.reason = True, "nothing was measured"
    elif any(unknown.values()):
        could_be = {_holds(rule, _with(scores, unknown, score), [], empty_is_zero) for score in (0.0, 1.0)}
        if could_be != {outcome}:
            gate.undecided = True
            gate.reason = f"it depends on {counted(sum(unknown.values()), 'result')} with an error"
    return gate


def _with(scores: Scores, unknown: Mapping[str, int], score: float) -> Scores:
    """The scores, and each unknown one as `score`."""
    return {name: [*found, *[score] * unknown.get(name, 0)] for name, found in scores.items()}


def aggregated(scores: Sequence[float], aggregation: str, pass_threshold: float = 1.0) -> float:
    """One number for many scores, 0 for none. `accuracy` is the percentage of scores that reach `pass_threshold`.

    Percentiles interpolate linearly between the closest ranks (rank = p/100 * (n - 1)).
    """
    if not scores:
        return 0.0
    if aggregation == "avg_score":
        return sum(scores) / len(scores)
    if aggregation == "accuracy":
        return 100.0 * sum(score >= pass_threshold for score in scores) / len(scores)
    if aggregation in ("min", "max"):
        return min(scores) if aggregation == "min" else max(scores)
    return _percentile(sorted(scores), _PERCENTILES[aggregation])


def _percentile(ordered: Sequence[float], percent: float) -> float:
    rank = percent / 100 * (len(ordered) - 1)
    below = int(rank)
    above = min(below + 1, len(ordered) - 1)
    return ordered[below] + (ordered[above] - ordered[below]) * (rank - below)


def _holds(rule: Mapping[str, Any], scores: Scores, parts: list[GatePart], empty_is_zero: bool) -> bool | None:
    """Whether a gate passes; None if that is not measured."""
    kind = rule["kind"]
    if kind == "logical":
        held = [_holds(condition, scores, parts, empty_is_zero) for condition in rule["conditions"]]
        settles = rule["operator"] == "or"  # one condition that holds settles `or`, one that does not `and`
        return settles if settles in held else None if None in held else not settles
    value: float | None
    if kind == "weighted_average":
        name, value, n = _weighted(rule, scores)
    else:
        key = rule["metric_key"]
        found = scores.get(key, ())
        name, n = f"{rule['aggregation']}({key})", len(found)
        value = _value(rule, found)
    if not n and not empty_is_zero:
        value = None
    passed = None if value is None else OPERATORS[rule["op"]](value, rule["value"])
    parts.append(GatePart(name, passed is True, value, rule["op"], rule["value"], n))
    return passed


def _value(rule: Mapping[str, Any], scores: Sequence[float]) -> float:
    if rule["kind"] == "legacy" and rule["aggregation"] == "accuracy":
        reaches = OPERATORS[rule["pass_op"]]
        return 100.0 * sum(reaches(score, rule["pass_value"]) for score in scores) / len(scores) if scores else 0.0
    return aggregated(scores, rule["aggregation"], rule.get("pass_threshold", 1.0))


def _weighted(rule: Mapping[str, Any], scores: Scores) -> tuple[str, float, int]:
    """Each metric is aggregated first; weights are shares of their sum."""
    weights: Mapping[str, float] = rule["weights"]
    total = sum(weights.values())
    aggregation, threshold = rule["aggregation"], rule.get("pass_threshold", 1.0)
    value = sum(aggregated(scores.get(k, ()), aggregation, threshold) * (w / total) for k, w in weights.items())
    named = " + ".join(f"{weight / total:.3g} {key}" for key, weight in weights.items())
    return f"{aggregation}({named})", value, min(len(scores.get(key, ())) for key in weights)
