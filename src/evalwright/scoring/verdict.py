"""The verdict of one cell: from the error of its trace and its results, or as it was stored."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from evalwright.model.cell import Attempt, AttemptKey, OfCase, attempt_key
from evalwright.model.facts import ReasonedResult, ResultLike
from evalwright.model.plan import PassCriteria, Plan
from evalwright.model.protocols import RunReader
from evalwright.model.result import CaseVerdict, Status
from evalwright.model.trace import Trace
from evalwright.registry import format_of_run
from evalwright.statistics.sums import exact_mean

__all__ = [
    "cell_status",
    "cell_verdict",
    "failure_reason",
    "names_needed",
    "passes_over_errored",
    "status_by_results",
    "stored_statuses",
    "verdict_on",
]


class _Stored(OfCase, gc=False):
    variant_name: str
    status: Status
    trial: int = 0
    attempt: Attempt = 1


def stored_statuses(reader: RunReader) -> dict[AttemptKey, Status]:
    """The statuses of the stored verdicts."""
    return {attempt_key(verdict): verdict.status for verdict in reader.verdicts(_Stored)}


def names_needed(reader: RunReader, plan: Plan) -> list[str]:
    """The evaluators whose results a cell needs: all of the plan's, so that a damaged line never makes a pass.

    Empty for a folder that evalh itself wrote, which judges a cell by the results that are there.
    """
    return [spec.name for spec in plan.evaluators] if reader.plan is not None else []


def passes_over_errored(plan: Plan) -> bool:
    """Whether no evaluator is called on a trace whose system raised an error: there is no answer to be judged."""
    judging = format_of_run(plan).judging
    return judging.on_errored_trace == "skip" and plan.pass_criteria.errored_cases == "error"


def status_by_results(plan: Plan, needed: Sequence[str], errored: bool, rows: Collection[ResultLike]) -> Status | None:
    """The status of a cell by its results; None if they do not decide it, or are not there yet."""
    if plan.needs_verdicts or (needed and not rows and not errored):
        return None
    return cell_status(plan.pass_criteria, needed, errored, rows)


def cell_status(criteria: PassCriteria, names: Sequence[str], errored: bool, results: Collection[ResultLike]) -> Status:
    """`error` for a cell whose system errored, unless the criteria let its evaluators decide; else pass, fail or skip.

    `results` has at most one row of each evaluator. One that errored, or is missing, makes the cell an error, unless
    the criteria count it as failed. Without criteria, every evaluator in `names` must pass; skipped ones do not count.
    A cell is skipped if all its evaluators were.
    """
    if errored and (criteria.errored_cases != "evaluate" or not results):
        return "error"
    if not (criteria.all_required or criteria.any_required) and (status := _status_of_all(names, results)) is not None:
        return "error" if errored and status == "skip" else status
    passed: set[str] = set()
    skipped: set[str] = set()
    failed: set[str] = set()
    for row in results:
        if row.error is None:
            (skipped if row.skipped else passed if row.passed else failed).add(row.evaluator)
    judged = passed | skipped | failed
    unjudged = len(judged) < len(results) or not judged.issuperset(names) or not results
    if unjudged and criteria.errored_evaluators == "error":
        return "error"
    if criteria.all_required or criteria.any_required:
        status = _by_criteria(set(criteria.all_required), set(criteria.any_required), passed, skipped)
    elif failed or unjudged:
        status = "fail"
    else:
        status = "pass" if passed else "skip" if skipped else "fail"
    # Nothing judged the broken system: as a skip, it would hide among the cells that ask for nothing.
    return "error" if errored and status == "skip" else status


def _status_of_all(names: Sequence[str], results: Collection[ResultLike]) -> Status | None:
    """The status by a result of each evaluator, in their order, as nearly all cells have them; None for others."""
    if not results or len(results) != len(names):
        return None
    status: Status = "skip"
    for name, row in zip(names, results, strict=True):
        if row.error is not None or row.evaluator != name:
            return None
        if not row.skipped:
            if not row.passed:
                status = "fail"
            elif status == "skip":
                status = "pass"
    return status


def _by_criteria(required: set[str], some: set[str], passed: set[str], skipped: set[str]) -> Status:
    """Skipped evaluators are removed from both lists; one of `some` must pass unless all were skipped."""
    if required | some <= skipped:
        return "skip"
    enough = not some - skipped or not some.isdisjoint(passed)
    return "pass" if enough and required - skipped <= passed else "fail"


def cell_verdict(
    criteria: PassCriteria, names: Sequence[str], trace: Trace, results: Sequence[ReasonedResult]
) -> CaseVerdict:
    """The verdict record of a cell. Its score is the mean of the scores of its results.

    A cell with an error has no score, even if some of its evaluators gave one.
    """
    status = cell_status(criteria, names, trace.error is not None, results)
    scores = [row.score for row in results if row.score is not None and row.error is None]
    score = exact_mean(scores) if scores and status != "error" else None
    return verdict_on(trace, status, score, [] if status == "pass" else _reasons(trace, names, results))


def verdict_on(trace: Trace, status: Status, score: float | None, reasons: list[str]) -> CaseVerdict:
    """The verdict on the cell of a trace."""
    return CaseVerdict(
        trace.case_id,
        trace.variant_name,
        status,
        trace.run_id,
        trace.trial,
        trace.attempt,
        score,
        reasons,
        trace.error,
        occurrence=trace.occurrence,
    )


def _reasons(trace: Trace, names: Sequence[str], results: Sequence[ReasonedResult]) -> list[str]:
    """One line for the error of the system and for each evaluator that did not pass."""
    lines = [f"{trace.error.type}: {trace.error.message}"] if trace.error is not None else []
    lines += [line for row in results if (line := failure_reason(row)) is not None]
    known = {row.evaluator for row in results}
    lines += [f"{name}: no result" for name in names if name not in known]
    return lines or ["nothing judged this cell" if not results else "every check was skipped"]


def failure_reason(row: ReasonedResult) -> str | None:
    """Why a result keeps its cell from passing; None if it does not."""
    if row.error is not None:
        return f"{row.evaluator}: {row.error.type}: {row.error.message}"
    if row.passed or row.skipped:
        return None
    why = row.reason or ("" if row.score is None else f"score {row.score:g}")
    named = why.startswith(f"{row.evaluator}: ")  # scorers of other packages begin with their name
    return why if named else f"{row.evaluator}: {why}" if why else row.evaluator
