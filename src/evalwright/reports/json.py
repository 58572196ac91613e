"""A run as one JSON object, for programs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import msgspec

from evalwright.model.cell import AttemptKey, attempt_key
from evalwright.model.cell_index import CellIndex
from evalwright.model.protocols import RunReader
from evalwright.model.result import CaseVerdict, EvaluationResult
from evalwright.model.summary import RunSummary
from evalwright.model.trace import Trace
from evalwright.reports.failures import indexed_or_scanned, newest_verdicts
from evalwright.reports.order import order_of

__all__ = ["JsonReport"]

_BEFORE, _AFTER = len("[\n  [\n"), len("\n  ]\n]")


class JsonReport:
    """One JSON object: `summary` as in summary.yaml, and `cells` in the order of the dataset.

    A cell is the newest verdict of a finished cell, with its `trace` and its `results` as they are stored.
    """

    def render(self, reader: RunReader, summary: RunSummary) -> str:
        return "".join(self.pieces(reader, summary))

    def pieces(self, reader: RunReader, summary: RunSummary) -> Iterator[str]:
        """The same text in pieces, one per cell: for an indexed run no more than that is held in memory."""
        whole = msgspec.json.format(msgspec.json.encode({"summary": summary, "cells": []}), indent=2).decode()
        yield whole.removesuffix("]\n}")
        between = "\n"
        for cell in _cells(reader, summary):
            # Within two lists, so that it is indented as far as it has to be.
            yield between + msgspec.json.format(b"[[" + cell + b"]]", indent=2)[_BEFORE:-_AFTER].decode()
            between = ",\n"
        yield "]\n}\n" if between == "\n" else "\n  ]\n}\n"


def _cells(reader: RunReader, summary: RunSummary) -> Iterator[bytes]:

    def scanned() -> Iterator[bytes]:
        return _scanned_cells(reader, sorted(newest_verdicts(reader), key=order_of(summary.variants)))

    return indexed_or_scanned(reader, _looked_up, scanned)


def _looked_up(index: CellIndex) -> Iterator[bytes]:
    for entry in index.cells():
        trace, results, verdict = index.records(entry)
        if verdict is not None:
            yield _cell(verdict, trace, results)


def _scanned_cells(reader: RunReader, verdicts: list[CaseVerdict]) -> Iterator[bytes]:
    wanted = {attempt_key(verdict) for verdict in verdicts}
    # encoded at once: structs of a large run take several times the memory
    traces = {key: _raw(trace) for trace in reader.traces(Trace) if (key := attempt_key(trace)) in wanted}
    results: dict[AttemptKey, dict[str, msgspec.Raw]] = {}
    for row in reader.results(EvaluationResult):
        if (key := attempt_key(row)) in wanted:
            results.setdefault(key, {})[row.evaluator] = _raw(row)
    for verdict in verdicts:
        key = attempt_key(verdict)
        yield _cell(verdict, traces.get(key), list(results.get(key, {}).values()))


def _cell(verdict: CaseVerdict, trace: Trace | msgspec.Raw | None, results: Sequence[object]) -> bytes:
    """The verdict's object with two more keys."""
    encode = msgspec.json.encode
    return b'%b,"trace":%b,"results":%b}' % (encode(verdict).removesuffix(b"}"), encode(trace), encode(results))


def _raw(record: Trace | EvaluationResult) -> msgspec.Raw:
    return msgspec.Raw(msgspec.json.encode(record))
