"""The trials of one case side by side, each with its differences from the first."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from typing import NamedTuple

from evalwright.viewer.pages import Page, PageNotFound, table_of_cells
from evalwright.viewer.pages.blocks import ROOM
from evalwright.viewer.pages.cell import same_answers
from evalwright.viewer.query import single_values
from evalwright.viewer.shelf import OpenRun
from evalwright.viewer.table import CellRow
from evalwright.viewer.worddiff import Change, abridged, changes

__all__ = ["trials_page"]

_MOST = 50
"""Different answers on the page."""
_LONGEST = 200_000
_LEAST = 100


class ShownTrial(NamedTuple):
    """Trials with one answer."""

    rows: list[CellRow]
    difference: list[Change]


def trials_page(run: OpenRun, pairs: Iterable[tuple[str, str]]) -> Page:
    """Raises BadQuery, PageNotFound, StillReading."""
    values = single_values(pairs, ("case", "variant"))
    case = values.get("case", "")
    rows = table_of_cells(run).of_case(case, values.get("variant"))
    if not rows:
        raise PageNotFound(f"The run {run.id} has no case {case[:200]!r} with this variant.", f"/runs/{run.id}")
    answers = same_answers(row for row in rows if row.variant == rows[0].variant)
    texts = [run.records(same[0]).answer[:_LONGEST] for same in answers[:_MOST]]
    differences = [changes(texts[0], text) for text in texts]
    return _page(run, answers, differences, ROOM // len(texts))


def _page(run: OpenRun, trials: list[list[CellRow]], differences: list[list[Change]], room: int) -> Page:
    shown = [
        ShownTrial(*trial_and_changes)
        for trial_and_changes in zip(trials, (abridged(difference, room) for difference in differences), strict=False)
    ]
    first = trials[0][0]
    context = {
        "run": run,
        "case": first.case_key,
        "variant": first.variant,
        "row": first,
        "trials": shown,
        "left_out": len(trials) - len(shown),
    }
    smaller = partial(_page, run, trials, differences, room // 2) if room > _LEAST else None
    return Page("trials.html", f"{first.case_key} · trials · evalwright", context, smaller)
