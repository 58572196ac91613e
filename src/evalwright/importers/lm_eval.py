"""Samples of the lm-evaluation-harness: `samples_TASK_DATE.jsonl`."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, ClassVar

from evalwright.importers.imported_records import Imported, ImportFindings, Read
from evalwright.importers.json_lines import records
from evalwright.importers.record_values import too_deep
from evalwright.importers.recording import UNKNOWN_TIME
from evalwright.importers.sources import ImportNotes, record_key, stem
from evalwright.importers.traces import TraceImporter
from evalwright.model.trace import Metrics, Output, Trace, TraceMessage

__all__ = ["LmEval"]

_NAME = re.compile(r"samples_(.+)_\d{4}-\d\d-\d\dT[\d.:-]+")
_VERDICTS = ("exact_match", "acc")
_NO_FILTER = "none"
_PASSED_OR_NOT = (0, 1)
_NUMBERS = (int, float)


def read(files: Sequence[Path], reading: ImportFindings) -> Iterator[Imported]:
    """The samples of the files; answers under several filters are several systems."""
    several = len(set(map(_model, files))) > 1
    for file in files:
        filters: dict[str | None, str] = {}
        yield from _samples(file, filters, reading)
        model = _model(file) if several else "recorded"
        for name, key in filters.items():
            reading.variants[key] = f"{model} ({name or _NO_FILTER})" if len(filters) > 1 else model


def _samples(file: Path, filters: dict[str | None, str], reading: ImportFindings) -> Iterator[Imported]:
    """The samples of a file. `filters` maps those found so far to provisional names of their systems."""
    named = _NAME.fullmatch(stem(file))
    task = named[1] if named else None
    before, name, notes = f"{task}/" if task else "", file.name, reading.notes
    for number, sample in records(file, reading.mistakes):
        doc, target = sample.get("doc_id"), sample.get("target")
        if doc is None or "resps" not in sample:
            reading.mistakes.add(file, "expected a sample with doc_id and resps", number)
            continue
        if too_deep(target):
            reading.mistakes.add_depth(file, number)
        prompt, answer = _prompt_and_answer(sample)
        messages = [TraceMessage("user", prompt)]
        if answer is not None:
            messages.append(TraceMessage("assistant", answer))
        chosen = record_key(sample.get("filter"))
        variant = filters.get(chosen)
        if variant is None:
            variant = filters[chosen] = f"{file} {chosen}"
        trace = Trace(
            "", variant, UNKNOWN_TIME, UNKNOWN_TIME, None, {}, Output(answer if answer and answer.strip() else None),
            "", messages, metrics=Metrics(custom=_scores(sample, notes)),
            extra={"source": "import", "imported_from": {"file": name, "format": "lm-eval", "line": number}},
        )  # fmt: skip
        expected = {} if target is None else {"facts": {"target": target}}
        yield Imported(
            file, f"{before}{doc}", {"user_message": prompt}, trace, None, expected, {}, task, sample, number
        )  # fmt: skip


def _model(file: Path) -> str:
    """The folder in which the harness keeps the samples of a model."""
    return file.resolve().parent.name


def _prompt_and_answer(sample: dict[str, Any]) -> tuple[str, str | None]:
    """The prompt and the answer."""
    requests = _requests(sample.get("arguments"))
    prompt = str(requests[0][0]) if requests and requests[0] else ""
    return prompt, _answer(sample, requests)


def _scores(sample: dict[str, Any], notes: ImportNotes) -> dict[str, Any]:
    scores: dict[str, Any] = {}
    names = sample.get("metrics")
    for name in names if isinstance(names, list) else ():
        name = str(name)
        value = sample.get(name)
        if isinstance(value, _NUMBERS):
            scores[name] = value
        elif value is not None:
            notes.lose(f"values of the metric {name!r} that are not numbers")
    for name in _VERDICTS:
        if name in scores and scores[name] in _PASSED_OR_NOT:
            scores["reward"] = float(scores[name])
            break
    return scores


def _requests(arguments: Any) -> list[list[Any]]:
    """The arguments of each request, in either form that the harness has written."""
    if isinstance(arguments, dict):
        return [[*argument.values()] for argument in arguments.values() if isinstance(argument, dict)]
    return [argument for argument in arguments if isinstance(argument, list)] if isinstance(arguments, list) else []


def _answer(sample: dict[str, Any], requests: list[list[Any]]) -> str | None:
    """The generated text; for choices, the continuation with the highest log probability."""
    responses = sample.get("filtered_resps")
    responses = responses if isinstance(responses, list) and responses else _flat(sample.get("resps"))
    if not responses:
        return None
    if len(requests) > 1 or isinstance(responses[0], list):
        chances = [_probability(response) for response in responses]
        best = max(range(len(chances)), key=lambda index: chances[index])
        return str(requests[best][1]) if best < len(requests) and len(requests[best]) > 1 else None
    first = responses[0]
    return first if isinstance(first, str) else str(first)


def _flat(resps: Any) -> list[Any]:
    return [resp[0] for resp in resps if isinstance(resp, list) and resp] if isinstance(resps, list) else []


def _probability(value: Any) -> float:
    first = value[0] if isinstance(value, list) and value else value
    try:
        return float(first)
    except (TypeError, ValueError):
        return float("-inf")


class LmEval(TraceImporter):
    """Samples of the lm-evaluation-harness."""

    read: ClassVar[Read] = staticmethod(read)
