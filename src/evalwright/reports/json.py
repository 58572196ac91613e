"""A run as one JSON object, for programs."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from evalwright.model.protocols import RunReader
from evalwright.model.result import CaseVerdict, EvaluationResult
from evalwright.model.summary import RunSummary
from evalwright.model.trace import Trace
from evalwright.reports.failures import newest_verdicts
from evalwright.reports.order import order_of

__all__ = ["JsonReport"]

_Key = tuple[str, str, int, int]


class JsonReport:
    """One JSON object: `summary` as in summary.yaml, and `cells` in the order of the dataset.

    A cell is the newest verdict of a finished cell, with its `trace` and its `results` as they are stored.
    """

    def render(self, reader: RunReader, summary: RunSummary) -> str:
        place = order_of(variant.name for variant in summary.variants)
        verdicts = sorted(newest_verdicts(reader), key=place)
        document = {"summary": summary, "cells": list(_cells(reader, verdicts))}
        return msgspec.json.format(msgspec.json.encode(document), indent=2).decode() + "\n"


def _cells(reader: RunReader, verdicts: list[CaseVerdict]) -> Iterator[dict[str, object]]:
    wanted = {_key(verdict) for verdict in verdicts}
    # encoded at once: structs of a large run take several times the memory
    traces = {key: _raw(trace) for trace in reader.traces(Trace) if (key := _key(trace)) in wanted}
    results: dict[_Key, dict[str, msgspec.Raw]] = {}
    for row in reader.results(EvaluationResult):
        if (key := _key(row)) in wanted:
            results.setdefault(key, {})[row.evaluator] = _raw(row)
    for verdict in verdicts:
        key = _key(verdict)
        cell: dict[str, object] = msgspec.to_builtins(verdict)
        yield {**cell, "trace": traces.get(key), "results": list(results.get(key, {}).values())}


def _raw(record: Trace | EvaluationResult) -> msgspec.Raw:
    return msgspec.Raw(msgspec.json.encode(record))


def _key(record: CaseVerdict | Trace | EvaluationResult) -> _Key:
    return record.case_key, record.variant_name, record.trial, record.attempt
