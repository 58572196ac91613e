"""Verdicts by the weighted mean of scores in three bands, the rule of AgentEvals 1.0."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from evalwright.model.plan import EvaluatorSpec, PassCriteria
from evalwright.model.result import PASSING, CaseVerdict, EvaluationResult, Status, band
from evalwright.model.score_rule import reaches
from evalwright.model.snapshot import Case
from evalwright.model.trace import Trace
from evalwright.scoring.verdict import verdict_on

__all__ = ["THRESHOLD", "banded_verdict", "case_threshold"]

THRESHOLD = "pass_threshold"
"""The key of `extra` with the threshold of a case, which takes precedence over the suite's."""


def case_threshold(case: Case, criteria: PassCriteria) -> float | None:
    """The mean from which a cell of the case passes; None if the bands decide."""
    own = case.extra.get(THRESHOLD)
    return own if isinstance(own, float) else criteria.threshold


def banded_verdict(
    specs: Sequence[EvaluatorSpec],
    trace: Trace,
    results: Sequence[EvaluationResult],
    threshold: float | None = None,
) -> CaseVerdict:
    """The verdict of a cell. An evaluator with an error counts as 0 in the score, and makes the cell an error.

    A gated result (`detail.gated`) makes the cell fail; one below its `required` score makes it fail with score 0. With
    a `threshold`, a mean that reaches it passes, and there is no borderline.
    """
    named = {spec.name: spec for spec in specs}
    weights = [named[row.evaluator].weight if row.evaluator in named else 1.0 for row in results]
    scores = [0.0 if row.error is not None else row.score or 0.0 for row in results]
    total = sum(weights)
    mean = sum(score * weight for score, weight in zip(scores, weights, strict=True)) / total if total else 0.0
    missed = {
        row.evaluator: named[row.evaluator].gate_missed(score)
        for row, score in zip(results, scores, strict=True)
        if row.evaluator in named
    }
    gates = {name: gate for name, gate in missed.items() if gate}
    status = _status(trace, results, mean, gates, threshold)
    score = 0.0 if gates or trace.error is not None else mean
    if status == "pass":
        return verdict_on(trace, status, score, [])
    needed = PASSING if threshold is None else threshold
    reasons = _reasons(trace, results, gates) or [f"score {mean:g} ({needed:g} needed)"]
    return verdict_on(trace, status, score, reasons)


def _status(
    trace: Trace,
    results: Sequence[EvaluationResult],
    mean: float,
    gates: Mapping[str, str],
    threshold: float | None,
) -> Status:
    if trace.error is not None or any(row.error is not None for row in results):
        return "error"
    if gates or any(row.detail.get("gated") for row in results):
        return "fail"
    if threshold is None:
        return band(mean)
    return "pass" if reaches(mean, threshold) else "fail"


def _reasons(trace: Trace, results: Sequence[EvaluationResult], gates: Mapping[str, str]) -> list[str]:
    """Why it did not pass. Evaluators below a required score decided this, and are named first."""
    if trace.error is not None:
        return [f"{trace.error.type}: {trace.error.message}"]
    lines = []
    for row in sorted(results, key=lambda row: row.evaluator not in gates):
        gate = gates.get(row.evaluator, "")
        if row.error is not None:
            lines.append(f"{row.evaluator}: {row.error.type}: {row.error.message}")
        elif not row.passed or gate or row.detail.get("gated"):
            missed = (miss for miss in row.misses if miss not in row.reason)
            needed = "" if gate in row.reason else gate  # results of earlier versions do not name it themselves
            message = "; ".join(filter(None, [needed, row.reason, *missed]))
            lines.append(f"{row.evaluator}: {message}" if message else row.evaluator)
    return lines
