"""The cells that changed between two runs, with what was answered before and after."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import msgspec

from evalwright.decisions.comparison import RunComparison
from evalwright.model.cell import OfCase
from evalwright.model.protocols import RunReader
from evalwright.reports.context import Before

__all__ = ["ChangedCell", "changed_cells"]

_Cell = tuple[str, str]


class ChangedCell(NamedTuple):
    """One case on one variant; answers are those of its first trial, None where there is none."""

    case_key: str
    variant: str
    worse: bool
    before: str | None
    after: str | None


class _Output(msgspec.Struct, gc=False):
    final_answer: str | None = None


class _Answer(OfCase, gc=False):
    variant_name: str
    trial: int = 0
    attempt: int = 1
    output: _Output = msgspec.field(default_factory=_Output)


def changed_cells(reader: RunReader, before: Before, limit: int) -> tuple[list[ChangedCell], int]:
    """The first `limit` changed cases, those that got worse first, and the number of all of them."""
    found = [*_changed(before.comparison, worse=True), *_changed(before.comparison, worse=False)]
    shown = found[:limit]
    wanted = {(case, variant) for case, variant, _ in shown}
    old, new = _answers(before.reader, wanted), _answers(reader, wanted)
    cells = [
        ChangedCell(case, variant, worse, old.get((case, variant)), new.get((case, variant)))
        for case, variant, worse in shown
    ]
    return cells, len(found)


def _changed(comparison: RunComparison, *, worse: bool) -> Iterable[tuple[str, str, bool]]:
    for one in comparison.variants:
        for case in one.delta.regressions if worse else one.delta.improvements:
            yield case, one.variant, worse


def _answers(reader: RunReader, wanted: set[_Cell]) -> dict[_Cell, str | None]:
    """Of the newest attempt at the first trial."""
    newest: dict[_Cell, _Answer] = {}
    for row in reader.traces(_Answer) if wanted else ():
        key = row.case_key, row.variant_name
        if key in wanted and row.trial == 0 and ((old := newest.get(key)) is None or row.attempt >= old.attempt):
            newest[key] = row
    return {key: row.output.final_answer for key, row in newest.items()}
