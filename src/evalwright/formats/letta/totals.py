"""The numbers and the gate of a Letta suite.

A row is one sample with one model in one run. Rows whose target, extractor or grader failed have no grades.
In suites with a gate (by the rule of letta-evals 0.9), empty submissions and failures of judges are graded 0; in those
with a reward (by the rule of 0.17 and later), a failed judge spoils the row, and so does a first grader that found
nothing to grade. Sums go over rows ordered by model and sample.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from functools import partial
from math import sqrt
from typing import Any

import msgspec

from evalwright.formats.shared.gates import pass_thresholds
from evalwright.model.facts import ResultLike, TraceLike
from evalwright.model.plan import Plan
from evalwright.model.result import Status
from evalwright.model.summary import GateOutcome, GatePart, RunSummary
from evalwright.scoring.gate import OPERATORS, decided, plain_sum
from evalwright.scoring.gate_intervals import OwnedScores, ends_of_condition

__all__ = ["EMPTY", "REWARD", "LettaTotals", "counted_by", "grades_of"]

REWARD = "reward composer"
"""The evaluator that makes one score from all grades, in suites that have one."""

EMPTY = ("empty_submission", "empty_trajectory", "no_trajectory")
_NOT_ATTEMPTED = ("empty_submission", "no_trajectory")
_JUDGES = ("rubric_template",)
_OURS = ("extraction_error", "not_judged")
_MOST_SHARED = 1000
"""Different grades of a row that are kept to be shared by rows with the same ones, as most are 0 or 1."""


class _Row(msgspec.Struct, gc=False):
    model: str
    sample: int
    grades: dict[str, float] | None
    attempted: bool
    errored: bool
    case: str
    group: str | msgspec.UnsetType

    @property
    def owner(self) -> tuple[str, bool]:
        """The group of the sample, or itself."""
        return (self.case, False) if self.group is msgspec.UNSET else (self.group, True)


class LettaTotals:
    """Rows by run."""

    def __init__(self, plan: Plan) -> None:
        self._keys = [spec.name for spec in plan.evaluators if spec.name != REWARD]
        self._first = self._keys[0] if self._keys else ""
        self._counts = counted_by(plan)
        self._gate = plan.gate
        self._models = [v.name for v in plan.variants if v.config.get("model")]
        self._shared: dict[tuple[tuple[str, float], ...], dict[str, float]] = {}
        self._runs: dict[int, list[_Row]] = {trial: [] for trial in range(plan.run.trials)}

    def add(
        self, trace: TraceLike, results: Collection[ResultLike], status: Status, score: float | None = None
    ) -> None:
        grades = None if trace.error is not None else self._counts(results)
        first = next((getattr(r.error, "type", "") for r in results if r.evaluator == self._first), "")
        attempted = grades is not None and first not in _NOT_ATTEMPTED
        if grades is not None and len(self._shared) < _MOST_SHARED:
            grades = self._shared.setdefault(tuple(grades.items()), grades)
        place = trace.variant_name, trace.case_index or 0
        row = _Row(*place, grades, attempted, status == "error", trace.case_key, trace.group)
        self._runs.setdefault(trace.trial, []).append(row)

    def merge(self, other: Any) -> None:
        for run, rows in other._runs.items():
            self._runs.setdefault(run, []).extend(rows)

    def finish(self, summary: RunSummary) -> None:
        runs = [sorted(rows, key=lambda row: (row.model, row.sample)) for _, rows in sorted(self._runs.items())]
        gates = [self._decided_gate(rows) for rows in runs]
        rewarded = self._gate is not None and self._gate["kind"] == "reward"
        numbers = [
            self._rewards(rows, gate) if rewarded else self._numbers(rows, gate)
            for rows, gate in zip(runs, gates, strict=True)
        ]
        if self._has_no_passing_score():
            summary.scored = True
        summary.gate = self._overall(gates, [row for rows in runs for row in rows])
        if len(runs) == 1:
            summary.native = numbers[0]
        else:
            summary.native = {f"run_{i}": of_run for i, of_run in enumerate(numbers, 1)}
            summary.native["statistics"] = _spread(numbers) if rewarded else _statistics(numbers, self._keys)

    def _has_no_passing_score(self) -> bool:
        """Whether the suite has no score from which a single sample passes."""
        gate = self._gate
        return gate is not None and gate["kind"] != "legacy" and not pass_thresholds(gate)

    def _decided_gate(self, rows: Sequence[_Row]) -> GateOutcome:
        gate = self._gate
        if gate is None:
            return GateOutcome(True, reason=_errors(rows))
        if gate["kind"] == "reward":
            scores = _scores(rows, gate["metric_key"])
            mean = plain_sum(scores) / len(scores) if scores else None
            part = GatePart(f"reward({gate['metric_key']})", True, mean, n=len(scores))
            part.ci95, part.interval_reason = ends_of_condition(
                {**gate, "aggregation": "avg_score"},
                {gate["metric_key"]: _owned_metrics(rows, gate["metric_key"])},
                bool,
            )
            return GateOutcome(True, [part], f"a reward, no gate; {_errors(rows)}", undecided=not scores)
        counted = rows
        if gate["kind"] == "legacy" and gate["aggregation"] == "accuracy":
            counted = [row for row in rows if row.attempted or (row.grades is None and not row.errored)]
        graded = {key: _scores(counted, key) for key in self._keys}
        owned = {key: _owned_metrics(counted, key) for key in self._keys}
        outcome = decided(gate, graded, empty_is_zero=True, owned=owned)
        outcome.undecided = not any(graded.values())
        outcome.reason = _errors(rows)
        return outcome

    def _overall(self, gates: Sequence[GateOutcome], rows: Sequence[_Row]) -> GateOutcome:
        """At least one run must pass; `max_error_rate` bounds the share of rows without a verdict."""
        passed = sum(gate.passed for gate in gates)
        undecided = all(gate.undecided or not gate.passed for gate in gates) and any(gate.undecided for gate in gates)
        outcome = GateOutcome(passed > 0, gates[0].parts, gates[0].reason, undecided=undecided)
        if len(gates) > 1:
            reason = f"{passed} of {len(gates)} runs passed; {_errors(rows)}"
            outcome = GateOutcome(outcome.passed, [], reason, list(gates), undecided)
        limit = (self._gate or {}).get("max_error_rate")
        if limit is not None and _error_rate(rows) > limit:
            outcome.passed = outcome.undecided = False
            outcome.reason += f", more than the {limit:.1%} of --max-error-rate"
        return outcome

    def _numbers(self, rows: Sequence[_Row], gate: GateOutcome) -> dict[str, Any]:
        primary = self._primary()
        numbers: dict[str, Any] = {
            "gates_passed": gate.passed,
            "total": len(rows),
            "total_attempted": sum(row.attempted for row in rows),
            **_averages(rows, primary),
            "by_metric": {key: self._by_metric(rows, key) for key in self._keys},
        }
        numbers["metrics"] = {key: metric["pass_rate"] for key, metric in numbers["by_metric"].items()}
        if self._models:
            numbers["per_model"] = [self._totals_of_model(rows, model) for model in sorted(self._models)]
        if "passed_attempts" in numbers["by_metric"].get(primary, ()):
            numbers |= {name: numbers["by_metric"][primary][name] for name in ("passed_attempts", "failed_attempts")}
        return numbers

    def _by_metric(self, rows: Sequence[_Row], key: str) -> dict[str, float]:
        """With a gate of the older form, the rate of passed attempts; else the mean as a percentage."""
        numbers, gate = _averages(rows, key), self._gate
        if gate is None or gate["kind"] != "legacy":
            return numbers | {"pass_rate": numbers["avg_score_attempted"] * 100}
        reaches = OPERATORS[gate["pass_op"]]
        attempted = [row for row in rows if row.attempted]
        passed = sum(reaches(score, gate["pass_value"]) for score in _scores(attempted, key))
        rate = 100.0 * passed / len(attempted) if attempted else 0.0
        return numbers | {
            "pass_rate": rate,
            "passed_attempts": passed,
            "failed_attempts": len(attempted) - passed,
        }

    def _rewards(self, rows: Sequence[_Row], gate: GateOutcome) -> dict[str, Any]:
        """One score per sample instead of a gate; the mean is over attempted rows."""
        key = (self._gate or {})["metric_key"]
        return {
            "reward": gate.parts[0].value or 0.0,
            "reward_per_case": {row.case: row.grades.get(key) if row.grades else None for row in rows},
            "per_metric": {key: _averages(rows, key)["avg_score_attempted"] for key in self._keys},
            "n_total": len(rows),
            "n_attempted": sum(row.attempted for row in rows),
        }

    def _primary(self) -> str:
        """The grader whose averages are shown: the first one or, with a gate of the older form, the gate's."""
        gate = self._gate
        return str(gate["metric_key"]) if gate is not None and gate["kind"] == "legacy" else self._first

    def _totals_of_model(self, rows: Sequence[_Row], model: str) -> dict[str, Any]:
        own_rows = [row for row in rows if row.model == model]
        attempted = [row for row in own_rows if row.attempted]
        rates = {key: self._by_metric(attempted, key)["pass_rate"] for key in self._keys}
        return {
            "model_name": model,
            "total": len(own_rows),
            "total_attempted": len(attempted),
            **_averages(own_rows, self._primary()),
            "metrics": rates,
        }


