"""What a report may know beside the run itself: an earlier run, where its cases are written, where it is published."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple
from urllib.parse import quote

from evalwright.decisions.comparison import RunComparison
from evalwright.model.cell import OfCase
from evalwright.model.protocols import RunReader

__all__ = ["Before", "CaseLine", "ReportContext", "cell_key"]


class Before(NamedTuple):
    """The earlier run, and how this one compares with it."""

    reader: RunReader
    comparison: RunComparison


class CaseLine(NamedTuple):
    """Where a case is written; the path is relative to its repository."""

    file: str
    line: int


@dataclass(frozen=True, slots=True)
class ReportContext:
    """Empty for a report of the run alone."""

    before: Before | None = None
    link: str = ""
    """The address of the published bundle, without a slash at its end."""
    limit: int = 60_000
    """Characters of a Markdown report: GitHub takes 65,536 as a comment."""
    places: Mapping[str, CaseLine] = field(default_factory=dict)
    """By case."""

    def address(self, run_id: str, cell: OfCase, variant: str, trial: int) -> str:
        """The page of a cell; empty without a link."""
        if not self.link:
            return ""
        return f"{self.link}/runs/{quote(run_id, safe='')}/cells/{cell_key(cell.case_key, variant, trial)}.html"


def cell_key(case_key: str, variant: str, trial: int) -> str:
    """The name of a cell in addresses: the first 16 hex digits of SHA-256 of the JSON array of the three."""
    text = json.dumps([case_key, variant, trial], ensure_ascii=False, separators=(",", ":"))
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]
