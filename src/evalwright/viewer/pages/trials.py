"""The trials of one case side by side, each with its differences from the first."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from typing import NamedTuple

from evalwright.viewer.pages import NotThere, Page, table_of_cells
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
    """Raises BadQuery, NotThere, StillReading."""
    given = single_values(pairs, ("case", "variant"))
    case = given.get("case", "")
    rows = table_of_cells(run).of_case(case, given.get("variant"))
    if not rows:
        raise NotThere(f"The run {run.id} has no case {case[:200]!r} with this variant.", f"/runs/{run.id}")
    found = same_answers(row for row in rows if row.variant == rows[0].variant)
    texts = [run.records(same[0]).answer[:_LONGEST] for same in found[:_MOST]]
    differences = [changes(texts[0], text) for text in texts]
    return _page(run, found, differences, ROOM // len(texts))


def _page(run: OpenRun, found: list[list[CellRow]], differences: list[list[Change]], room: int) -> Page:
    shown = [ShownTrial(*one) for one in zip(found, (abridged(one, room) for one in differences), strict=False)]
    first = found[0][0]
    context = {
        "run": run,
        "case": first.case_key,
        "variant": first.variant,
        "row": first,
        "trials": shown,
        "left_out": len(found) - len(shown),
    }
    smaller = partial(_page, run, found, differences, room // 2) if room > _LEAST else None
    return Page("trials.html", f"{first.case_key} · trials · evalwright", context, smaller)
