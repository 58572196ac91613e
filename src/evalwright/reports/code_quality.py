"""A run as a code quality report of GitLab: a list of what did not pass, gate or cell, and of the run's warnings."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from itertools import chain
from typing import ClassVar

import msgspec

from evalwright.model.cell import cell_key
from evalwright.model.protocols import RunReader
from evalwright.model.result import CaseVerdict, Status
from evalwright.model.summary import RunSummary
from evalwright.reports.context import ALONE, CaseLine, ReportContext
from evalwright.reports.failures import ordered_verdicts
from evalwright.reports.gates import RunFailure, run_failures
from evalwright.reports.terminal import cell_name
from evalwright.reports.text import one_line
from evalwright.scoring.reasons import error_text

__all__ = ["LONGEST", "CodeQuality", "json_items", "problem_in"]

_SEVERITIES: dict[Status, str] = {"fail": "major", "borderline": "minor", "error": "critical"}
LONGEST = 500
"""Characters of a description, which others show in a list."""


class CodeQuality:
    """JSON with an entry for a gate that did not pass, each warning, and each cell that failed or has no verdict.

    Cells are in the dataset's order. GitLab requires a file and a line: if the data file does not give them, they are
    the suite and 1.
    """

    reads: ClassVar[frozenset[str]] = frozenset({"places"})

    def render(self, reader: RunReader, summary: RunSummary, context: ReportContext = ALONE) -> str:
        return "".join(self.pieces(reader, summary, context))

    def pieces(self, reader: RunReader, summary: RunSummary, context: ReportContext = ALONE) -> Iterator[str]:
        """The same text in pieces, one per entry."""
        suite = context.suite_line(summary)
        cells = _entries(ordered_verdicts(reader, summary, (*summary.failing, "error")), suite, context)
        of_run = _of_run(run_failures(reader, summary, LONGEST), suite)
        yield from json_items(chain(of_run, _of_warnings(summary.warnings, suite), cells))
        yield "\n"


def json_items(entries: Iterable[dict[str, object]], margin: str = "") -> Iterator[str]:
    """A JSON list in pieces, one per entry, without the line end behind it."""
    between = "["
    for entry in entries:
        text = msgspec.json.format(msgspec.json.encode(entry), indent=2).decode()
        # JSON strings contain no line ends, so each one belongs to the layout.
        yield f"{between}\n{margin}  " + text.replace("\n", f"\n{margin}  ")
        between = ","
    yield "[]" if between == "[" else f"\n{margin}]"


def problem_in(verdict: CaseVerdict) -> str:
    """Why a cell did not pass, in one line that names it."""
    why = error_text(verdict.error) if verdict.error is not None else "; ".join(verdict.reasons) or verdict.status
    name = cell_name(verdict.case_key, verdict.variant_name, verdict.trial)
    return f"{name}: {one_line(why, LONGEST)}"


def _of_run(failures: Iterable[RunFailure], suite: CaseLine) -> Iterator[dict[str, object]]:
    for failure in failures:
        fingerprint = _fingerprint(suite, failure.subject)
        yield _entry(f"{failure.subject}: {failure.text}", fingerprint, _SEVERITIES[failure.status], suite)


def _of_warnings(warnings: Iterable[str], suite: CaseLine) -> Iterator[dict[str, object]]:
    for text in warnings:
        yield _entry(one_line(text, LONGEST), _fingerprint(suite, "warning", text), "info", suite)


def _entries(verdicts: Iterable[CaseVerdict], suite: CaseLine, context: ReportContext) -> Iterator[dict[str, object]]:
    for verdict in verdicts:
        where = context.places.get(verdict.case_key, suite)
        cell = cell_key(verdict.case_key, verdict.variant_name, verdict.trial)
        fingerprint = _fingerprint(suite, cell)
        yield _entry(problem_in(verdict), fingerprint, _SEVERITIES[verdict.status], where)


def _fingerprint(suite: CaseLine, *problem: str) -> str:
    """The same for a problem in the next run, whatever its numbers, but not for one of another suite."""
    text = "\n".join((suite.file, *problem))
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]


def _entry(description: str, fingerprint: str, severity: str, where: CaseLine) -> dict[str, object]:
    return {
        "description": description,
        "check_name": "evalwright",
        "fingerprint": fingerprint,
        "severity": severity,
        "location": {"path": where.file, "lines": {"begin": where.line}},
    }
