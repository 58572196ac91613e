"""The cells of a run that did not pass, with the newest verdict of each, found in one pass and little memory."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from evalwright.model.protocols import RunReader
from evalwright.model.result import CaseVerdict
from evalwright.model.summary import RunSummary
from evalwright.model.trace import TraceError
from evalwright.scoring.facts import AttemptFacts

__all__ = ["Failures", "error_text", "find_failures", "newest_verdicts"]

_SENTENCES = {
    "adapter_error": ("system raised an exception", "system failed"),
    "evaluator_error": ("evaluator raised an exception", "evaluator failed"),
}
"""Error types whose names mean nothing to a reader: with and without the stack of an exception."""


def error_text(error: TraceError) -> str:
    """What went wrong, as people read it: `KeyError: 'question' in agent.py:12 (system raised an exception)`."""
    if error.type not in _SENTENCES:
        return f"{error.type}: {error.message}"
    raised, failed = _SENTENCES[error.type]
    return f"{error.message} ({raised if error.stack else failed})"


@dataclass(slots=True)
class Failures:
    """The first cells that failed or are borderline, the first without a verdict, and the total of each."""

    failed: list[CaseVerdict] = field(default_factory=list)
    errored: list[CaseVerdict] = field(default_factory=list)
    failed_total: int = 0
    errored_total: int = 0


def find_failures(reader: RunReader, summary: RunSummary, limit: int) -> Failures:
    """At most `limit` cells of each kind. Totals are the summary's: a run without failures reads no records."""
    found = Failures(failed_total=_count(summary, "fail", "borderline"), errored_total=_count(summary, "error"))
    wanted = min(limit, found.failed_total) + min(limit, found.errored_total)
    if not wanted:
        return found
    for verdict in newest_verdicts(reader):
        kind = _list_of(found, verdict.status)
        if kind is not None and len(kind) < limit:
            kind.append(verdict)
            if len(found.failed) + len(found.errored) == wanted:
                break
    return found


def _list_of(found: Failures, status: str) -> list[CaseVerdict] | None:
    if status == "error":
        return found.errored
    return found.failed if status in ("fail", "borderline") else None


def _count(summary: RunSummary, *statuses: str) -> int:
    return sum(variant.cells.get(status, 0) for variant in summary.variants for status in statuses)


def newest_verdicts(reader: RunReader) -> Iterator[CaseVerdict]:
    """The verdict of each finished cell, without those that a later attempt replaced.

    A folder that another program wrote has no verdicts: if `reader.plan` is set, they are derived from its traces and
    results.
    """
    newest: dict[tuple[str, str, int], int] = {}
    stored = False
    for mark in reader.verdicts(AttemptFacts):
        stored = True
        if mark.attempt > 1:
            key = (mark.case_key, mark.variant_name, mark.trial)
            newest[key] = max(mark.attempt, newest.get(key, 1))
    if not stored and reader.plan is not None:
        from evalwright.reports.cells import Choice, chosen_cells

        yield from (cell.verdict for cell in chosen_cells(reader, reader.plan, [], Choice()))
    for verdict in reader.verdicts(CaseVerdict):
        if verdict.attempt >= newest.get((verdict.case_key, verdict.variant_name, verdict.trial), 1):
            yield verdict
