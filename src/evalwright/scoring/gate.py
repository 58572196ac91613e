"""Gates: whether a run as a whole passes, by conditions on the scores of its evaluators.

A gate is a tree of plain data with the kinds of Letta Evals: conditions `simple`, `weighted_average` and `legacy`,
combined by `logical`. Means are plain sums over counts, in the order of the scores: another order could change the
last digit, and with it a comparison that the original program decides the other way. The caller provides an order that
does not depend on when each cell ended.
"""

from __future__ import annotations

import operator
from array import array
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import partial, reduce
from math import isfinite
from typing import Any

from msgspec import UNSET

from evalwright.errors import counted
from evalwright.model.facts import ResultLike, TraceLike
from evalwright.model.plan import Plan
from evalwright.model.result import Status
from evalwright.model.summary import GateOutcome, GatePart, RunSummary
from evalwright.scoring.counts import CountedErrors
from evalwright.scoring.gate_intervals import OwnedScores, ends_of_condition
from evalwright.statistics.sums import exact_mean

__all__ = ["AGGREGATIONS", "OPERATORS", "GateTotals", "aggregated", "decided", "plain_sum"]

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
    """Scores by evaluator with the case of each, sixteen bytes together, and how many are unknown because of an
    error."""

    reads_scores_only = True

    def __init__(self, plan: Plan, gate: Mapping[str, Any]) -> None:
        self._gate = gate
        self._stops_early = plan.until_decided is not None
        self._scores = {spec.name: array("d") for spec in plan.evaluators}
        self._owners = {spec.name: array("q") for spec in plan.evaluators}
        """The case of each score, by its position from -1 downwards, or its group, by its number."""
        self._numbers: dict[tuple[str, bool], int] = {}
        """The numbers of groups, and of cases whose position in the dataset is not known."""
        self._unknown = dict.fromkeys(self._scores, 0)
        self._counted = CountedErrors.of(plan.pass_criteria)

    def add(
        self, trace: TraceLike, results: Collection[ResultLike], status: Status, score: float | None = None
    ) -> None:
        if trace.group is not UNSET:
            owner = self._number((trace.group, True))
        else:
            owner = self._number((trace.case_key, False)) if trace.case_index is None else -1 - trace.case_index
        if trace.error is not None and (not self._counted.traces or not results):
            for name in self._scores:
                self._without_score(name, owner, self._counted.cells)
            return
        for row in results:
            if row.skipped or row.evaluator not in self._scores:
                continue
            if row.error is not None:
                self._without_score(row.evaluator, owner, self._counted.results)
            else:
                self._score(row.evaluator, owner, float(row.passed) if row.score is None else row.score)

    def _number(self, owner: tuple[str, bool]) -> int:
        return self._numbers.setdefault(owner, len(self._numbers))

    def _score(self, name: str, owner: int, score: float) -> None:
        self._scores[name].append(score)
        self._owners[name].append(owner)

    def _without_score(self, name: str, owner: int, counts: bool) -> None:
        if counts:
            self._score(name, owner, 0.0)
        else:
            self._unknown[name] += 1

    def merge(self, other: Any) -> None:
        numbers = [self._number(owner) for owner in other._numbers]
        for name, scores in other._scores.items():
            self._scores[name].extend(scores)
            self._owners[name].extend(numbers[owner] if owner >= 0 else owner for owner in other._owners[name])
            self._unknown[name] += other._unknown[name]

    def finish(self, summary: RunSummary) -> None:
        # cells end in any order: sorted, the same scores give the same last digit of a mean
        scores = {name: array("d", sorted(score)) for name, score in self._scores.items()}
        owned = {name: OwnedScores(score, self._owners[name]) for name, score in self._scores.items()}
        # cells that a run has left out because it was decided are not missing
        not_run = 0 if self._stops_early else summary.cells_missing
        summary.gate = decided(self._gate, scores, self._unknown, not_run, owned=owned)


def decided(
    rule: Mapping[str, Any],
    scores: Scores,
    errors: Mapping[str, int] = {},
    not_run: int = 0,
    *,
    empty_is_zero: bool = False,
    owned: Mapping[str, OwnedScores] = {},
) -> GateOutcome:
    """Apply a checked gate to the scores.

    A condition on an evaluator without scores is not measured, or its value is 0 with `empty_is_zero`. Unknown scores,
    of results with `errors` (by evaluator) and of cells `not_run`, are in no value. The gate is undecided if it is not
    measured, or if scores from 0 to 1, or as far as those of their evaluator go, could change the outcome in their
    place. If the scores are `owned`, values have an interval.
    """
    parts: list[GatePart] = []
    outcome = _holds(rule, scores, parts, empty_is_zero)
    for part, condition in zip(parts, _conditions(rule), strict=True):
        if owned and part.n:
            part.ci95, part.interval_reason = ends_of_condition(condition, owned, partial(_reaches, condition))
    gate = GateOutcome(outcome is True, parts)
    if outcome is None:
        gate.undecided, gate.reason = True, "nothing was measured"
        return gate
    erred, unknown = sum(errors.values()), {name: errors.get(name, 0) + not_run for name in scores}
    if (erred or not_run) and _settled_outcome(rule, scores, unknown, empty_is_zero) is not outcome:
        causes = [f"{counted(erred, 'result')} with an error"] if erred else []
        causes += [f"{counted(not_run, 'cell')} not run"] if not_run else []
        gate.undecided, gate.reason = True, f"it depends on {' and '.join(causes)}"
    return gate


