"""From the columns of a row to the parts of a case: `map` and `types` of a dataset."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Mapping
from typing import Any

import msgspec

from evalwright.errors import InputError, Problem, did_you_mean
from evalwright.files.key_paths import as_written
from evalwright.files.strict_json import JsonFlaw, strict_json
from evalwright.formats.native.cases import ReportProblem
from evalwright.formats.shared.findings import remedy

__all__ = ["Conversions", "MappedRows"]

_PARTS = ("id", "input", "expected", "metadata", "tags", "group")
_OPEN = ("input", "expected", "metadata")
_WHOLE = ("embedded_trace", "recorded", "schema_version", "group")
"""Keys of a case that a whole column may supply."""
_LISTS = ("expected.answer_should_include", "expected.answer_should_not_include", "expected.must_call_tools", "tags")
"""Parts that accept a single text as a list of one."""
_FIELD = re.compile(r"\{([^{}]+)\}")
_WHOLE_NUMBER = re.compile(r"[+-]?[0-9]+")
_NUMBER = re.compile(r"[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]+)?")
_ABSENT = object()


class MappedRows:
    """Makes a case from a row: by the user's `map`, else by the names of its columns."""

    def __init__(self, given: Any) -> None:
        if given is not None and not isinstance(given, Mapping):
            found = f"expected a mapping of parts of a case to columns, found {as_written(given)}"
            raise InputError(Problem("", found, key="dataset.map"))
        self._map: dict[str, Any] | None = None if given is None else dict(given)
        self.unread: dict[str, None] = {}
        """Columns that became no part of a case, because others are named as its input."""
        problems: list[Problem] = []
        for part, source in (self._map or {}).items():
            if not _is_part(str(part)):
                message = f"{part!r} is not part of a case{did_you_mean(str(part), _PARTS)}"
                problems.append(Problem("", message, key="dataset.map"))
            elif wrong := _no_source(source):
                problems.append(Problem("", f"expected a column or {{value: X}}, {wrong}", key=f"dataset.map.{part}"))
        if self._map is not None and not problems and not any(part.partition(".")[0] == "input" for part in self._map):
            message = "no column is the input, which every case has: add one, such as input.question"
            problems.append(Problem("", message, key="dataset.map"))
        if problems:
            raise InputError(problems)

    def reads(self, column: str) -> bool:
        """Whether the column becomes a part of cases."""
        return self._map is None or any(column in _columns(source) for source in self._map.values())

    def misnamed(self, columns: Collection[str]) -> Iterator[tuple[str, str]]:
        """The columns whose names would mean a part of a case if they were written as it is, with that part."""
        for column in columns if self._map is None else ():
            first, dot, rest = column.strip().partition(".")
            part = f"{first.lower()}{dot}{rest}"
            if part != column and part not in columns and _is_part(part) and (part in ("id", "tags") or "." in part):
                yield column, part

    def case(
        self, row: Mapping[str, Any], position: int, report: ReportProblem, more: Mapping[str, Any]
    ) -> tuple[dict[str, Any], list[str], list[Problem]]:
        """The plain data of a case, the columns that the map names but the row lacks, and the row's mistakes; `more`
        has parts that are in no column."""
        raw: dict[str, Any] = {}
        absent: list[str] = []
        problems: list[Problem] = []
        for part, value in [*self._parts(row, absent), *more.items()]:
            if not _put(raw, part, [value] if part in _LISTS and isinstance(value, str) else value):
                problems.append(report((part,), "cannot be this part of the case: another is the same, or contains it"))
        id = raw.get("id")
        numbered = isinstance(id, int) and not isinstance(id, bool)
        raw["id"] = f"row-{position}" if id is None or id == "" else str(id) if numbered else id
        raw.setdefault("input", {})
        return raw, absent, problems

    def _parts(self, row: Mapping[str, Any], absent: list[str]) -> Iterator[tuple[str, Any]]:
        if self._map is None:
            yield from _by_name(row, self.unread)
            return
        for part, source in self._map.items():
            value = _mapped_value(row, source, absent)
            if part == "input" and not isinstance(value, dict):
                part = f"input.{_name(source)}"
            yield part, value


def _no_source(source: Any) -> str:
    """Why the right side of an entry of the map is none; empty if it is one."""
    if isinstance(source, Mapping):
        return "" if [*source] == ["value"] else f"found a mapping of {_quoted_keys([str(key) for key in source])}"
    if isinstance(source, str):
        return ""
    return f"found {as_written(source)}{remedy('string_type', source)}"


def _quoted_keys(keys: list[str]) -> str:
    return ", ".join(map(repr, keys[:5])) + "".join(did_you_mean(key, ("value",)) for key in keys[:1]) or "nothing"


def _is_part(name: str) -> bool:
    first, dot, rest = name.partition(".")
    return first in _OPEN and (not dot or bool(rest)) if first in _OPEN else name in _PARTS


