"""The newest record of each cell, with what was said about it."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager

from evalwright.model.protocols import RunReader
from evalwright.scoring.facts import CellKey, ResultFacts, TraceFacts

__all__ = ["newest_cells"]


def newest_cells(reader: RunReader) -> Iterator[tuple[TraceFacts, list[ResultFacts]]]:
    """The newest trace of each cell with its results, in the order in which cells first appear.

    The highest attempt wins, among equal ones the last in the file; of an evaluator's rows on it, the last.
    """
    with _collector_paused():
        traces = _newest_traces(reader)
        rows = _rows_of(reader, traces)
    for key, trace in traces.items():
        yield trace, list(rows.get(key, {}).values())


def _newest_traces(reader: RunReader) -> dict[CellKey, TraceFacts]:
    traces: dict[CellKey, TraceFacts] = {}
    for trace in reader.traces(TraceFacts):
        key = (trace.case_id, trace.variant_name, trace.trial)
        known = traces.get(key)
        if known is None or trace.attempt >= known.attempt:
            traces[key] = trace
    return traces


def _rows_of(reader: RunReader, traces: dict[CellKey, TraceFacts]) -> dict[CellKey, dict[str, ResultFacts]]:
    rows: dict[CellKey, dict[str, ResultFacts]] = {}
    for row in reader.results(ResultFacts):
        key = (row.case_id, row.variant_name, row.trial)
        newest = traces.get(key)
        if newest is not None and row.attempt == newest.attempt:
            mine = rows.get(key)
            if mine is None:
                mine = rows[key] = {}
            mine[row.evaluator] = row
    return rows


@contextmanager
def _collector_paused() -> Iterator[None]:
    """Loading many records makes no garbage, but each of the collector's rounds would look at all of them."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()
