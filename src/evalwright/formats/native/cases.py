"""One case of a dataset of `eval.yaml`: from plain data to a case, or to its mistakes."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import UTC, datetime
from typing import Annotated, Any

import msgspec
from pydantic import AfterValidator, StrictStr, ValidationError
from pydantic_core import from_json, to_jsonable_python

from evalwright.errors import Problem, did_you_mean
from evalwright.files.jsonl import advice_on
from evalwright.files.key_paths import Place, as_written, steps_of
from evalwright.files.plain import not_finite
from evalwright.formats.shared.findings import expectation, remedy
from evalwright.model.case import EvalCase, ExpectedBehavior
from evalwright.model.trace import Trace, is_newer

__all__ = [
    "FileCase",
    "ReportProblem",
    "as_json_holds",
    "case_of_line",
    "checked",
    "make_plain",
    "readable_version",
    "take_recording",
    "unknown_case_keys",
    "usable_id",
]

ReportProblem = Callable[[Place, str], Problem]
"""Makes a problem from a place inside the case and a message."""

_NO_JSON = re.compile(rb"NaN|Infinity|[eE]\+?\d{3}")
_EMPTY_AS_NULL = ("expected", "metadata", "tags")


def readable_version(version: str) -> str:
    """The version of a case. Raises ValueError for one that this evalwright does not read."""
    if not version.startswith("1."):
        raise ValueError("must be 1.x: a newer evalwright reads it")
    return version


def usable_id(case_id: str) -> str:
    """An id that people can use to name the case. Raises ValueError for white space."""
    if not case_id.strip():
        raise ValueError("expected an id that is not empty, by which results name the case")
    return case_id


class FileCase(EvalCase):
    """A case as written in a dataset file: the input is a mapping, a recording may be embedded."""

    id: Annotated[StrictStr, AfterValidator(usable_id)]
    input: dict[str, Any]
    embedded_trace: Any = None
    schema_version: Annotated[StrictStr, AfterValidator(readable_version)] = "1.0"


def checked(raw: Any, report: ReportProblem) -> tuple[FileCase | None, list[Problem]]:
    """A case from plain data, or its problems."""
    if not isinstance(raw, dict):
        return None, [report((), f"expected a mapping, found {as_written(raw)}")]
    fields = {key: value for key, value in raw.items() if value is not None or key not in _EMPTY_AS_NULL}
    endless = [report(place, f"expected a JSON value, found {found}") for place, found in not_finite(raw)]
    try:
        case = FileCase.model_validate(fields)
    except ValidationError as error:
        return None, [*_problems(error, report), *endless]
    return (None if endless else case), endless


def case_of_line(
    line: bytes, report: ReportProblem, *, recording_needed: bool
) -> tuple[FileCase | None, list[Problem]]:
    """The case in a line of JSON, or its problems."""
    problems: list[Problem] = []
    case: FileCase | None
    try:
        case = FileCase.model_validate_json(line)
        # hardly any line can contain NaN or infinity: only those are examined slowly
        if _NO_JSON.search(line) is not None:
            case, problems = _read_slowly(line, report)
    except ValidationError:
        case, problems = _read_slowly(line, report)
    if case is not None:
        problems = take_recording(case, report, needed=recording_needed)
    return case, problems


def _read_slowly(line: bytes, report: ReportProblem) -> tuple[FileCase | None, list[Problem]]:
    """As plain data, in which nulls may mean empty, or the problems."""
    try:
        raw = from_json(line)
    except ValueError as error:
        reason, _, column = str(error).partition(" at line 1 column ")
        return None, [report((), f"malformed JSON: {reason} (col {column or 1}){advice_on(line)}")]
    return checked(raw, report)


def _problems(error: ValidationError, report: ReportProblem) -> Iterator[Problem]:
    for item in error.errors(include_url=False):
        place, kind = item["loc"], as_written(item["input"])
        if place[-1] == "[key]":
            yield report(place[:-2], f"keys must be strings, found {kind}")
        elif item["type"] == "missing":
            meant = [str(key) for key in item["input"] if did_you_mean(str(key), [str(place[-1])])]
            known = FileCase.model_fields
            near = next((f"; should {key!r} be {place[-1]!r}?" for key in meant if key not in known), "")
            yield report(place, f"the required {place[-1]!r} is missing{near}")
        else:
            is_text = place == ("input",) and isinstance(item["input"], str)
            advice = "; give the text a name: {user_message: ...}" if is_text else remedy(item["type"], item["input"])
            yield report(place, f"{expectation(item['msg'])}, found {kind}{advice}")


def make_plain(case: FileCase) -> None:
    """Convert YAML values that JSON lacks, such as dates, into their form in the run's files."""
    case.input = as_json_holds(case.input)
    case.metadata = as_json_holds(case.metadata)
    case.expected.facts = as_json_holds(case.expected.facts)


def as_json_holds(value: Any) -> Any:
    """The form of a YAML value in a run's files."""
    return to_jsonable_python(value, bytes_mode="base64")


def take_recording(case: FileCase, report: ReportProblem, *, needed: bool) -> list[Problem]:
    """Turn the recorded trace of a case, or its list of traces for the trials, into the input of the target
    `replay`."""
    if case.embedded_trace is None and case.recorded is None:
        return [report(("embedded_trace",), "needs an embedded_trace (embed_full_trace is true)")] if needed else []
    key = "recorded" if case.embedded_trace is None else "embedded_trace"
    value = as_json_holds(getattr(case, key))
    case.embedded_trace = None
    if value == []:
        return [report((key,), "expected a trace or a list of traces, found an empty list")]
    single = not isinstance(value, list)
    for i, trace in enumerate([value] if single else value):
        if isinstance(trace, dict) and is_newer(version := trace.get("schema_version")):
            place = (key, "schema_version") if single else (key, i, "schema_version")
            return [report(place, f"must be 1.x: a newer evalwright reads it, found {as_written(version)}")]
    try:
        traces = [msgspec.convert(value, Trace)] if single else msgspec.convert(value, list[Trace])
    except msgspec.ValidationError as error:
        message, _, inside = str(error).partition(" - at `$")
        return [report((key, *steps_of(inside.rstrip("`").partition("[...")[0])), f"not a trace: {message}")]
    for trace in traces:
        trace.started_at, trace.finished_at = _aware(trace.started_at), _aware(trace.finished_at)
    case.recorded = msgspec.to_builtins(traces[0] if single else traces)
    return []


def _aware(moment: datetime) -> datetime:
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


def unknown_case_keys(raw: Any, report: ReportProblem) -> Iterator[Problem]:
    """Keys of a case that nothing reads: they are allowed, but a misspelt one is easily overlooked."""
    if isinstance(raw, dict):
        yield from _strangers(raw, FileCase, (), report)
        if isinstance(raw.get("expected"), dict):
            yield from _strangers(raw["expected"], ExpectedBehavior, ("expected",), report)


def _strangers(
    raw: dict[Any, Any], model: type[EvalCase | ExpectedBehavior], place: Place, report: ReportProblem
) -> Iterator[Problem]:
    for key in raw:
        if key not in model.model_fields:
            message = f"nothing reads this key{did_you_mean(str(key), model.model_fields)}"
            yield replace(report((*place, key), message), unread=True)
