"""The decision about one cell, from its trace's error and its results (specification evalh, d.5)."""

from __future__ import annotations

from collections.abc import Sequence

from evalwright.model.plan import PassCriteria, Plan
from evalwright.model.protocols import RunReader
from evalwright.model.result import CaseVerdict, EvaluationResult, Status, status_of
from evalwright.model.trace import Trace
from evalwright.scoring.facts import ResultFacts, TraceFacts

__all__ = ["cell_status", "cell_verdict", "names_needed"]

_Results = Sequence[EvaluationResult] | Sequence[ResultFacts]


def names_needed(reader: RunReader, plan: Plan) -> list[str]:
    """The evaluators that a cell needs a result of: all of the plan, so that a damaged line never makes a pass.

    None in a folder that upstream evalh wrote: it judges a cell by the results that are there (d.5).
    """
    return [spec.name for spec in plan.evaluators] if reader.plan is not None else []


def cell_status(criteria: PassCriteria, names: Sequence[str], errored: bool, results: _Results) -> Status:
    """`error` for a cell whose target errored, unless the criteria let its evaluators decide; else pass, fail or skip.

    Without criteria every evaluator of the plan must pass; a missing or errored one counts as failed, a skipped one
    does not count. A cell in which every evaluator was skipped is skipped.
    """
    if errored and criteria.errored_cases == "error":
        return "error"
    statuses = {row.evaluator: status_of(row.passed, row.skipped, row.error) for row in results}
    if not statuses:
        return "error" if errored else "fail"
    if all(status == "skip" for status in statuses.values()):
        return "skip"
    passed = {name for name, status in statuses.items() if status in ("pass", "skip")}
    if not criteria.all_required and not criteria.any_required:
        return "pass" if passed.issuperset(statuses) and passed.issuperset(names) else "fail"
    some = not criteria.any_required or not passed.isdisjoint(criteria.any_required)
    return "pass" if passed.issuperset(criteria.all_required) and some else "fail"


def cell_verdict(
    criteria: PassCriteria, names: Sequence[str], trace: Trace | TraceFacts, results: _Results
) -> CaseVerdict:
    """The verdict record of a cell; its score is the mean of the scores that its results have."""
    error = trace.error if isinstance(trace, Trace) else None
    status = cell_status(criteria, names, trace.error is not None, results)
    scores = [row.score for row in results if row.score is not None]
    return CaseVerdict(
        trace.case_id,
        trace.variant_name,
        status,
        trace.run_id if isinstance(trace, Trace) else "",
        trace.trial,
        trace.attempt,
        sum(scores) / len(scores) if scores else None,
        [] if status == "pass" else _reasons(trace, results),
        error,
    )


def _reasons(trace: Trace | TraceFacts, results: _Results) -> list[str]:
    """One line for what went wrong with the target and with each evaluator."""
    lines = [f"{trace.error.type}: {trace.error.message}"] if trace.error is not None else []
    for row in results:
        if row.error is not None:
            lines.append(f"{row.evaluator}: {row.error.type}: {row.error.message}")
        elif not row.passed and not row.skipped:
            lines.append(f"{row.evaluator}: {row.reason}" if row.reason else row.evaluator)
    return lines
