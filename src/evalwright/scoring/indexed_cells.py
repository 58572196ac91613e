"""The cells of an indexed run, in the form that counting reads, and their count without looking at each."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from msgspec import UNSET

from evalwright.model.cell_index import CellCount, CellEntry, CellIndex, CellOutcome
from evalwright.model.facts import ErrorFacts, MetricFacts, ResultFacts, TraceFacts
from evalwright.model.plan import Plan
from evalwright.scoring.tally import Tally
from evalwright.scoring.verdict import cell_status

__all__ = ["count_of_index", "facts_of", "facts_of_count", "indexed_cells"]


def indexed_cells(index: CellIndex) -> Iterator[tuple[TraceFacts, Sequence[ResultFacts]]]:
    """Every cell in the order of the traces; results lack what only their records contain: the misses."""
    return map(facts_of, index.cells(order="stored"))


def facts_of(entry: CellEntry) -> tuple[TraceFacts, Sequence[ResultFacts]]:
    """One cell in the form that counting reads."""
    return _trace(entry), [_result(entry, outcome) for outcome in entry.outcomes]


def _trace(entry: CellEntry) -> TraceFacts:
    return TraceFacts(
        case_id=entry.case_id,
        occurrence=entry.occurrence,
        variant_name=entry.variant,
        latency_ms=entry.latency_ms,
        trial=entry.trial,
        attempt=entry.attempt,
        case_index=entry.case_index,
        error=None if entry.error is None else ErrorFacts(entry.error),
        metrics=MetricFacts(entry.tokens_in, entry.tokens_out, entry.cost_usd),
        group=UNSET if entry.group is None else entry.group,
        finished_at=entry.finished_at,
    )


def _result(entry: CellEntry, outcome: CellOutcome) -> ResultFacts:
    return ResultFacts(
        case_id=entry.case_id,
        occurrence=entry.occurrence,
        variant_name=entry.variant,
        evaluator=outcome.evaluator,
        passed=outcome.passed,
        trial=entry.trial,
        attempt=entry.attempt,
        skipped=outcome.skipped,
        score=outcome.score,
        error=ErrorFacts() if outcome.status == "error" else None,
        cost_usd=outcome.cost_usd,
    )


def count_of_index(index: CellIndex, tally: Tally, plan: Plan, needed: Sequence[str]) -> bool:
    """Count all cells by what they have in common. Returns False, with nothing counted, if each must be looked at."""
    sums, counts = index.sums(), index.counts()
    unfinished = any(needed and not count.outcomes and count.error is None for count in counts)
    if not tally.counts_only or sums.grouped or sums.measured or unfinished or not counts:
        return False
    for count in counts:
        trace, rows = facts_of_count(count)
        status = cell_status(plan.pass_criteria, needed, count.error is not None, rows)
        tally.count_alike(trace, rows, status, count.n)
    tally.count_sums(plan.variants[0].name, sums)
    return True


def facts_of_count(count: CellCount) -> tuple[TraceFacts, Sequence[ResultFacts]]:
    """What all cells of a count have in common, in the form of one of them."""
    error = None if count.error is None else ErrorFacts(count.error)
    trace = TraceFacts(case_id="", variant_name=count.variant, error=error)
    return trace, [_shared_result(count.variant, outcome) for outcome in count.outcomes]


def _shared_result(variant: str, outcome: CellOutcome) -> ResultFacts:
    return ResultFacts(
        case_id="",
        variant_name=variant,
        evaluator=outcome.evaluator,
        passed=outcome.passed,
        skipped=outcome.skipped,
        score=outcome.score,
        error=ErrorFacts() if outcome.status == "error" else None,
    )
