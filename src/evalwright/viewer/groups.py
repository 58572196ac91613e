"""The cells of a run in groups with one thing in common, as the table of a run shows them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from evalwright.model.result import JUDGED
from evalwright.viewer.filters import Filter
from evalwright.viewer.table import CellRow, CellTable

__all__ = ["CellGroup", "cell_groups"]

_ROWS = 20
_MOST_GROUPS = 50


class CellGroup(NamedTuple):
    """Cells with one thing in common: how many, how many of those with a verdict passed, and the first of them."""

    name: str
    cells: int
    passed: int
    judged: int
    filter: Filter
    rows: list[CellRow]


def cell_groups(table: CellTable, chosen: Filter) -> list[CellGroup]:
    """The chosen cells by what `chosen.group` names, each group with its first rows."""
    return [_group(table, name, inner) for name, inner in _filters(table, chosen)]


def _group(table: CellTable, name: str, chosen: Filter) -> CellGroup:
    counts = table.statuses(chosen)
    judged = sum(counts.get(status, 0) for status in JUDGED)
    return CellGroup(name, sum(counts.values()), counts.get("pass", 0), judged, chosen, table.rows(chosen, _ROWS))


def _filters(table: CellTable, chosen: Filter) -> Iterator[tuple[str, Filter]]:
    """The name of each group, and the filter that chooses its cells."""
    plain = replace(chosen, group="none", after=0)
    where, values = table.where(plain)
    if chosen.group == "evaluator":
        yield from ((name, replace(plain, evaluator=name)) for name in _failing(table, where, values))
        return
    if chosen.group == "reason":
        for reason in table.reasons(plain, _MOST_GROUPS)[0]:
            yield reason.text, replace(plain, reason=(reason.key,))
        return
    sql = {
        "status": f"SELECT status FROM cells{where} GROUP BY status ORDER BY count(*) DESC",
        "variant": f"SELECT variant FROM cells{where} GROUP BY variant ORDER BY min(number)",
        "case": f"SELECT case_key FROM cells{where} GROUP BY position ORDER BY position",
        "tag": (
            f"SELECT tag FROM tags WHERE position IN (SELECT position FROM cells{where}) "
            "GROUP BY tag ORDER BY count(*) DESC, tag"
        ),
    }[chosen.group]
    for (name,) in table.fetch_all(f"{sql} LIMIT {_MOST_GROUPS}", values):
        if chosen.group == "case":
            yield name, replace(plain, case=(name,))
        elif name is not None:
            changes: dict[str, Any] = {chosen.group: (name,)}
            yield name, replace(plain, **changes)


def _failing(table: CellTable, where: str, values: Sequence[Any]) -> list[str]:
    """The evaluators that failed any of these cells, those that failed most first."""
    among = f"{where} AND cells.number = outcomes.number" if where else ""
    within = f" AND EXISTS (SELECT 1 FROM cells{among})" if where else ""
    sql = f"SELECT count(*) FROM outcomes WHERE evaluator = ? AND outcome IN ('fail', 'error'){within}"
    counts = {name: table.fetch_value(sql, [name, *values]) for name in table.values("evaluator")}
    return sorted((name for name in counts if counts[name]), key=lambda name: -counts[name])[:_MOST_GROUPS]
