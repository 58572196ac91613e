"""A run as external issues of SonarQube: what did not pass, cells at the lines of their cases, and warnings."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import chain
from typing import ClassVar, NamedTuple

from evalwright.model.protocols import RunReader
from evalwright.model.result import CaseVerdict
from evalwright.model.summary import RunSummary
from evalwright.reports.code_quality import LONGEST, json_items, problem_in
from evalwright.reports.context import ALONE, CaseLine, ReportContext
from evalwright.reports.failures import ordered_verdicts
from evalwright.reports.gates import run_failures
from evalwright.reports.text import one_line

__all__ = ["Sonar"]

_ENGINE = "evalwright"


class _Rule(NamedTuple):
    name: str
    description: str
    severity: str
    impact: str


_WARNING = "warning"
_RULES: dict[str, _Rule] = {
    "fail": _Rule("Case failed", "An answer to the case does not pass.", "MAJOR", "MEDIUM"),
    "borderline": _Rule("Case is borderline", "The score of an answer is between passing and failing.", "MINOR", "LOW"),
    "error": _Rule("Case has no verdict", "An answer is missing, or could not be judged.", "CRITICAL", "HIGH"),
    "gate": _Rule("Gate not passed", "The run does not pass its gate, or it is unknown.", "CRITICAL", "HIGH"),
    "cells": _Rule("Cells not run", "The run ended before its last cell.", "CRITICAL", "HIGH"),
    _WARNING: _Rule("Warning", "Something in the suite is not read, or decides nothing.", "INFO", "LOW"),
}


class Sonar:
    """JSON in SonarQube's generic issue format: an issue for a gate that did not pass, for each warning, and for each
    cell that failed or has no verdict.

    SonarQube requires a file and a line: if the data file does not give them, they are the suite and 1.
    """

    reads: ClassVar[frozenset[str]] = frozenset({"places"})

    def render(self, reader: RunReader, summary: RunSummary, context: ReportContext = ALONE) -> str:
        return "".join(self.pieces(reader, summary, context))

    def pieces(self, reader: RunReader, summary: RunSummary, context: ReportContext = ALONE) -> Iterator[str]:
        """The same text in pieces, one per issue."""
        suite = context.suite_line(summary)
        yield '{\n  "rules": '
        yield from json_items(map(_rule, _RULES.items()), "  ")
        yield ',\n  "issues": '
        of_run = (_issue(failure.subject, failure.text, suite) for failure in run_failures(reader, summary, LONGEST))
        warnings = (_issue(_WARNING, one_line(text, LONGEST), suite) for text in summary.warnings)
        verdicts = ordered_verdicts(reader, summary, (*summary.failing, "error"))
        yield from json_items(chain(of_run, warnings, _issues(verdicts, suite, context)), "  ")
        yield "\n}\n"


def _rule(name_and_rule: tuple[str, _Rule]) -> dict[str, object]:
    """A rule, in the terms of SonarQube before 10.3 and since."""
    name, rule = name_and_rule
    return {
        "id": name,
        "name": rule.name,
        "description": rule.description,
        "engineId": _ENGINE,
        "cleanCodeAttribute": "LOGICAL",
        "type": "BUG",
        "severity": rule.severity,
        "impacts": [{"softwareQuality": "RELIABILITY", "severity": rule.impact}],
    }


def _issues(verdicts: Iterable[CaseVerdict], suite: CaseLine, context: ReportContext) -> Iterator[dict[str, object]]:
    for verdict in verdicts:
        where = context.places.get(verdict.case_key, suite)
        yield _issue(verdict.status, problem_in(verdict), where)


def _issue(rule: str, message: str, where: CaseLine) -> dict[str, object]:
    place = {"message": message, "filePath": where.file, "textRange": {"startLine": where.line}}
    return {"ruleId": rule, "primaryLocation": place}
