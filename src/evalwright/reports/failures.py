"""The cells of a run that did not pass, with the newest verdict of each, found in one pass and little memory."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from evalwright.model.protocols import RunReader
from evalwright.model.result import CaseVerdict
from evalwright.model.summary import RunSummary
from evalwright.model.trace import TraceError
from evalwright.reports.order import First, order_of
from evalwright.scoring.facts import AttemptFacts

__all__ = ["Failures", "error_text", "failures_title", "find_failures", "newest_verdicts"]

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
    scored: bool = False
    """Whether the suite has scores only: a score below 1 is then no failure."""

    @property
    def title(self) -> str:
        return failures_title(self.scored)


def failures_title(scored: bool) -> str:
    """What the cells are called that did not pass; in a suite that has scores only, none failed."""
    return "Scores below 1" if scored else "Failures"


def find_failures(reader: RunReader, summary: RunSummary, limit: int) -> Failures:
    """The first `limit` cells of each kind, in the order of the dataset.

    Totals are the summary's: a run without failures reads no records.
    """
    found = Failures(
        failed_total=_count(summary, "fail", "borderline"),
        errored_total=_count(summary, "error"),
        scored=summary.scored is True,
    )
    if not found.failed_total + found.errored_total:
        return found
    place = order_of(variant.name for variant in summary.variants)
    failed: First[CaseVerdict] = First(limit, place)
    errored: First[CaseVerdict] = First(limit, place)
    lists = {"fail": failed, "borderline": failed, "error": errored}
    for verdict in newest_verdicts(reader):
        if (kind := lists.get(verdict.status)) is not None:
            kind.add(verdict)
    found.failed, found.errored = failed.sorted(), errored.sorted()
    return found


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