def counted_by(plan: Plan) -> Callable[[Collection[ResultLike]], dict[str, float] | None]:
    """The rule by which the scores of a row count."""
    if plan.gate is not None and plan.gate["kind"] == "reward":
        return partial(grades_of, first=next((spec.name for spec in plan.evaluators), ""))
    judges = {spec.name for spec in plan.evaluators if spec.type in _JUDGES}
    return partial(grades_of, judges=judges)


def grades_of(
    results: Collection[ResultLike], judges: Collection[str] = (), first: str = ""
) -> dict[str, float] | None:
    """The scores of a row that count, by grader; None if a grader or an extractor spoilt it.

    A failure of one of the `judges` is a score of 0, and so is an empty text unless the `first` grader found it.
    """
    grades = {}
    for row in results:
        if row.error is None:
            grades[row.evaluator] = float(row.passed) if row.score is None else row.score
            continue
        kind = getattr(row.error, "type", "")
        empty = kind in EMPTY and row.evaluator != first
        if not empty and (row.evaluator not in judges or kind in _OURS):
            return None
        grades[row.evaluator] = 0.0
    return grades


def _errors(rows: Sequence[_Row]) -> str:
    return f"{sum(row.errored for row in rows)} of {len(rows)} rows had errors ({_error_rate(rows):.1%})"


