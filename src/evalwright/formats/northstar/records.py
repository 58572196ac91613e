"""Cases as NorthStar files write them, and the mistakes in them."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

from pydantic import BaseModel, ConfigDict, Field, StrictStr, ValidationError

from evalwright.errors import InputError, Problem, did_you_mean
from evalwright.files.jsonl import lines_of
from evalwright.files.key_paths import Place, bracketed
from evalwright.files.paths import unreadable
from evalwright.formats.shared.findings import expectation, kind_found, remedy
from evalwright.model.conversation_case import (
    ConversationExpectation,
    ExpectedStateTransition,
    ExpectedToolArguments,
    TraceExpectation,
)

__all__ = ["MOST_PROBLEMS", "EvalCase", "EvalMetrics", "Record", "checked", "is_lines", "parsed_line", "records_of"]


MOST_PROBLEMS = 100
"""The most mistakes reported for one file."""


class EvalMetrics(BaseModel):
    """The measurements of a recorded run; null for those not taken."""

    model_config: ClassVar[ConfigDict] = ConfigDict(extra="forbid")

    latency_ms: float | None = None
    cost_usd: float | None = None


class EvalCase(BaseModel):
    """One recorded conversation and what is expected of it."""

    model_config: ClassVar[ConfigDict] = ConfigDict(extra="forbid")

    id: StrictStr
    input: Any = None
    trace: dict[str, Any] | None = None
    """The exported trace of the run; looked at when the case is judged."""
    messages: list[dict[str, Any]]
    expected: ConversationExpectation = Field(default_factory=ConversationExpectation)
    metrics: EvalMetrics = Field(default_factory=EvalMetrics)
    metadata: dict[str, Any] = Field(default_factory=dict)


class Record(NamedTuple):
    """One record of a file: its number (from 0) and, in JSON Lines, its line (from 1), else its place in the
    document."""

    value: Any
    number: int
    line: int | None = None
    at: Place = ()

    def place(self) -> str:
        named = self.value.get("id") if isinstance(self.value, dict) else None
        where = f"case {self.number}" if self.line is None else f"line {self.line}"
        return f"{where}, id {named!r}" if isinstance(named, str) else where


def is_lines(path: Path) -> bool:
    """Whether a file is JSON Lines rather than JSON. Raises InputError for any other suffix."""
    suffix = path.suffix.lower()
    if suffix not in (".json", ".jsonl"):
        found = f"the suffix {suffix!r}" if suffix else "no suffix"
        raise InputError(Problem(str(path), f"Unsupported eval dataset format: {found}, expected JSON or JSONL"))
    return suffix == ".jsonl"


def records_of(path: Path, *, lines: bool) -> Iterator[Record]:
    """Every record, unchecked. Raises InputError if it is not JSON; in JSON Lines at the end, with all mistakes."""
    if lines:
        problems: list[Problem] = []
        for index, (number, line) in enumerate(lines_of(path)):
            try:
                yield Record(parsed_line(path, number, line), index, number)
            except InputError as error:
                problems += error.problems[: MOST_PROBLEMS - len(problems)]
        if problems:
            raise InputError(problems)
        return
    document = _document(path)
    if isinstance(document, dict) and "cases" not in document:
        yield Record(document, 0)
        return
    above: Place = () if isinstance(document, list) else ("cases",)
    for index, value in enumerate(_listed(path, document)):
        yield Record(value, index, at=(*above, index))


def parsed_line(path: Path, number: int, line: bytes) -> Any:
    try:
        return json.loads(line.decode("utf-8"))
    except UnicodeDecodeError as error:
        raise InputError(Problem(str(path), f"Invalid JSONL at line {number}: not utf-8: {error}", number)) from error
    except (ValueError, RecursionError) as error:
        raise InputError(Problem(str(path), f"Invalid JSONL at line {number}: {error}", number)) from error


def _document(path: Path) -> Any:
    try:
        return json.loads(path.read_bytes().decode("utf-8-sig"))
    except OSError as error:
        raise InputError(Problem(str(path), unreadable(path, error))) from error
    except UnicodeDecodeError as error:
        raise InputError(Problem(str(path), f"Invalid JSON dataset: not utf-8: {error}")) from error
    except (ValueError, RecursionError) as error:
        line = error.lineno if isinstance(error, json.JSONDecodeError) else None
        raise InputError(Problem(str(path), f"Invalid JSON dataset: {error}", line)) from error


def _listed(path: Path, document: Any) -> list[Any]:
    if isinstance(document, list):
        return document
    if not isinstance(document, dict):
        found = _kind(document)
        message = f"Invalid JSON dataset: found {found}, expected a list of cases, an object with 'cases' or one case"
        raise InputError(Problem(str(path), message))
    cases = document["cases"]
    if not isinstance(cases, list):
        raise InputError(Problem(str(path), f"'cases' must be a list, found {_kind(cases)}", key="cases"))
    return cases


def checked(record: Record, file: str) -> tuple[EvalCase | None, list[Problem]]:
    """The case of a record, or everything that is wrong with it."""
    try:
        return EvalCase.model_validate(record.value), []
    except ValidationError as error:
        problems = error.errors(include_url=False)
    except RecursionError:
        message = f"Invalid eval case ({record.place()}): nested too deeply"
        return None, [Problem(file, message, record.line, bracketed(record.at))]
    return None, list(_problems(record, file, problems))


def _problems(record: Record, file: str, found: Iterable[Any]) -> Iterator[Problem]:
    where = record.place()
    for item in found:
        place = item["loc"]
        message = f"Invalid eval case ({where}): {_message(place, item)}"
        yield Problem(file, message, record.line, bracketed((*record.at, *place)))


_FIELDS: dict[str, type[BaseModel]] = {
    "": EvalCase,
    "expected": ConversationExpectation,
    "expected.trace": TraceExpectation,
    "metrics": EvalMetrics,
    "tool_arguments": ExpectedToolArguments,
    "allowed_state_transitions": ExpectedStateTransition,
}


def _message(place: tuple[Any, ...], item: Any) -> str:
    if item["type"] == "missing":
        return "it is missing"
    if item["type"] == "extra_forbidden":
        above = [step for step in place[:-1] if isinstance(step, str)]
        kind = _FIELDS.get(".".join(above)) or _FIELDS.get(above[-1] if above else "", EvalCase)
        return f"unknown key{did_you_mean(str(place[-1]), kind.model_fields)}"
    wanted = expectation(item["msg"]).replace("a mapping", "an object")
    return f"{wanted}, found {_kind(item['input'])}{remedy(item['type'], item['input'])}"


def _kind(value: Any) -> str:
    return kind_found(value, "an object")
