"""Logs of Inspect, `.eval` and `.json`: read through inspect_ai, because the file format is not frozen."""

from __future__ import annotations

import io
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from math import isfinite
from pathlib import Path
from typing import Any, ClassVar
from zipfile import is_zipfile

import msgspec

from evalwright.errors import InputError, Problem
from evalwright.importers.blocks import texts_of
from evalwright.importers.document_parts import document_bytes, items_of, object_parts
from evalwright.importers.imported_records import Imported, ImportFindings, Read
from evalwright.importers.sources import ImportNotes
from evalwright.importers.token_counts import Tokens, recorded_dollars, recorded_milliseconds, recorded_time
from evalwright.importers.traces import TraceImporter
from evalwright.importers.transcript import Transcript, arguments_of
from evalwright.model.trace import TraceError

__all__ = ["InspectLogs"]

_VALUES = {"C": 1, "P": 0.5, "I": 0, "N": 0}
"""Inspect's words for correct, partially correct, incorrect and no answer."""
_Times = tuple[datetime | None, datetime | None]
_UNKNOWN: _Times = None, None
_AT_ONCE = 16
"""Samples that are read together, as each reading begins with the directory of the whole file."""


def read(files: Sequence[Path], reading: ImportFindings) -> Iterator[Imported]:
    """The samples of the logs. Those of several tasks are cases of their own, as tasks number their samples alike."""
    try:
        from inspect_ai.log import read_eval_log
    except ImportError:
        install = "logs of Inspect are read with inspect_ai: pip install 'evalwright[inspect]'"
        raise InputError(Problem(str(files[0]), install)) from None

    logs = {}
    for file in files:
        with _mistake(file, reading):
            if _is_archive(file):
                logs[file] = read_eval_log(str(file.absolute()), header_only=True)
            else:
                logs[file] = read_eval_log(next(_split(file)), header_only=True, format="json")
    several = len({log.eval.task for log in logs.values()}) > 1
    seen: set[str] = set()
    for file, log in logs.items():
        task = log.eval.task
        reading.name = None if several else task
        if log.status != "success":
            reading.notes.add_text(
                f"{file.name}: the run's status is {log.status!r}; its finished samples are imported"
            )
        found = False
        for sample in _samples(file, reading):
            found = True
            if sample.uuid in seen:
                # what a run had finished is copied into the log of its retry
                reading.notes.lose("samples that an earlier log has, too")
                continue
            seen.update([sample.uuid] if sample.uuid else [])
            record = _record(file, log.eval.model, sample, reading.notes)
            if several:
                record.case_id, record.group = f"{task}/{record.case_id}", task
            yield record
        if not found and not len(reading.mistakes):
            reading.mistakes.add(file, "has no samples")


@contextmanager
def _mistake(file: Path, reading: ImportFindings) -> Iterator[None]:
    """Report any exception as a flaw of the file."""
    try:
        yield
    except Exception as error:  # neither the file nor the library is ours
        lines = str(error).splitlines() or [type(error).__name__]
        reading.mistakes.add(file, f"is not a log of Inspect: {lines[0]}")


def _samples(file: Path, reading: ImportFindings) -> Iterator[Any]:
    with _mistake(file, reading):
        yield from _read_samples(file.absolute())


def _is_archive(file: Path) -> bool:
    return file.suffix.lower() == ".eval" or is_zipfile(file)


def _read_samples(file: Path) -> Iterator[Any]:
    """The samples of a log in Inspect's order, a few at a time."""
    from inspect_ai import log

    if not _is_archive(file):
        for part in _split(file):
            yield from log.read_eval_log(part, resolve_attachments=True, format="json").samples or ()
        return
    path = str(file)
    by_id = getattr(log, "read_eval_log_samples_by_id", None)  # older versions do not have it
    if by_id is None:
        yield from log.read_eval_log(path, resolve_attachments=True).samples or ()
        return
    keys = {(summary.id, summary.epoch) for summary in log.read_eval_log_sample_summaries(path)}
    ordered = sorted(keys, key=lambda key: (key[1], key[0] if isinstance(key[0], str) else f"{key[0]:020}"))
    for start in range(0, len(ordered), _AT_ONCE):
        yield from by_id(path, ordered[start : start + _AT_ONCE], resolve_attachments=True)


def _split(file: Path) -> Iterator[io.BytesIO]:
    """A JSON log as several with a few samples each. One with NaN, which JSON does not have, stays whole."""
    with document_bytes(file) as data:
        try:
            parts = object_parts(data)
            samples = items_of(parts.pop("samples", None))
        except msgspec.DecodeError:
            yield io.BytesIO(data)
            return
        parts.pop("reductions", None)  # they repeat the scores of all samples
        for start in range(0, len(samples) or 1, _AT_ONCE):
            yield io.BytesIO(msgspec.json.encode({**parts, "samples": samples[start : start + _AT_ONCE]}))


