"""The trials of one case side by side, each with its differences from the first."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

from evalwright.viewer.pages import NotThere, Page
from evalwright.viewer.query import single_values
from evalwright.viewer.shelf import OpenRun
from evalwright.viewer.table import CellRow
from evalwright.viewer.worddiff import Change, changes

__all__ = ["trials_page"]

_MOST = 50
_LONGEST = 200_000


class ShownTrial(NamedTuple):
    """Trials with one answer."""

    rows: list[CellRow]
    difference: list[Change]


def trials_page(run: OpenRun, pairs: Iterable[tuple[str, str]]) -> Page:
    """Raises BadQuery, NotThere."""
    given = single_values(pairs, ("case", "variant"))
    table = run.table
    case = given.get("case", "")
    rows = [] if table is None else table.of_case(case, given.get("variant"))
    if not rows:
        raise NotThere(f"The run {run.id} has no case {case[:200]!r} with this variant.", f"/runs/{run.id}")
    rows = [row for row in rows if row.variant == rows[0].variant]
    answers: dict[tuple[str | None, str], list[CellRow]] = {}
    for row in rows[:_MOST]:
        output: dict[str, Any] = run.records(row).trace.get("output") or {}
        answers.setdefault((row.status, str(output.get("final_answer") or "")[:_LONGEST]), []).append(row)
    first = next(iter(answers))[1]
    shown = [ShownTrial(same, changes(first, answer)) for (_, answer), same in answers.items()]
    context = {"run": run, "case": rows[0].case_key, "variant": rows[0].variant, "trials": shown, "row": rows[0]}
    return Page("trials.html", f"{rows[0].case_key} · trials · evalwright", context)
