"""Imports exported spans as a suite that replays them: one case per trace.

The spans of a trace may be anywhere in a file, so they are collected in a temporary database, never in memory.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import closing
from itertools import groupby
from pathlib import Path
from typing import Any

import msgspec

from evalwright.errors import InputError, Problem, StorageError
from evalwright.importers.imported_cases import ANSWERED, ImportResult, check_free, write_cases, write_suite
from evalwright.importers.span_files import WireSpan, read_spans
from evalwright.importers.span_traces import trace_of_spans
from evalwright.model.trace import Trace

__all__ = ["OpenInference", "OtlpJson", "import_spans"]

_SHOWN = 5
"""Losses that are listed one by one."""


class OtlpJson:
    """The import format `otlp-json`: documents with `resourceSpans`, as a collector's file exporter writes them."""

    @staticmethod
    def import_file(source: Path, out: Path, mapping: Mapping[str, str] | None = None) -> ImportResult:
        return import_spans(source, out, mapping, plain=False)


class OpenInference:
    """The import format `openinference`: also plain spans, as SDKs print them and Phoenix exports them."""

    @staticmethod
    def import_file(source: Path, out: Path, mapping: Mapping[str, str] | None = None) -> ImportResult:
        return import_spans(source, out, mapping, plain=True)


def import_spans(source: Path, out: Path, mapping: Mapping[str, str] | None, plain: bool) -> ImportResult:
    """Write the suite of a file of spans into folder `out`; parts of the file that could not be used are in the notes.

    Raises InputError if the file cannot be read or has no spans at all; then nothing is written.
    """
    if mapping:
        raise InputError("spans need no mapping: it is not supported for this format")
    check_free(out)
    losses = _Losses()
    with closing(_Gathered()) as gathered:
        for span in read_spans(source, plain, losses.add):
            gathered.add(span)
        if not gathered.traces:
            raise InputError(losses.problems(source) or [Problem(str(source), "contains no spans")])
        written = _Cases(source, losses)
        write_cases(out, written.lines(gathered))
    description = f"{written.cases} recorded traces, replayed and judged"
    files = write_suite(out, source, description, [ANSWERED])
    return ImportResult(written.cases, 1, written.cases, files, written.notes())


class _Losses:
    """The parts of a file that could not be used: their number, and the first of them."""

    def __init__(self) -> None:
        self._number = 0
        self._first: list[tuple[str, str]] = []

    def add(self, place: str, why: str) -> None:
        self._number += 1
        if self._number <= _SHOWN:
            self._first.append((place, why))

    def problems(self, source: Path) -> list[Problem]:
        return [Problem(str(source), f"{place}: {why}") for place, why in self._first]

    def notes(self) -> list[str]:
        more = self._number - len(self._first)
        listed = [f"lost: {place}: {why}" for place, why in self._first]
        return [*listed, f"lost: {more} more places of the file"] if more else listed


class _Gathered:
    """The spans of a file by their traces, traces in the order in which the file first names them."""

    def __init__(self) -> None:
        self.traces = 0
        self._encode, self._decode = msgspec.msgpack.Encoder().encode, msgspec.msgpack.Decoder(WireSpan).decode
        self._base = sqlite3.connect("")  # a file of SQLite's own, gone with the connection
        self._base.execute("PRAGMA synchronous = OFF")
        self._base.execute("CREATE TABLE traces (id TEXT PRIMARY KEY, number INTEGER)")
        self._base.execute("CREATE TABLE spans (trace INTEGER, record BLOB)")

    def add(self, span: WireSpan) -> None:
        """Store a span. Raises StorageError if there is no space."""
        try:
            row = self._base.execute("SELECT number FROM traces WHERE id = ?", (span.trace_id,)).fetchone()
            if row is None:
                row = (self.traces,)
                self._base.execute("INSERT INTO traces VALUES (?, ?)", (span.trace_id, self.traces))
                self.traces += 1
            self._base.execute("INSERT INTO spans VALUES (?, ?)", (row[0], self._encode(span)))
        except sqlite3.Error as error:
            raise StorageError(f"cannot store spans in the temporary folder: {error}") from error

    def __iter__(self) -> Iterator[list[WireSpan]]:
        rows = self._base.execute("SELECT trace, record FROM spans ORDER BY trace, rowid")
        for _, group in groupby(rows, key=lambda row: row[0]):
            yield [self._decode(record) for _, record in group]

    def close(self) -> None:
        self._base.close()


class _Cases:
    """The cases of a file, and what its user should know about them."""

    def __init__(self, source: Path, losses: _Losses) -> None:
        self.cases = 0
        self._source = source
        self._losses = losses
        self._counts = {"err": 0, "silent": 0, "unrecorded": 0, "warned": 0}

    def lines(self, gathered: _Gathered) -> Iterator[bytes]:
        encoder = msgspec.json.Encoder()
        for records in gathered:
            if not any(record.name is not None for record in records):
                self._losses.add(f"trace {records[0].trace_id}", "has events, but none of its spans is in the file")
                continue
            trace, about = trace_of_spans(records, self._source.name)
            self._note(trace)
            yield encoder.encode(_case(trace, about)) + b"\n"
        if not self.cases:
            raise InputError(self._losses.problems(self._source))

    def _note(self, trace: Trace) -> None:
        self.cases += 1
        self._counts["err"] += trace.error is not None
        unrecorded = "answer_unrecorded" in trace.extra
        self._counts["unrecorded"] += unrecorded
        self._counts["silent"] += not (trace.error or trace.output.final_answer or unrecorded)
        self._counts["warned"] += "warnings" in trace.extra

    def notes(self) -> list[str]:
        says = {
            "err": "traces failed or are broken: their cases are errors",
            "silent": "traces have no answer: their cases fail",
            "unrecorded": "traces were exported without the answer: their cases are skipped",
            "warned": "traces have warnings, see extra.warnings",
        }
        counted = [f"{self._counts[name]} of {self.cases} {what}" for name, what in says.items() if self._counts[name]]
        return [*self._losses.notes(), *counted]


def _case(trace: Trace, about: dict[str, Any]) -> dict[str, Any]:
    return {
        "schema_version": "1.0",
        "id": trace.case_id,
        "input": trace.input,
        "expected": {"facts": {}},
        "metadata": about,
        "embedded_trace": trace,
    }
