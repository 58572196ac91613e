"""Imports exported spans as a suite that replays them: one case per trace.

The spans of a trace may be anywhere in a file, so they are set aside on disk, never in memory.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any, ClassVar, Protocol

import msgspec

from evalwright.errors import InputError, Problem, counted
from evalwright.importers.pricing import ListPricing
from evalwright.importers.record_values import numbers_in_range
from evalwright.importers.span_files import Lose, read_spans
from evalwright.importers.span_sessions import Sessions
from evalwright.importers.span_traces import trace_of_spans
from evalwright.importers.spool import RecordSpool, case_pieces
from evalwright.importers.wire_spans import WireSpan
from evalwright.importers.written_suite import (
    ANSWERED,
    check_free,
    note_of_scores,
    suite_name,
    without_secrets,
    write_cases,
    write_suite,
)
from evalwright.model.import_result import ImportResult
from evalwright.model.trace import Trace

__all__ = ["OpenInference", "OtlpJson", "ReadSpans", "SpanImporter"]

_SHOWN = 5
"""Losses that are listed one by one."""


class ReadSpans(Protocol):
    """The spans of a file, in its order; `lose` is called for what cannot be used."""

    def __call__(self, source: Path, *, lose: Lose) -> Iterator[WireSpan]: ...


class SpanImporter:
    """An import format whose files are read as spans."""

    read: ClassVar[ReadSpans]
    """The spans of a file."""

    @classmethod
    def import_files(
        cls,
        sources: Sequence[Path],
        out: Path,
        mapping: Mapping[str, str] | None = None,
        pricing: ListPricing | None = None,
    ) -> ImportResult:
        """Write the suite for files of spans into folder `out`; parts of them that could not be used are in the notes.

        `pricing` fills in costs that they lack. Raises InputError if a file cannot be read or none has spans; nothing
        is written then.
        """
        return _import_spans(sources, out, mapping, cls.read, pricing)


class OtlpJson(SpanImporter):
    """OpenTelemetry spans in documents with `resourceSpans`, as a collector's file exporter writes them."""

    read: ClassVar[ReadSpans] = staticmethod(partial(read_spans, plain=False))


class OpenInference(SpanImporter):
    """OpenInference spans: like `otlp-json`, and plain ones, as SDKs print them and Phoenix exports them."""

    read: ClassVar[ReadSpans] = staticmethod(partial(read_spans, plain=True))


def _import_spans(
    sources: Sequence[Path],
    out: Path,
    mapping: Mapping[str, str] | None,
    read: ReadSpans,
    pricing: ListPricing | None,
) -> ImportResult:
    if mapping:
        raise InputError("spans need no mapping: it is not supported for this format")
    check_free(out)
    losses, sessions = _Losses(), Sessions()
    encode = msgspec.json.Encoder().encode  # not MessagePack, which lacks integers of more than 64 bits
    with numbers_in_range(sources), closing(RecordSpool()) as spool:
        for file in sources:
            losses.file = file.name if len(sources) > 1 else ""
            for span in read(file, lose=losses.add):
                sessions.add(span)
                spool.add(span.trace_id, encode(span))
        source = sources[0]
        if not spool.keys:
            raise InputError(losses.problems(source) or [Problem(str(source), "contains no spans")])
        losses.file = ""
        written = _Cases(sources, losses, sessions, pricing)
        write_cases(out, without_secrets(written.pieces(spool)))
    description = f"{written.cases} recorded traces, replayed and judged"
    files = write_suite(out, suite_name(sources, out), description, [ANSWERED])
    return ImportResult(
        written.cases, 1, written.cases, files, [*written.notes(), *(pricing.notes() if pricing else ())]
    )


class _Losses:
    """The parts of a file that could not be used: their number, and the first of them."""

    def __init__(self) -> None:
        self._number = 0
        self._first: list[tuple[str, str]] = []
        self.file = ""
        """The name of the file being read, if there are several."""

    def add(self, place: str, why: str) -> None:
        self._number += 1
        if self._number <= _SHOWN:
            self._first.append((f"{self.file}: {place}" if self.file else place, why))

    def problems(self, source: Path) -> list[Problem]:
        return [Problem(str(source), f"{place}: {why}") for place, why in self._first]

    def notes(self) -> list[str]:
        more = self._number - len(self._first)
        listed = [f"lost: {place}: {why}" for place, why in self._first]
        return [*listed, f"lost: {more} more places of the file"] if more else listed


class _Cases:
    """The cases of a file, and what its user should know about them."""

    def __init__(
        self, sources: Sequence[Path], losses: _Losses, sessions: Sessions, pricing: ListPricing | None
    ) -> None:
        self.cases = 0
        self._source = sources[0]
        more = f" and {counted(len(sources) - 1, 'more file')}" if len(sources) > 1 else ""
        self._origin = f"{self._source.name}{more}"
        self._losses, self._sessions, self._pricing = losses, sessions, pricing
        self._scores: dict[str, None] = {}
        self._counts = {"err": 0, "silent": 0, "unrecorded": 0, "warned": 0}

    def pieces(self, spool: RecordSpool) -> Iterator[bytes]:
        """The content of the file of cases, in pieces of whole JSON values."""
        decode = msgspec.json.Decoder(WireSpan).decode
        for _, encoded in spool:
            records = [decode(record) for record in encoded]
            if not any(record.name is not None for record in records):
                self._losses.add(
                    f"trace {records[0].trace_id}",
                    "none of its spans is in the file, only what belongs to them; export the spans, too",
                )
                continue
            trace, about, facts = trace_of_spans(records, self._origin)
            self._note(trace)
            if self._pricing:
                self._pricing.fill(trace)
            yield from case_pieces(_case(trace, about, facts, self._sessions.group_of(records)), [trace])
        if not self.cases:
            raise InputError(self._losses.problems(self._source))

    def _note(self, trace: Trace) -> None:
        self.cases += 1
        self._counts["err"] += trace.error is not None
        unrecorded = "answer_unrecorded" in trace.extra
        self._counts["unrecorded"] += unrecorded
        self._counts["silent"] += not (trace.error or trace.output.final_answer or unrecorded)
        self._counts["warned"] += "warnings" in trace.extra
        names = (score["name"] for score in trace.extra.get("recorded_scores", ()))
        self._scores.update((name, None) for name in names if name in trace.metrics.custom)

    def notes(self) -> list[str]:
        says = {
            "err": "traces failed or are broken: their cases are errors",
            "silent": "traces have no answer: their cases fail",
            "unrecorded": "traces were exported without the answer: their cases are skipped",
            "warned": "traces have warnings, see extra.warnings",
        }
        counts = [f"{self._counts[name]} of {self.cases} {what}" for name, what in says.items() if self._counts[name]]
        scored = [note_of_scores(self._scores)] if self._scores else []
        return [*self._losses.notes(), *counts, *self._sessions.notes(self.cases), *scored]


def _case(trace: Trace, about: dict[str, Any], facts: dict[str, Any], group: str | None) -> dict[str, Any]:
    return {
        "schema_version": "1.0",
        "id": trace.case_id,
        "input": trace.input,
        "expected": {"facts": facts},
        "metadata": about,
        **({} if group is None else {"group": group}),
    }
