"""Tables of cases: rows of a DataFrame, a CSV file or a Parquet file as mappings in the shape of a case."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from evalwright.errors import InputError, Problem, counted, did_you_mean
from evalwright.files.csv_records import CsvError, csv_records

__all__ = ["is_frame", "rows_of_csv", "rows_of_frame", "rows_of_parquet"]

_COLUMNS = ("id", "input", "tags", "group", "description", "note")
_NESTED = ("input", "expected", "metadata")
_LISTS = (
    "must_call_tools",
    "answer_should_include",
    "answer_should_not_include",
    "must_modify_files",
    "must_not_modify_files",
)


def is_frame(value: Any) -> bool:
    """Whether it is a DataFrame of pandas or polars; imports neither."""
    return type(value).__name__ == "DataFrame" and type(value).__module__.partition(".")[0] in ("pandas", "polars")


def rows_of_frame(frame: Any, file: str = "") -> Iterator[dict[str, Any]]:
    """Each row as a case. Raises InputError for columns that are not part of a case."""
    _check(map(str, frame.columns), file)
    records: Iterable[Mapping[Any, Any]]
    if type(frame).__module__.partition(".")[0] == "polars":
        records = frame.iter_rows(named=True)
    else:
        records = frame.to_dict("records")
    for record in records:
        yield _case({str(key): _plain_value(value) for key, value in record.items()})


def rows_of_csv(path: Path) -> Iterator[dict[str, Any]]:
    """Each line as a case; a cell that begins with `[` or `{` is JSON. Raises InputError."""
    try:
        with path.open(newline="", encoding="utf-8-sig") as file:
            records = csv_records(file)
            _, columns = next(records, (1, []))
            _check(columns, str(path))
            for line, cells in records:
                if len(cells) != len(columns):
                    mismatch = f"expected {counted(len(columns), 'cell')}, found {counted(len(cells), 'cell')}"
                    raise InputError(Problem(str(path), mismatch, line))
                yield _case({name: _value_of_text(cell) for name, cell in zip(columns, cells, strict=True) if cell})
    except CsvError as error:
        raise InputError(Problem(str(path), f"is not CSV: {error}", error.line)) from None
    except UnicodeDecodeError as error:
        raise InputError(Problem(str(path), f"is not UTF-8 text: {error}")) from None


def rows_of_parquet(path: Path) -> Iterator[dict[str, Any]]:
    """Each row as a case. Raises InputError, also if neither pandas nor polars is installed."""
    from evalwright.api.frames import library

    module = library(None, f"reading {path}")
    return rows_of_frame(module.read_parquet(path), str(path))


def _check(columns: Iterable[str], file: str) -> None:
    known = [*_COLUMNS, *(f"{name}.…" for name in _NESTED)]
    listed = list(columns)
    again = [name for name, count in Counter(listed).items() if count > 1]
    strange = [c for c in listed if c not in _COLUMNS and not (c.partition(".")[0] in _NESTED and c.partition(".")[2])]
    problems = []
    if not any(c == "input" or c.startswith("input.") for c in listed):
        problems.append(
            Problem(file, "expected a column 'input' or 'input.…', found none", key="" if file else "cases")
        )
    for name in strange:
        key = name if file else f"cases[{name!r}]"
        near = did_you_mean(name, _COLUMNS)
        problems.append(Problem(file, f"unknown column{near} (known: {', '.join(known)})", key=key))
    twice = "there is more than one such column"
    problems += (Problem(file, twice, key=name if file else f"cases[{name!r}]") for name in again)
    for whole in ("input", "expected.facts"):
        for part in listed:
            if whole in listed and part.startswith(f"{whole}."):
                key = part if file else f"cases[{part!r}]"
                problems.append(Problem(file, f"would be a part of the column {whole!r}, which is there, too", key=key))
    if problems:
        raise InputError(problems)


def _case(row: Mapping[str, Any]) -> dict[str, Any]:
    case: dict[str, Any] = {}
    for column, value in row.items():
        if value is None:
            continue
        section, _, key = column.partition(".")
        if key and section == "expected":
            _expect(case.setdefault("expected", {}), key, value)
        elif key:
            case.setdefault(section, {})[key] = value
        elif column == "tags":
            case["tags"] = [tag.strip() for tag in value.split(",")] if isinstance(value, str) else list(value)
        else:
            case[column] = str(value) if column in ("id", "group") else value
    return case


def _expect(expected: dict[str, Any], key: str, value: Any) -> None:
    section, _, fact = key.partition(".")
    if section == "facts" and fact:
        expected.setdefault("facts", {})[fact] = value
    else:
        expected[key] = [value] if key in _LISTS and isinstance(value, str) else value


def _value_of_text(value: str) -> Any:
    if value[:1] in ("[", "{"):
        try:
            return json.loads(value)
        except ValueError:
            return value
    return value


def _plain_value(value: Any) -> Any:
    """Numpy values as Python ones, times of pandas as text, like those of Python; missing values as None."""
    if hasattr(value, "tolist"):
        value = value.tolist()
    kind = type(value).__name__
    if kind in ("Timestamp", "Timedelta"):
        return value.isoformat().replace("+00:00", "Z")
    return None if value != value or kind in ("NAType", "NaTType") else value