def _settled_outcome(
    rule: Mapping[str, Any], scores: Scores, unknown: Mapping[str, int], empty_is_zero: bool
) -> bool | None:
    """The outcome of a gate if it is the same whatever the unknown scores are; None if it depends on them."""
    if rule["kind"] == "logical":
        return _joined_outcome(
            rule, [_settled_outcome(condition, scores, unknown, empty_is_zero) for condition in rule["conditions"]]
        )
    # a value rises or falls with a score, so it lies between its values for the lowest, the highest and `pass_value`
    passing = float(rule.get("pass_value", 1))
    ends: list[Callable[[Sequence[float]], float]] = [_lowest, _highest, lambda seen: passing]
    filled = [_with(scores, unknown, end) for end in ends]
    values = sorted(value for row in filled if (value := _measured_value(rule, row, empty_is_zero)[1]) is not None)
    if not values:
        return None
    holds, low, high = OPERATORS[rule["op"]], values[0], values[-1]
    outcomes = {holds(low, rule["value"]), holds(high, rule["value"])}
    if rule["op"] == "eq" and low < rule["value"] < high:
        return None
    return outcomes.pop() if len(outcomes) == 1 else None


def _joined_outcome(rule: Mapping[str, Any], held: Sequence[bool | None]) -> bool | None:
    settles = rule["operator"] == "or"  # one condition that holds settles `or`, one that does not settles `and`
    return settles if settles in held else None if None in held else not settles


def _with(scores: Scores, unknown: Mapping[str, int], end: Callable[[Sequence[float]], float]) -> Scores:
    """The scores, and for each unknown one the `end` of those of its evaluator."""
    return {name: [*score, *[end(score)] * unknown.get(name, 0)] for name, score in scores.items()}


def _lowest(seen: Sequence[float]) -> float:
    """The lowest score to be reckoned with: 0, or lower if the evaluator went lower."""
    return min(0.0, min(seen, default=0.0))


def _highest(seen: Sequence[float]) -> float:
    """The highest score to be reckoned with: 1, or higher if the evaluator went higher, as on a scale of 1 to 5."""
    return max(1.0, max(seen, default=1.0))


def plain_sum(values: Iterable[float]) -> float:
    """The sum of floats from left to right, each addition rounded, on every Python: since 3.12 `sum` compensates."""
    return reduce(operator.add, values, 0.0)


def aggregated(scores: Sequence[float], aggregation: str, pass_threshold: float = 1.0) -> float:
    """One number for many scores, 0 for none. `accuracy` is the percentage of scores that reach `pass_threshold`.

    Percentiles interpolate linearly between the closest ranks (rank = p/100 * (n - 1)).
    """
    if not scores:
        return 0.0
    if aggregation == "avg_score":
        total = plain_sum(scores)
        return total / len(scores) if isfinite(total) else exact_mean(scores)
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
    """Whether a gate passes; None if that was not measured."""
    if rule["kind"] == "logical":
        return _joined_outcome(
            rule, [_holds(condition, scores, parts, empty_is_zero) for condition in rule["conditions"]]
        )
    name, value, n = _measured_value(rule, scores, empty_is_zero)
    passed = None if value is None else OPERATORS[rule["op"]](value, rule["value"])
    parts.append(GatePart(name, passed is True, value, rule["op"], rule["value"], n))
    return passed


def _measured_value(rule: Mapping[str, Any], scores: Scores, empty_is_zero: bool) -> tuple[str, float | None, int]:
    """What a condition is about, its value (None if there is none), and the number of scores behind it."""
    value: float | None
    if rule["kind"] == "weighted_average":
        name, value, n = _weighted_metrics(rule, scores)
    else:
        key = rule["metric_key"]
        score = scores.get(key, ())
        name, n = f"{rule['aggregation']}({key})", len(score)
        value = _value(rule, score)
    return name, value if n or empty_is_zero else None, n


def _conditions(rule: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """A gate's conditions that have a value, in the order in which they are evaluated."""
    if rule["kind"] != "logical":
        yield rule
    for condition in rule.get("conditions", ()):
        yield from _conditions(condition)


def _reaches(rule: Mapping[str, Any], score: float) -> bool:
    """Whether a score counts as passed for an accuracy."""
    if rule["kind"] == "legacy":
        return OPERATORS[rule["pass_op"]](score, rule["pass_value"])
    return score >= float(rule.get("pass_threshold", 1.0))


def _value(rule: Mapping[str, Any], scores: Sequence[float]) -> float:
    if rule["aggregation"] == "accuracy":
        return 100.0 * sum(_reaches(rule, score) for score in scores) / len(scores) if scores else 0.0
    return aggregated(scores, rule["aggregation"], rule.get("pass_threshold", 1.0))


def _weighted_metrics(rule: Mapping[str, Any], scores: Scores) -> tuple[str, float, int]:
    """Each metric is aggregated first; weights are shares of their sum."""
    weights: Mapping[str, float] = rule["weights"]
    total = plain_sum(weights.values())
    aggregation, threshold = rule["aggregation"], rule.get("pass_threshold", 1.0)
    value = plain_sum(aggregated(scores.get(k, ()), aggregation, threshold) * (w / total) for k, w in weights.items())
    named = " + ".join(f"{weight / total:.3g} {key}" for key, weight in weights.items())
    return f"{aggregation}({named})", value, min(len(scores.get(key, ())) for key in weights)
