"""What reports use besides the run: the earlier run, the places of the cases, the address of the bundle."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from evalwright.cli.pairs import opened_pair
from evalwright.decisions.clusters import explain
from evalwright.decisions.comparison import comparison_of
from evalwright.decisions.terms import Terms
from evalwright.reports.context import EarlierRun, ReportContext
from evalwright.run.locations import Place

__all__ = ["LIMIT", "opened_context"]

LIMIT = ReportContext().limit


@contextmanager
def opened_context(
    run: Path | Place, compare: Path | None, link: str = "", limit: int | None = None
) -> Iterator[ReportContext]:
    """The context of a report on `run`, while the earlier run is open. The places of cases are not searched for yet."""
    link, limit = link.rstrip("/"), LIMIT if limit is None else limit
    if compare is None:
        yield ReportContext(link=link, limit=limit)
        return
    with opened_pair(compare, run, Terms()) as opened:
        runs = opened.runs
        runs.refuse_changed()
        for name in runs.a.keys() & runs.b.keys():
            runs.refuse_strangers(name, name)
        before = EarlierRun(opened.before, comparison_of(runs, str(compare), str(run)))
        explain(opened.before, opened.after, [variant.decision for variant in before.comparison.variants])
        yield ReportContext(before, link, limit)