def _record(file: Path, model: str, sample: Any, notes: ImportNotes) -> Imported:
    talk = Transcript()
    times = _times_of(sample, notes)
    for message in sample.messages:
        _message(talk, message, times, notes)
    _add_measurements(talk, sample, notes)
    scores = _scores(talk, sample, notes)
    extra: dict[str, Any] = {"imported_from": {"file": file.name, "format": "inspect"}}
    if scores:
        extra["recorded_scores"] = scores
    question = sample.input if isinstance(sample.input, str) else talk.user_message
    target = sample.target if isinstance(sample.target, str) else list(sample.target)
    return Imported(
        file,
        str(sample.id),
        {"user_message": question or ""},
        talk.trace(model, extra),
        trial=sample.epoch - 1,
        expected={"facts": {"target": target}},
        metadata=dict(sample.metadata or {}),
    )


def _times_of(sample: Any, notes: ImportNotes) -> dict[str, _Times]:
    """Start and end of what the log has as an event: a reply, by the id of its message, and a call, by its own."""
    times: dict[str, _Times] = {}
    for event in sample.events or ():
        replies = event.output.choices[:1] if event.event == "model" else ()
        for id in [*(reply.message.id for reply in replies), *([event.id] if event.event == "tool" else ())]:
            if id is not None:
                times[id] = recorded_time(event.timestamp, notes), recorded_time(event.completed, notes)
    return times


def _message(talk: Transcript, message: Any, times: Mapping[str, _Times], notes: ImportNotes) -> None:
    content = message.content
    blocks = content if isinstance(content, str) else [part.model_dump() for part in content]
    if message.role == "assistant":
        started, finished = times.get(message.id, _UNKNOWN)
        turn = talk.turn(None, started)
        turn.model, turn.finished_at = message.model, finished
        for block in [{"type": "text", "text": blocks}] if isinstance(blocks, str) else blocks:
            if block.get("type") == "reasoning":
                turn.think(str(block.get("reasoning", "")))
            elif text := texts_of([block], notes):
                turn.add_text(text)
        for call in message.tool_calls or []:
            talk.calls_in(turn, call.function, call.id, arguments_of(call.arguments), times.get(call.id, _UNKNOWN)[0])
    elif message.role == "tool":
        failed = message.error is not None
        shown = message.error.message if failed and not blocks else texts_of(blocks, notes)
        ended = times.get(message.tool_call_id, _UNKNOWN)[1]
        talk.result(message.tool_call_id, shown, name=message.function, at=ended, failed=failed)
    elif message.role == "user":
        talk.user(texts_of(blocks, notes))
    else:
        talk.system(texts_of(blocks, notes))


def _add_measurements(talk: Transcript, sample: Any, notes: ImportNotes) -> None:
    """Tokens and cost of all models, times, the error and the limit that ended the sample."""
    for model, usage in (sample.model_usage or {}).items():
        talk.models.add(model)
        read = [usage.input_tokens, usage.input_tokens_cache_read, usage.input_tokens_cache_write]
        talk.tokens += Tokens(
            sum(part for part in read if part is not None) if any(part is not None for part in read) else None,
            usage.output_tokens,
            usage.reasoning_tokens,
            usage.input_tokens_cache_read,
            usage.input_tokens_cache_write,
            recorded_dollars(getattr(usage, "total_cost", None), notes),  # older versions do not have it
        )
    for name in ("started_at", "completed_at"):
        talk.at(recorded_time(getattr(sample, name, None), notes))
    talk.latency_ms = recorded_milliseconds(sample.total_time, notes, unit=1000)
    if sample.error is not None:
        talk.error = TraceError("sample_error", sample.error.message)
    if sample.limit is not None:
        talk.extra["stopped"] = sample.limit.type


def _scores(talk: Transcript, sample: Any, notes: ImportNotes) -> list[dict[str, Any]]:
    """Recorded scores as numbers by the name of their scorer; a single one is the reward."""
    listed = []
    scores: dict[str, float] = {}
    for scorer, score in (sample.scores or {}).items():
        values = score.value if isinstance(score.value, dict) else {None: score.value}
        for key, value in values.items():
            name = scorer if key is None else f"{scorer}.{key}"
            number = _number(value)
            if number is not None:
                scores[name] = number
            elif isinstance(value, float):
                notes.lose(f"scores {name!r} that are NaN or infinite")
            elif value is not None and not isinstance(value, str):
                notes.lose(f"scores {name!r} that are no numbers")
            label = {"label": value} if number is None and isinstance(value, str) else {}
            listed.append({"name": name, "passed": None, "score": number, "reason": score.explanation, **label})
    if len(sample.scores or {}) == 1 and len(scores) == 1:
        scores["reward"] = next(iter(scores.values()))
    talk.custom = dict(scores)
    return listed


def _number(value: Any) -> float | None:
    if isinstance(value, str):
        return _VALUES.get(value)
    return float(value) if isinstance(value, int | float) and isfinite(value) else None


class InspectLogs(TraceImporter):
    """Logs of Inspect, `.eval` and `.json`; it needs the extra `inspect`."""

    read: ClassVar[Read] = staticmethod(read)
