"""A run as external issues of SonarQube: the cells that did not pass, at the lines of their cases."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import ClassVar, NamedTuple

from evalwright.model.protocols import RunReader
from evalwright.model.result import CaseVerdict, Status
from evalwright.model.summary import RunSummary
from evalwright.reports.code_quality import json_items, problem_in
from evalwright.reports.context import ALONE, CaseLine, ReportContext
from evalwright.reports.failures import ordered_verdicts

__all__ = ["Sonar"]

_ENGINE = "evalwright"


class _Rule(NamedTuple):
    name: str
    description: str
    severity: str
    impact: str


_RULES: dict[Status, _Rule] = {
    "fail": _Rule("Case failed", "An answer to the case does not pass.", "MAJOR", "MEDIUM"),
    "borderline": _Rule("Case is borderline", "The score of an answer is between passing and failing.", "MINOR", "LOW"),
    "error": _Rule("Case has no verdict", "An answer is missing, or could not be judged.", "CRITICAL", "HIGH"),
}


class Sonar:
    """JSON in SonarQube's generic issue format: an issue for each cell that failed or has no verdict.

    SonarQube requires a file and a line: if the data file does not give them, they are the suite and 1.
    """

    reads: ClassVar[frozenset[str]] = frozenset({"places"})

    def render(self, reader: RunReader, summary: RunSummary, context: ReportContext = ALONE) -> str:
        return "".join(self.pieces(reader, summary, context))

    def pieces(self, reader: RunReader, summary: RunSummary, context: ReportContext = ALONE) -> Iterator[str]:
        """The same text in pieces, one per issue."""
        suite = CaseLine(summary.config_path or summary.run_id, 1)
        yield '{\n  "rules": '
        yield from json_items(map(_rule, _RULES.items()), "  ")
        yield ',\n  "issues": '
        verdicts = ordered_verdicts(reader, summary, (*summary.failing, "error"))
        yield from json_items(_issues(verdicts, suite, context), "  ")
        yield "\n}\n"


def _rule(status_and_rule: tuple[Status, _Rule]) -> dict[str, object]:
    """A rule, in the terms of SonarQube before 10.3 and since."""
    status, rule = status_and_rule
    return {
        "id": status,
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
        place = {"message": problem_in(verdict), "filePath": where.file, "textRange": {"startLine": where.line}}
        yield {"ruleId": verdict.status, "primaryLocation": place}
