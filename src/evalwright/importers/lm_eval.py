"""Samples of the lm-evaluation-harness: `samples_TASK_DATE.jsonl`."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, ClassVar

from evalwright.importers.blocks import dictionaries
from evalwright.importers.sources import ImportNotes, record_key, records, stem
from evalwright.importers.traces import Imported, ImportFindings, Read, TraceImporter
from evalwright.importers.transcript import Transcript

__all__ = ["LmEval"]

_NAME = re.compile(r"samples_(.+)_\d{4}-\d\d-\d\dT[\d.:-]+")
_VERDICTS = ("exact_match", "acc")
_NO_FILTER = "none"


def read(files: Sequence[Path], reading: ImportFindings) -> Iterator[Imported]:
    """The samples of the files; answers under several filters are several systems."""
    filters = {file: _filters(file, reading) for file in files}
    several = len(set(map(_model, files))) > 1
    for file in files:
        named = _NAME.fullmatch(stem(file))
        task = named[1] if named else None
        for number, sample in records(file, reading.mistakes):
            if sample is None:
                continue
            doc = sample.get("doc_id")
            if doc is None or "resps" not in sample:
                reading.mistakes.add(file, "expected a sample with doc_id and resps", number)
                continue
            talk = _transcript(sample, reading.notes)
            origin = {"imported_from": {"file": file.name, "format": "lm-eval", "line": number}}
            target = sample.get("target")
            yield Imported(
                file,
                f"{task}/{doc}" if task else str(doc),
                {"user_message": talk.user_message or ""},
                talk.trace(_variant(file, sample, filters[file], several), origin),
                expected={} if target is None else {"facts": {"target": target}},
                group=task,
                record=sample,
                line=number,
            )


def _filters(file: Path, reading: ImportFindings) -> set[Any]:
    return {record_key(sample.get("filter")) for _, sample in records(file, reading.mistakes) if sample is not None}


def _model(file: Path) -> str:
    """The folder in which the harness keeps the samples of a model."""
    return file.resolve().parent.name


def _variant(file: Path, sample: dict[str, Any], filters: set[Any], several: bool) -> str:
    name = _model(file) if several else "recorded"
    return f"{name} ({sample.get('filter') or _NO_FILTER})" if len(filters) > 1 else name


def _transcript(sample: dict[str, Any], notes: ImportNotes) -> Transcript:
    talk = Transcript()
    requests = _requests(sample.get("arguments"))
    talk.user(str(requests[0][0]) if requests and requests[0] else "")
    answer = _answer(sample, requests)
    if answer is not None:
        talk.turn().texts.append(answer)
    names = sample.get("metrics")
    for name in map(str, names) if isinstance(names, list) else ():
        value = sample.get(name)
        if isinstance(value, int | float):
            talk.custom[name] = value
        elif value is not None:
            notes.lose(f"values of the metric {name!r} that are no numbers")
    verdict = next((talk.custom[name] for name in _VERDICTS if talk.custom.get(name) in (0, 1)), None)
    if verdict is not None:
        talk.custom["reward"] = float(verdict)
    return talk


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
