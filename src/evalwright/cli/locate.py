"""Summaries of stored runs."""

from __future__ import annotations

from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path

from evalwright.model.plan import Plan
from evalwright.model.protocols import RunReader
from evalwright.model.summary import RunSummary
from evalwright.run.calibration import mark_judges
from evalwright.run.locations import Place
from evalwright.run.outcomes import summed_up
from evalwright.run.stored_run import open_run
from evalwright.scoring.fold import fold

__all__ = ["folded_summary", "stored_summary"]


def stored_summary(run: Path | Place) -> RunSummary:
    """The summary of a run; rebuilt where there is none, or only another program's. Raises InputError."""
    reader, plan = open_run(run)
    with closing(reader):
        stored = reader.summary() if reader.plan is not None else None
        return stored or folded_summary(reader, plan)


def folded_summary(reader: RunReader, plan: Plan) -> RunSummary:
    """The summary as the records of a run say it now."""
    stored = reader.summary()
    finished = stored.finished_at if stored else datetime.now(UTC)
    summary = summed_up(fold(reader, plan), reader, plan, finished)
    mark_judges(reader, plan, summary)
    return summary
