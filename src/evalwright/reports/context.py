"""What a report may know besides the run itself: an earlier run, where its cases are written, where it is published."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import quote

from evalwright.model.cell import OfCase, cell_key
from evalwright.model.protocols import RunReader
from evalwright.model.summary import RunSummary

if TYPE_CHECKING:
    from evalwright.decisions.comparison import RunComparison

__all__ = ["ALONE", "CaseLine", "EarlierRun", "ReportContext"]


class EarlierRun(NamedTuple):
    """The earlier run, and how this one compares with it."""

    reader: RunReader
    comparison: RunComparison


class CaseLine(NamedTuple):
    """Where a case is written; the path is relative to its repository."""

    file: str
    line: int


@dataclass(frozen=True, slots=True)
class ReportContext:
    """What a report may use besides the run; every part may be missing."""

    before: EarlierRun | None = None
    link: str = ""
    """The address of the published bundle, without a slash at its end."""
    limit: int = 60_000
    """Characters of a Markdown report: GitHub takes 65,536 as a comment."""
    places: Mapping[str, CaseLine] = field(default_factory=dict)
    """By case."""
    suite: str = ""
    """The suite's file, relative to its repository; empty: as the run names it."""

    def suite_line(self, summary: RunSummary) -> CaseLine:
        """Where services show what is at no line of a data file."""
        return CaseLine(self.suite or summary.config_path or summary.run_id, 1)

    def address(self, run_id: str, cell: OfCase, variant: str, trial: int) -> str:
        """The page of a cell; empty without a link."""
        if not self.link:
            return ""
        return f"{self.link}/runs/{quote(run_id, safe='')}/cells/{cell_key(cell.case_key, variant, trial)}.html"


ALONE = ReportContext()
"""For a report of the run alone."""
