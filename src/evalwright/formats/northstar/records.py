"""The records of NorthStar files, unchecked."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from evalwright.errors import FirstProblems, InputError, Problem
from evalwright.files.jsonl import lines_of
from evalwright.files.key_paths import Place, as_written
from evalwright.files.paths import unreadable

__all__ = ["Record", "is_lines", "json_kind", "parsed_line", "records_of"]


"""The most mistakes reported for one file."""


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
        problems = FirstProblems(str(path))
        for index, (number, line) in enumerate(lines_of(path)):
            try:
                yield Record(parsed_line(path, number, line), index, number)
            except InputError as error:
                problems.add(*error.problems)
        problems.refuse()
        return
    document = _document(path)
    if isinstance(document, dict) and "cases" not in document:
        yield Record(document, 0)
        return
    above: Place = () if isinstance(document, list) else ("cases",)
    for index, value in enumerate(_listed_records(path, document)):
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


def _listed_records(path: Path, document: Any) -> list[Any]:
    if isinstance(document, list):
        return document
    if not isinstance(document, dict):
        kind = json_kind(document)
        message = f"Invalid JSON dataset: found {kind}, expected a list of cases, an object with 'cases' or one case"
        raise InputError(Problem(str(path), message))
    cases = document["cases"]
    if not isinstance(cases, list):
        raise InputError(Problem(str(path), f"'cases' must be a list, found {json_kind(cases)}", key="cases"))
    return cases


def json_kind(value: Any) -> str:
    return as_written(value, "an object")
