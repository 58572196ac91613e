"""Samples of the lm-evaluation-harness: `samples_TASK_DATE.jsonl`."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

import msgspec

from evalwright.importers.blocks import dictionaries
from evalwright.importers.json_lines import LineForm, records
from evalwright.importers.recording import UNKNOWN_TIME
from evalwright.importers.recordings import too_deep
from evalwright.importers.sources import ImportNotes, Mistakes, record_key, stem
from evalwright.importers.traces import Imported, ImportFindings, Read, TraceImporter
from evalwright.model.trace import Metrics, Output, Trace, TraceMessage

__all__ = ["LmEval"]

_NAME = re.compile(r"samples_(.+)_\d{4}-\d\d-\d\dT[\d.:-]+")
_VERDICTS = ("exact_match", "acc")
_NO_FILTER = "none"
_NUMBERS = (int, float)


def read(files: Sequence[Path], reading: ImportFindings) -> Iterator[Imported]:
    """The samples of the files; answers under several filters are several systems."""
    filters = {file: _filters(file) for file in files}
    several = len(set(map(_model, files))) > 1
    for file in files:
        named = _NAME.fullmatch(stem(file))
        task = named[1] if named else None
        model = _model(file) if several else "recorded"
        for number, sample in records(file, reading.mistakes):
            doc, target = sample.get("doc_id"), sample.get("target")
            if too_deep(target):
                reading.mistakes.add_depth(file, number)
            if doc is None or "resps" not in sample:
                reading.mistakes.add(file, "expected a sample with doc_id and resps", number)
                continue
            asked, trace = _recorded(sample, reading.notes)
            trace.variant_name = _variant(model, sample, filters[file])
            origin = {"file": file.name, "format": "lm-eval", "line": number}
            trace.extra = {"source": "import", "imported_from": origin}
            yield Imported(
                file,
                f"{task}/{doc}" if task else str(doc),
                {"user_message": asked},
                trace,
                expected={} if target is None else {"facts": {"target": target}},
                group=task,
                record=sample,
                line=number,
            )


class _Filtered(msgspec.Struct, gc=False):
    filter: Any = None


_FILTERED = LineForm(msgspec.json.Decoder(_Filtered).decode, partial(msgspec.convert, type=_Filtered))


def _filters(file: Path) -> set[str | None]:
    return {record_key(sample.filter) for _, sample in records(file, Mistakes(), _FILTERED)}


def _model(file: Path) -> str:
    """The folder in which the harness keeps the samples of a model."""
    return file.resolve().parent.name


def _variant(model: str, sample: dict[str, Any], filters: set[str | None]) -> str:
    return f"{model} ({sample.get('filter') or _NO_FILTER})" if len(filters) > 1 else model


def _recorded(sample: dict[str, Any], notes: ImportNotes) -> tuple[str, Trace]:
    """What was asked, and the answer with its scores: two messages without times."""
    requests = _requests(sample.get("arguments"))
    asked = str(requests[0][0]) if requests and requests[0] else ""
    messages = [TraceMessage("user", asked)]
    answer = _answer(sample, requests)
    if answer is not None:
        messages.append(TraceMessage("assistant", answer))
    output = Output(answer if answer and not answer.isspace() else None)
    metrics = Metrics(custom=_scores(sample, notes))
    return asked, Trace("", "", UNKNOWN_TIME, UNKNOWN_TIME, None, {}, output, "", messages, metrics=metrics)


def _scores(sample: dict[str, Any], notes: ImportNotes) -> dict[str, Any]:
    found: dict[str, Any] = {}
    names = sample.get("metrics")
    for name in names if isinstance(names, list) else ():
        value = sample.get(str(name))
        if isinstance(value, _NUMBERS):
            found[str(name)] = value
        elif value is not None:
            notes.lose(f"values of the metric {str(name)!r} that are no numbers")
    verdict = next((found[name] for name in _VERDICTS if found.get(name) in (0, 1)), None)
    if verdict is not None:
        found["reward"] = float(verdict)
    return found


def _requests(arguments: Any) -> list[list[Any]]:
    """The arguments of each request, of both forms that the harness has written."""
    if isinstance(arguments, dict):
        return [[*one.values()] for one in dictionaries(list(arguments.values()))]
    return [one for one in arguments if isinstance(one, list)] if isinstance(arguments, list) else []


def _answer(sample: dict[str, Any], requests: list[list[Any]]) -> str | None:
    """The text that was generated; of choices, the continuation with the greatest log probability."""
    found = sample.get("filtered_resps")
    found = found if isinstance(found, list) and found else _flat(sample.get("resps"))
    if not found:
        return None
    if len(requests) > 1 or isinstance(found[0], list):
        chances = [_probability(one) for one in found]
        best = max(range(len(chances)), key=lambda index: chances[index])
        return str(requests[best][1]) if best < len(requests) and len(requests[best]) > 1 else None
    first = found[0]
    return first if isinstance(first, str) else str(first)


def _flat(resps: Any) -> list[Any]:
    return [one[0] for one in resps if isinstance(one, list) and one] if isinstance(resps, list) else []


def _probability(value: Any) -> float:
    first = value[0] if isinstance(value, list) and value else value
    try:
        return float(first)
    except (TypeError, ValueError):
        return float("-inf")


class LmEval(TraceImporter):
    """Samples of the lm-evaluation-harness."""

    read: ClassVar[Read] = staticmethod(read)
