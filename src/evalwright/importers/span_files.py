"""Files of exported spans: OTLP/JSON as a collector writes it, and plain spans as SDKs and Phoenix write them.

A file is JSON Lines, one document, or several documents in sequence. Lines are read one at a time; a file whose
documents span several lines is read into memory. Parts that cannot be used are reported with their place, and the rest
is read.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from evalwright.errors import InputError, Problem
from evalwright.files.packed import opened
from evalwright.files.paths import unreadable
from evalwright.importers.record_values import described
from evalwright.importers.wire_spans import WireSpan, json_or_error, log_record, otlp_attributes, otlp_span, plain_span

__all__ = ["Lose", "read_spans"]

_BOM = b"\xef\xbb\xbf"
_SPACE = re.compile(r"\s*")

Lose = Callable[[str, str], None]
"""Called with the place of what is lost, and why."""


def read_spans(source: Path, plain: bool, lose: Lose) -> Iterator[WireSpan]:
    """The spans of a file in its order; with `plain`, also spans outside OTLP's envelopes.

    Raises InputError if the file cannot be read.
    """
    try:
        for place, document in _documents(source, lose):
            for record in document if isinstance(document, list) else [document]:
                yield from _in_document(record, place, plain, lose)
    except OSError as error:
        raise InputError(Problem(str(source), unreadable(source, error))) from None


def _documents(source: Path, lose: Lose) -> Iterator[tuple[str, Any]]:
    with opened(source) as file:
        begun = [line for line in (file.readline().removeprefix(_BOM), file.readline()) if line.strip()]
    a_line_is_whole = any(isinstance(json_or_error(line), dict | list) for line in begun)
    with opened(source) as file:
        if begun and (begun[0].strip() == b"[" or not a_line_is_whole):
            yield from _across_lines(file.read().removeprefix(_BOM).decode(errors="replace"), lose)
            return
        for number, line in enumerate(file, start=1):
            text = line.removeprefix(_BOM) if number == 1 else line
            if text.strip():
                document = json_or_error(text)
                if isinstance(document, Exception):
                    lose(f"line {number}", f"is not valid JSON: {document}")
                else:
                    yield f"line {number}", document


def _across_lines(text: str, lose: Lose) -> Iterator[tuple[str, Any]]:
    decoder, at, line = json.JSONDecoder(), _end_of_space(text, 0), 1
    counted = 0
    while at < len(text):
        line += text.count("\n", counted, at)
        counted = at
        try:
            _, end = decoder.raw_decode(text, at)
        except ValueError as error:
            lose(f"line {line}", f"is not valid JSON: {error}; the rest of the file was not read")
            return
        except RecursionError:
            lose(f"line {line}", "is nested too deeply; the rest of the file was not read")
            return
        document = json_or_error(text[at:end].encode(errors="replace"))
        if isinstance(document, Exception):
            lose(f"line {line}", f"is not valid JSON: {document}")
        else:
            yield f"line {line}", document
        at = _end_of_space(text, end)


def _end_of_space(text: str, at: int) -> int:
    match = _SPACE.match(text, at)
    return match.end() if match else at


def _in_document(document: Any, place: str, plain: bool, lose: Lose) -> Iterator[WireSpan]:
    if not isinstance(document, dict):
        lose(place, f"expected an object with spans, found {described(document)}")
    elif "resourceSpans" in document or "resource_spans" in document:
        yield from _enveloped_spans(document, ("resourceSpans", "resource_spans"), _SPANS, place, lose)
    elif "resourceLogs" in document or "resource_logs" in document:
        yield from _enveloped_spans(document, ("resourceLogs", "resource_logs"), _LOGS, place, lose)
    elif "resourceMetrics" in document:
        return
    elif plain and isinstance(listed := document.get("data", document.get("spans")), list):
        for number, item in enumerate(listed):
            yield from _read(plain_span, item, f"{place}, span {number + 1}", None, lose)
    elif plain and isinstance(document.get("context.trace_id"), dict):
        for number, row in enumerate(_rows(document)):
            yield from _read(plain_span, row, f"{place}, span {number + 1}", None, lose)
    elif plain:
        yield from _read(plain_span, document, place, None, lose)
    else:
        lose(place, f"expected 'resourceSpans', found the keys {', '.join(map(str, document))[:100] or '(none)'}")


def _rows(columns: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """The rows of a table by columns, as pandas writes one by default; Phoenix has the spans' ids as their index."""
    named = {name: column for name, column in columns.items() if isinstance(column, dict)}
    for key in dict.fromkeys(key for column in named.values() for key in column):
        yield {"context.span_id": key, **{name: column.get(key) for name, column in named.items()}}


_SPANS = (("scopeSpans", "scope_spans", "instrumentationLibrarySpans"), ("spans",))
_LOGS = (("scopeLogs", "scope_logs"), ("logRecords", "log_records"))


def _enveloped_spans(
    document: dict[str, Any], key: tuple[str, ...], inner: tuple[tuple[str, ...], ...], place: str, lose: Lose
) -> Iterator[WireSpan]:
    read = otlp_span if inner is _SPANS else log_record
    for resource in _listed_objects(document, key, place, lose):
        described_by = resource.get("resource")
        about = otlp_attributes(described_by.get("attributes")) if isinstance(described_by, dict) else {}
        service = about.get("service.name")
        for scope in _listed_objects(resource, inner[0], place, lose):
            for listed_object in _listed_objects(scope, inner[1], place, lose):
                yield from _read(read, listed_object, place, service if isinstance(service, str) else None, lose)


def _listed_objects(holder: dict[str, Any], keys: tuple[str, ...], place: str, lose: Lose) -> Iterator[dict[str, Any]]:
    key = next((key for key in keys if key in holder), keys[0])
    listed = holder.get(key)
    if not isinstance(listed, list | None):
        lose(place, f"{key}: expected a list, found {described(listed)}")
        return
    for item in listed or ():
        if isinstance(item, dict):
            yield item
        else:
            lose(place, f"{key}: expected an object, found {described(item)}")


def _read(
    read: Callable[[dict[str, Any], str | None], WireSpan | None],
    item: Any,
    place: str,
    service: str | None,
    lose: Lose,
) -> Iterator[WireSpan]:
    try:
        if not isinstance(item, dict):
            raise ValueError(f"expected a span, found {described(item)}")
        span = read(item, service)
    except ValueError as error:
        lose(place, str(error))
        return
    if span is not None:
        yield span