def _columns(source: Any) -> list[str]:
    if not isinstance(source, str):
        return []
    fields = _FIELD.findall(source)
    return fields or [source, source.partition(".")[0]]


def _name(source: Any) -> str:
    return source if isinstance(source, str) and not _FIELD.search(source) else "value"


def _by_name(row: Mapping[str, Any], unread: dict[str, None]) -> Iterator[tuple[str, Any]]:
    """Columns named like parts of a case become those parts; if none is the input, all the others are."""
    own = {name for name in row if name.partition(".")[0] == "input"}
    for name, value in row.items():
        first = name.partition(".")[0]
        if name in ("id", "tags", *_WHOLE) or (first in _OPEN and (first != name or isinstance(value, dict))):
            yield name, value
        elif name == "input":
            yield "input.input", value
        elif not own:
            yield f"input.{name}", value
        else:
            unread[name] = None


def _mapped_value(row: Mapping[str, Any], source: Any, absent: list[str]) -> Any:
    """The value for a row of one entry of the map: a column, a path, a fixed value, or text with columns in it."""
    if isinstance(source, Mapping):
        return source["value"]
    if _FIELD.search(source):
        return _FIELD.sub(lambda match: _text_of_cell(_at(row, match[1], absent)), source)
    return _at(row, source, absent)


def _at(row: Mapping[str, Any], path: str, absent: list[str]) -> Any:
    if path in row:
        return row[path]
    value: Any = row
    for step in path.split("."):
        value = value.get(step, _ABSENT) if isinstance(value, Mapping) else _ABSENT
    if value is _ABSENT:
        absent.append(path)
        return None
    return value


def _text_of_cell(value: Any) -> str:
    return value if isinstance(value, str) else "" if value is None else msgspec.json.encode(value).decode()


def _put(raw: dict[str, Any], part: str, value: Any) -> bool:
    """Set a dotted part, unless that would replace another: parts of the input may be nested, all others follow the
    shape of a case."""
    *steps, last = part.split(".")
    inside = raw
    for step in steps:
        inner = inside.get(step)
        if inner is None:
            inner = inside[step] = {}
        if not isinstance(inner, dict):
            return False
        inside = inner
    return inside.setdefault(last, value) is value


class Conversions:
    """`types`: how to read the text of a column. An empty cell of a converted column is null, or an empty list for
    `list`."""

    def __init__(self, given: Any) -> None:
        if not isinstance(given, Mapping):
            found = f"expected a mapping of columns to types, found {as_written(given)}"
            raise InputError(Problem("", found, key="dataset.types"))
        wrong = {column: name for column, name in given.items() if not isinstance(name, str) or name not in _CONVERTED}
        if wrong:
            raise InputError(
                Problem("", f"unknown type {name!r}; expected {', '.join(_CONVERTED)}", key=f"dataset.types.{column}")
                for column, name in wrong.items()
            )
        self.columns: dict[str, str] = dict(given)

    def of(self, row: dict[str, Any], report: ReportProblem) -> tuple[dict[str, Any], list[Problem]]:
        """The row with its columns converted, and the cells that cannot be converted."""
        if not self.columns:
            return row, []
        parts, problems = dict(row), []
        for column, name in self.columns.items():
            text = parts.get(column)
            if not isinstance(text, str):
                continue
            try:
                parts[column] = _CONVERTED[name](text)
            except (ValueError, RecursionError) as error:
                why = f": {error}" if isinstance(error, JsonFlaw) else ""
                problems.append(report((column,), f"expected {_WORDS[name]}, found {text[:80]!r}{why}"))
        return parts, problems


def _int(text: str) -> int | None:
    return int(_number_text(text, _WHOLE_NUMBER)) if text.strip() else None


def _float(text: str) -> float | None:
    if not text.strip():
        return None
    number = float(_number_text(text, _NUMBER))
    if number - number != 0:
        raise ValueError(text)
    return number


def _number_text(text: str, pattern: re.Pattern[str]) -> str:
    """The number in a cell. Raises ValueError for forms that only Python accepts: `1_000`, digits of other scripts."""
    match = pattern.fullmatch(text.strip())
    if match is None:
        raise ValueError(text)
    return match[0]


def _bool(text: str) -> bool | None:
    word = text.strip().lower()
    if not word:
        return None
    if word not in ("true", "false", "1", "0", "yes", "no"):
        raise ValueError(text)
    return word in ("true", "1", "yes")


def _json(text: str) -> Any:
    return strict_json(text.encode()) if text.strip() else None


def _list(text: str) -> list[str]:
    return [item.strip() for item in text.split(";")] if text.strip() else []


_CONVERTED: dict[str, Callable[[str], Any]] = {
    "int": _int, "float": _float, "bool": _bool, "json": _json, "list": _list, "text": str,
}  # fmt: skip
_WORDS = {
    "int": "a whole number", "float": "a number", "bool": "true or false, yes or no, 1 or 0", "json": "JSON",
    "list": "a list", "text": "text",
}  # fmt: skip