def _error_rate(rows: Sequence[_Row]) -> float:
    return sum(row.errored for row in rows) / len(rows) if rows else 0.0


def _scores(rows: Sequence[_Row], key: str) -> list[float]:
    return [row.grades[key] for row in rows if row.grades is not None and key in row.grades]


def _owned_metrics(rows: Sequence[_Row], key: str) -> OwnedScores:
    return OwnedScores(_scores(rows, key), [row.owner for row in rows if row.grades is not None and key in row.grades])


def _averages(rows: Sequence[_Row], key: str) -> dict[str, float]:
    """Means over graded rows and over all rows."""
    scores = _scores(rows, key)
    total = plain_sum(scores)
    return {
        "avg_score_attempted": total / len(scores) if scores else 0.0,
        "avg_score_total": total / len(rows) if rows else 0.0,
    }


def _statistics(runs: Sequence[dict[str, Any]], keys: Sequence[str]) -> dict[str, Any]:
    """Means and sample standard deviations (n - 1; 0 for one run) over the runs of a suite."""
    numbers: dict[str, Any] = {"num_runs": len(runs), "runs_passed": sum(run["gates_passed"] for run in runs)}
    for name in ("avg_score_attempted", "avg_score_total"):
        numbers[f"mean_{name}"], numbers[f"std_{name}"] = _mean_and_spread([run[name] for run in runs])
    spreads = {key: _mean_and_spread([run["by_metric"][key]["avg_score_attempted"] for run in runs]) for key in keys}
    numbers["mean_scores"] = {key: mean for key, (mean, _) in spreads.items()}
    numbers["std_scores"] = {key: spread for key, (_, spread) in spreads.items()}
    return numbers


def _spread(runs: Sequence[dict[str, Any]]) -> dict[str, Any]:
    mean, spread = _mean_and_spread([run["reward"] for run in runs])
    return {"num_runs": len(runs), "mean_reward": mean, "std_reward": spread}


def _mean_and_spread(values: Sequence[float]) -> tuple[float, float]:
    mean = sum(values) / len(values)
    if len(values) < 2:
        return mean, 0.0
    return mean, sqrt(sum((value - mean) ** 2 for value in values) / (len(values) - 1))
