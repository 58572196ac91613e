"""What is stored of single cells, as plain data."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterator
from typing import Any, NamedTuple

import msgspec

from evalwright.errors import EvalwrightError
from evalwright.model.cell import OfCase
from evalwright.model.protocols import RunReader
from evalwright.model.trace import Trace

__all__ = ["NO_RECORDS", "CellId", "StoredCell", "stored_case", "stored_cells"]

CellId = tuple[str, str, int]
"""Case, variant and trial."""


class StoredCell(NamedTuple):
    """The newest trace of a cell, its results, its verdict, and the traces of earlier attempts."""

    case: dict[str, Any] | None
    trace: dict[str, Any]
    results: list[dict[str, Any]]
    verdict: dict[str, Any] | None
    earlier: list[dict[str, Any]]


NO_RECORDS = StoredCell(None, {}, [], None, [])


class _Ids(OfCase, msgspec.Struct, gc=False):
    case_id: str
    variant_name: str
    trial: int = 0


_ids = msgspec.json.Decoder(_Ids)


def stored_cells(reader: RunReader, wanted: Collection[CellId]) -> dict[CellId, StoredCell]:
    """The records of some cells, by a look at every record; their cases are not among them."""
    traces = {cell: list(filter(_is_trace, found)) for cell, found in _of_cells(reader.traces, wanted).items()}
    results, verdicts = (_of_cells(kind, wanted) for kind in (reader.results, reader.verdicts))
    found = {}
    for cell in {cell for cell, mine in traces.items() if mine} | verdicts.keys():
        mine = traces.get(cell, [])
        newest = max(range(len(mine)), key=lambda i: (_attempt(mine[i]), i)) if mine else None
        trace = {} if newest is None else mine.pop(newest)
        attempt = _attempt(trace or verdicts[cell][-1])
        rows = {row["evaluator"]: row for row in results.get(cell, ()) if _attempt(row) == attempt}
        verdict = [one for one in verdicts.get(cell, ()) if _attempt(one) == attempt]
        found[cell] = StoredCell(None, trace, list(rows.values()), verdict[-1] if verdict else None, mine)
    return found


def stored_case(reader: RunReader, position: int) -> dict[str, Any] | None:
    """The case at a position of the dataset; None where it cannot be read."""
    try:
        case = reader.case(position)
    except (IndexError, EvalwrightError):
        return None
    plain: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(case))  # also what is kept as raw JSON
    return plain


def _attempt(record: dict[str, Any]) -> int:
    number: int = record.get("attempt", 1)
    return number


def _is_trace(record: dict[str, Any]) -> bool:
    """Whether a record that is JSON can be read as a trace; the notes on what cannot be read name those that cannot."""
    try:
        msgspec.convert(record, Trace)
    except msgspec.ValidationError:
        return False
    return True


def _of_cells(
    records: Callable[[Any], Iterator[Any]], wanted: Collection[CellId]
) -> dict[CellId, list[dict[str, Any]]]:
    """The records of cells as they are stored. Ids are read of every record, the rest of those few alone."""
    found: dict[CellId, list[dict[str, Any]]] = defaultdict(list)
    for raw in records(msgspec.Raw):
        line = bytes(raw)
        try:
            ids = _ids.decode(line)
        except msgspec.ValidationError:
            continue
        if (cell := (ids.case_key, ids.variant_name, ids.trial)) in wanted:
            found[cell].append(msgspec.json.decode(line))
    return found
