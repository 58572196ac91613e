"""Tests in a table, one per row; columns that begin with two underscores have a special meaning."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from evalwright.files.key_paths import as_written
from evalwright.formats.promptfoo.assertions import short_form
from evalwright.formats.promptfoo.doubts import doubt_cell
from evalwright.formats.promptfoo.origin import Origin
from evalwright.formats.promptfoo.tables import DELIMITER, CsvRow, cell_number

__all__ = ["tests_in"]

_EXPECTED = re.compile(r"__expected")
"""Whatever follows, the column has assertions in promptfoo."""
_CONFIG = re.compile(r"__config:__expected(\d*):(\w+)$")
_METADATA = "__metadata:"
_COMMA = re.compile(r"(?<!\\),")
_NEARLY = re.compile(r"_(expected\d*|prefix|suffix|description|providerOutput|metric|threshold|metadata:.*)$")
_LIKELY = (";", "\t", "|")
"""What spreadsheets write between cells in place of a comma."""
_PLAIN = ("__description", "__providerOutput", "__threshold", "__metric", "__prefix", "__suffix")


def tests_in(
    header: Sequence[str], rows: Iterable[CsvRow], file: str, origin: Origin
) -> list[tuple[int, dict[str, Any]]]:
    """The tests, as they would be written in YAML, each with its line; mistakes and doubts are reported with file and
    line."""
    header = [column.strip() for column in header]
    if len(header) == 1 and (likely := next((separator for separator in _LIKELY if separator in header[0]), None)):
        origin.warn(f"{file}:1: found one column, {header[0]!r}: set {DELIMITER} if {likely!r} is between the cells")
    for column, number in Counter(header).items():
        if number > 1:
            origin.warn(f"{file}:1: {number} columns are named {column!r}: only the last is read", unread=True)
        if _NEARLY.match(column):
            origin.warn(f"{file}:1: {column!r} is a variable: with two underscores, '_{column}', it says more")
        elif column == "expected" and not any(map(_EXPECTED.match, header)):
            origin.warn(f"{file}:1: the column 'expected' is a variable: '__expected' has what the output must be")
        elif column.startswith("__") and not _is_known(column):
            origin.warn(f"{file}:1: nothing reads the column {column!r}", unread=True)
    tests = [(line, _test(dict(zip(header, cells, strict=True)), origin, place)) for place, cells, line in rows]
    return [(line, {"description": f"Row #{number}", **test}) for number, (line, test) in enumerate(tests, 1)]


def _is_known(column: str) -> bool:
    return column in _PLAIN or bool(_EXPECTED.match(column) or _CONFIG.match(column)) or column.startswith(_METADATA)


def _test(row: dict[str, str], origin: Origin, place: str) -> dict[str, Any]:
    test: dict[str, Any] = {"vars": {key: value for key, value in row.items() if not key.startswith("__")}}
    expected = {key: short_form(row[key]) for key in row if _EXPECTED.match(key) and row[key].strip()}
    for key, value in row.items():
        for doubt in doubt_cell(value) if key in expected and expected[key]["type"] == "equals" else ():
            origin.warn(f"{place}: {key}: {doubt}")
        if match := _CONFIG.match(key):
            _configure(_meant(expected, match[1]), match[2], key, value, origin, place)
        elif key.startswith(_METADATA) and value.strip():
            name = key.removeprefix(_METADATA)
            listed = name.endswith("[]")
            test.setdefault("metadata", {})[name.removesuffix("[]")] = (
                [item.strip().replace("\\,", ",") for item in _COMMA.split(value)] if listed else value
            )
    _add_plain_cell(test, row, origin, place)
    if metric := row.get("__metric"):
        for assertion in expected.values():
            assertion["metric"] = metric
    if expected:
        test["assert"] = list(expected.values())
    return test


def _meant(expected: Mapping[str, dict[str, Any]], number: str) -> dict[str, Any] | None:
    """The assertion in a column; `__expected` and `__expected1` mean each other if there is only one of them."""
    same = ("__expected", "__expected1") if number in ("", "1") else ()
    return next((expected[key] for key in (f"__expected{number}", *same) if key in expected), None)


def _configure(assertion: dict[str, Any] | None, name: str, key: str, value: str, origin: Origin, place: str) -> None:
    threshold = cell_number(value)
    if threshold is None:
        origin.report(f"{place}: {key}: expected a number, found {as_written(value)}")
    elif name != "threshold":
        origin.report(f"{place}: {key}: only the threshold of an assertion can be set")
    elif assertion is not None:
        assertion["threshold"] = threshold


def _add_plain_cell(test: dict[str, Any], row: dict[str, str], origin: Origin, place: str) -> None:
    options = {key: row[f"__{key}"] for key in ("prefix", "suffix") if row.get(f"__{key}")}
    if options:
        test["options"] = options
    for key in ("description", "providerOutput"):
        if row.get(f"__{key}"):
            test[key] = row[f"__{key}"]
    if threshold := row.get("__threshold"):
        test["threshold"] = cell_number(threshold)
        if test["threshold"] is None:
            origin.report(f"{place}: __threshold: expected a number, found {as_written(threshold)}")
