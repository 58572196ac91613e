"""An application's activity as JSON Lines, and such a file of one run as an entry of a dataset."""

from __future__ import annotations

import asyncio
import contextvars
import json
from collections import Counter
from collections.abc import Iterable
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from evalwright.capture.listeners import add_handler, init, listening
from evalwright.capture.observations import current_span
from evalwright.capture.spans import LLMSpan
from evalwright.capture.wrap import Wrapped, watch_all_wraps, watch_wraps
from evalwright.files.durable import write_output
from evalwright.files.masker import Masker
from evalwright.formats.pixie.surface.trace_store import LineFile
from evalwright.formats.pixie.target import Application
from evalwright.formats.pixie.user_code import runnable_at
from evalwright.session import environment
from evalwright.targets.threads import Threads

__all__ = ["entry_of", "log_into", "record", "save_entry"]

RESERVED = "input_data"
_RESERVED = (RESERVED, "app_input")
_OF_CALL = (
    "operation", "provider", "request_model", "response_model", "input_messages", "output_messages",
    "tool_definitions", "finish_reasons", "output_type", "error_type",
)  # fmt: skip
"""The parts of a model call that are expected again; those that differ from run to run are left out."""

Record = dict[str, Any]

_logs: dict[Path, _Log] = {}
"""Per process: an application asks for its log only once, however it is driven."""


class _Log:
    """Writes model calls and what passes marked points as they happen."""

    def __init__(self, path: Path) -> None:
        self._lines = LineFile(path)
        watch_all_wraps(lambda wrapped: self._lines.append(_record_of_wrap(wrapped)))
        add_handler(self)

    def collect(self, span: Any) -> None:
        if isinstance(span, LLMSpan):
            self._lines.append(_record_of_call(span))


def log_into(path: Path) -> None:
    """Append to this file, from now on, what the process does; a second call changes nothing."""
    path = path.resolve()
    if path not in _logs:
        _logs[path] = _Log(path)


async def record(place: str, arguments: dict[str, Any], output: Path) -> BaseException | None:
    """Drive the application at `file.py:Name` once, and write what passed its marked points and its model calls.

    Returns the application's exception, if any; what was recorded until then is written all the same. Raises InputError
    if there is no application at the place, ValueError for names that are not unique.
    """
    threads = Threads()
    seen: list[tuple[datetime, Record]] = []
    try:
        application = Application(runnable_at(place, [Path.cwd()]), place, threads)
        raised = await _run_application(application, arguments, seen)
    finally:
        threads.close()
    records = [{"type": "kwargs", "value": arguments}, *(line for _, line in sorted(seen, key=lambda entry: entry[0]))]
    _check_names(records)
    mask = Masker.of({}, environment()).mask_text
    output.parent.mkdir(parents=True, exist_ok=True)
    write_output(output, ["".join(mask(json.dumps(line)) + "\n" for line in records).encode()])
    return raised


async def _run_application(
    application: Application, arguments: dict[str, Any], seen: list[tuple[datetime, Record]]
) -> BaseException | None:
    def wrapped(wrap: Wrapped) -> None:
        seen.append((datetime.now(UTC), _record_of_wrap(wrap)))

    init()
    with listening() as observed:
        context = contextvars.copy_context()
    context.run(watch_wraps, wrapped)
    try:
        await application.set_up()
        await asyncio.create_task(application.drive(arguments), context=context)
    except Exception as error:
        return error
    finally:
        await application.tear_down()
        calls = [span for span in observed.spans if isinstance(span, LLMSpan)]
        seen += [(span.ended_at, _record_of_call(span)) for span in calls]
    return None


def _record_of_wrap(wrap: Wrapped) -> Record:
    trace_id, span_id = current_span() or (None, None)
    about = {"name": wrap.name, "purpose": wrap.purpose, "data": wrap.value, "description": wrap.description}
    return {"type": "wrap", **about, "trace_id": trace_id, "span_id": span_id}


def _record_of_call(span: LLMSpan) -> Record:
    fields = {key: value for key, value in asdict(span).items() if key != "scope"}  # which the original does not have
    return {"type": "llm_span", **json.loads(json.dumps(fields, default=_text))}


def _text(value: Any) -> str:
    return value.isoformat() if isinstance(value, datetime) else str(value)


def _check_names(records: Iterable[Record]) -> None:
    counts = Counter(line["name"] for line in records if line["type"] == "wrap")
    twice = sorted(name for name, count in counts.items() if count > 1)
    reserved = sorted(name for name in counts if name in _RESERVED)
    notes = [f"the name {name!r} is wrapped {counts[name]} times" for name in twice]
    notes += [f"the name {name!r} is reserved for the arguments of the application" for name in reserved]
    if notes:
        raise ValueError(f"names of wrapped values must be unique: {'; '.join(notes)}")


def entry_of(trace: Path) -> Record:
    """A dataset entry from a recorded run. Raises ValueError, which names the line, if the file is not a recorded
    run."""
    records = [_record(line, number, trace) for number, line in _lines(trace)]
    arguments = next((line["value"] for line in records if line["type"] == "kwargs"), None)
    if not isinstance(arguments, dict):
        raise ValueError(f'{trace}: has no line with the arguments, {{"type": "kwargs", "value": {{...}}}}')
    _check_names(records)
    inputs = [line for line in records if line["type"] == "wrap" and line.get("purpose") == "input"]
    results = [line for line in records if line["type"] in ("wrap", "llm_span") and line.get("purpose") != "input"]
    return {
        "description": f"transformed from {trace.name}",
        "entry_kwargs": arguments,
        "eval_input": [{"name": RESERVED, "value": arguments}, *map(_named_record, inputs)],
        "expectation": [_named_record(line) for line in results],
        "evaluators": ["Factuality"],
    }


def save_entry(trace: Path, output: Path) -> None:
    """Write the entry for a recorded run to a file. Raises ValueError, OSError."""
    text = json.dumps(entry_of(trace), indent=2, ensure_ascii=False)
    output.parent.mkdir(parents=True, exist_ok=True)
    write_output(output, [f"{text}\n".encode()])


def _lines(trace: Path) -> list[tuple[int, str]]:
    try:
        text = trace.read_text("utf-8")
    except UnicodeDecodeError as error:
        raise ValueError(f"{trace}: {error}") from error
    return [(number, line) for number, line in enumerate(text.split("\n"), 1) if line.strip()]


def _record(line: str, number: int, trace: Path) -> Record:
    try:
        value = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{trace}:{number}: broken JSON: {error}") from error
    sound = isinstance(value, dict) and isinstance(value.get("type"), str)
    if not sound or (value["type"] == "wrap" and not isinstance(value.get("name"), str)):
        raise ValueError(f"{trace}:{number}: expected an object with a type, and a name if that is wrap")
    known: Record = value
    return known


def _named_record(line: Record) -> Record:
    if line["type"] == "wrap":
        return {"name": line["name"], "value": line.get("data")}
    model = line.get("request_model") or line.get("response_model") or "llm_call"
    kept = {key: line[key] for key in _OF_CALL if line.get(key) is not None}
    return {"name": f"llm_span_{model}", "value": kept}
