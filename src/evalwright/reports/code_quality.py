"""A run as a code quality report of GitLab: a list of the cells that did not pass."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

import msgspec

from evalwright.model.cell import cell_key
from evalwright.model.protocols import RunReader
from evalwright.model.result import CaseVerdict
from evalwright.model.summary import RunSummary
from evalwright.reports.context import CaseLine, ReportContext
from evalwright.reports.failures import error_text, newest_verdicts
from evalwright.reports.order import order_of
from evalwright.reports.text import one_line

__all__ = ["CodeQuality"]

_SEVERITIES = {"fail": "major", "borderline": "minor", "error": "critical"}
_LONGEST = 500
_ALONE = ReportContext()


class CodeQuality:
    """JSON with an entry for each cell that failed or has no verdict, in the order of the dataset.

    GitLab requires a file and a line: if the data file does not give them, they are the suite and 1.
    """

    reads: ClassVar[frozenset[str]] = frozenset({"places"})

    def render(self, reader: RunReader, summary: RunSummary, context: ReportContext = _ALONE) -> str:
        place = order_of(variant.name for variant in summary.variants)
        bad = sorted((one for one in newest_verdicts(reader) if one.status in _SEVERITIES), key=place)
        suite = CaseLine(summary.config_path or summary.run_id, 1)
        entries = list(_entries(bad, suite, context))
        return msgspec.json.format(msgspec.json.encode(entries), indent=2).decode() + "\n"


def _entries(verdicts: list[CaseVerdict], suite: CaseLine, context: ReportContext) -> Iterator[dict[str, object]]:
    for verdict in verdicts:
        where = context.places.get(verdict.case_key, suite)
        why = error_text(verdict.error) if verdict.error is not None else "; ".join(verdict.reasons) or verdict.status
        name = f"{one_line(verdict.case_key, 80)} · {one_line(verdict.variant_name, 40)}"
        yield {
            "description": f"{name}: {one_line(why, _LONGEST)}",
            "check_name": "evalwright",
            "fingerprint": cell_key(verdict.case_key, verdict.variant_name, verdict.trial),
            "severity": _SEVERITIES[verdict.status],
            "location": {"path": where.file, "lines": {"begin": where.line}},
        }
