"""Summaries of stored runs."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

from evalwright.model.summary import RunSummary
from evalwright.run.locations import Place
from evalwright.run.outcomes import folded_summary
from evalwright.run.stored_run import open_run

__all__ = ["stored_summary"]


def stored_summary(run: Path | Place) -> RunSummary:
    """The summary of a run, rebuilt if there is none or only another program's. Raises InputError."""
    reader, plan = open_run(run)
    with closing(reader):
        stored = reader.summary() if reader.plan is not None else None
        return stored or folded_summary(reader, plan)
