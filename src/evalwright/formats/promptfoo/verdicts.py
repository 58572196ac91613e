"""The outcome of a cell by promptfoo's rules: the weighted mean of its assertions, and all of them or a threshold."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from evalwright.formats.promptfoo.kinds import COMPARISONS
from evalwright.model.plan import PassCriteria
from evalwright.model.result import CaseVerdict, EvaluationResult, Status
from evalwright.model.snapshot import Case
from evalwright.model.trace import Trace
from evalwright.scoring.verdict import verdict_on

__all__ = ["is_blocked", "named_scores", "verdict", "weighted"]

_SCORING = "assertScoringFunction"


def weighted(scores: Iterable[tuple[float | None, float]]) -> float:
    """The weighted mean of scores; 0 if they have no weight."""
    total = weight = 0.0
    for score, share in scores:
        total += (score or 0.0) * share
        weight += share
    return total / weight if weight > 0 else 0.0


def verdict(criteria: PassCriteria, case: Case, trace: Trace, results: Sequence[EvaluationResult]) -> CaseVerdict:
    """The verdict of a cell. A test without assertions passes with 1; one with an error has no score."""
    if trace.extra.get("promptfoo", {}).get("left_out"):
        return _skipped_verdict(trace)
    rows = [row for row in results if row.evaluator != _SCORING and row.evaluator_type not in COMPARISONS]
    beaten = any(row.evaluator_type in COMPARISONS and not row.passed for row in results)
    own = next((row for row in results if row.evaluator == _SCORING), None)
    missing = {spec.name for spec in case.evaluators or ()} - {row.evaluator for row in results}
    errored = trace.error is not None or missing or any(row.error is not None for row in results)
    named = _named_scores(rows)
    score = weighted((row.score, _weight(row.detail)) for row in rows) if rows else 1.0
    status: Status = "error" if errored else _status(case, rows, score)
    if own is not None and not errored:
        score, status = own.score or 0.0, "pass" if own.passed else "fail"
        named = _replaced_scores(named, own.detail.get("named_scores"))
    if beaten and not errored:
        score, status = 0.0, "fail"
    reasons = [] if status == "pass" else _reasons(trace, results, missing)
    if status == "fail" and not reasons:
        reasons = [f"the score {score:.4g} is below the test's threshold {_threshold(case):g}"]
    cell_verdict = verdict_on(trace, status, None if errored else score, reasons)
    if named and not errored:
        cell_verdict.named_scores = {name: scores.mean for name, scores in named.items()}
    passed, failed = _passed_and_failed(
        row.passed for row in _all_rows(row for row in results if row.evaluator != _SCORING)
    )
    if not errored:
        cell_verdict.extra = {"asserts": [passed, failed]}
        if named:
            cell_verdict.extra["sums"] = {name: scores.total for name, scores in named.items()}
            cell_verdict.extra["behind"] = {name: [scores.weight, scores.n or 1] for name, scores in named.items()}
    return cell_verdict


def _skipped_verdict(trace: Trace) -> CaseVerdict:
    """The verdict of a test that is not meant for this column."""
    return CaseVerdict(
        trace.case_id,
        trace.variant_name,
        "skip",
        trace.run_id,
        trace.trial,
        trace.attempt,
        None,
        ["the test is not for this prompt or provider, or is repeated less often"],
        occurrence=trace.occurrence,
    )


def _status(case: Case, rows: Sequence[EvaluationResult], score: float) -> Status:
    if is_blocked(row.detail for row in rows):
        return "pass"
    threshold = _threshold(case)
    if threshold is None:
        return "pass" if all(row.passed for row in rows) else "fail"
    return "pass" if score >= threshold else "fail"


def _threshold(case: Case) -> float | None:
    """The score that a test must reach; None if all its assertions have to pass."""
    threshold: float | None = case.extra.get("promptfoo", {}).get("threshold")
    return threshold


def is_blocked(details: Iterable[Mapping[str, Any]]) -> bool:
    """Whether a guardrail did what a red team asks of it: then all else passes, too."""
    return any(detail.get("blocked") for detail in details)


def named_scores(rows: Iterable[EvaluationResult]) -> dict[str, float]:
    """The named scores of a cell: weighted means."""
    return {name: score.mean for name, score in _named_scores(rows).items()}


@dataclass(slots=True)
class _Scores:
    """The scores of one name: their weighted sum, their weight, and how many are of assertions with this metric."""

    total: float = 0.0
    weight: float = 0.0
    n: int = 0

    @property
    def mean(self) -> float:
        return self.total / self.weight if self.weight > 0 else 0.0


def _named_scores(rows: Iterable[Any]) -> dict[str, _Scores]:
    """By name; what the members of a set give counts with the weight of the set, and a row's `metric` is its own
    score."""
    scores: dict[str, _Scores] = {}
    for row in rows:
        own_scores = {name: _Scores(value, 1.0) for name, value in row.detail.get("named_scores", {}).items()}
        own_scores |= _named_scores(map(_Member, row.detail.get("children", ())))
        if metric := row.detail.get("metric"):
            # promptfoo does not count a set, but any members with the same metric
            n = own_scores.get(metric, _Scores()).n if "children" in row.detail else 1
            own_scores[metric] = _Scores(row.score or 0.0, 1.0, n)
        for name, own in own_scores.items():
            score = scores.setdefault(name, _Scores())
            score.total += own.total * _weight(row.detail)
            score.weight += own.weight * _weight(row.detail)
            score.n += own.n
    return scores


def _replaced_scores(named: dict[str, _Scores], scores: Mapping[str, float] | None) -> dict[str, _Scores]:
    """The scores that a scoring function gives in place of the others, with the weights that these had."""
    if scores is None:
        return named
    old = {name: named.get(name, _Scores(0.0, 1.0)) for name in scores}
    return {name: _Scores(score * old[name].weight, old[name].weight, old[name].n) for name, score in scores.items()}


class _Member:
    """A row within the row of a set, or a part of a check's result."""

    def __init__(self, row: Mapping[str, Any]) -> None:
        self.passed: bool = bool(row.get("passed"))
        self.score: float | None = row.get("score")
        self.detail: dict[str, Any] = row.get("detail") or {}


def _all_rows(rows: Iterable[Any]) -> Iterator[Any]:
    """Every row, including those within others."""
    for row in rows:
        yield row
        yield from _all_rows(map(_Member, row.detail.get("children", ())))
        yield from map(_Member, row.detail.get("components", ()))


def _weight(detail: Mapping[str, Any]) -> float:
    weight: float = detail.get("weight", 1)
    return weight


def _passed_and_failed(passed: Iterable[bool]) -> tuple[int, int]:
    outcomes = list(passed)
    return sum(outcomes), len(outcomes) - sum(outcomes)


def _reasons(trace: Trace, results: Sequence[EvaluationResult], missing: Iterable[str]) -> list[str]:
    if trace.error is not None:
        return [f"{trace.error.type}: {trace.error.message}"]
    lines = []
    for row in results:
        if row.error is not None:
            lines.append(f"{row.evaluator}: {row.error.type}: {row.error.message}")
        elif not row.passed:
            lines.append(f"{row.evaluator}: {row.reason}" if row.reason else row.evaluator)
    return [*lines, *(f"{name}: no result" for name in sorted(missing))]
