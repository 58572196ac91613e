"""Cases from what a program has at hand: inputs, mappings, tables, files."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

import msgspec

from evalwright.api.problems import refused
from evalwright.api.tables import is_frame, rows_of_csv, rows_of_frame, rows_of_parquet
from evalwright.errors import InputError, Problem, did_you_mean
from evalwright.files.jsonl import advice_on, decoded, lines_of
from evalwright.files.key_paths import Place, bracketed, steps_of
from evalwright.files.plain import not_finite
from evalwright.model.snapshot import Case, Expected, snapshot

if TYPE_CHECKING:

    class DataFrame(Protocol):
        """A DataFrame of pandas or polars."""

        @property
        def columns(self) -> Any: ...


__all__ = ["CasesLike", "given_cases"]

CasesLike: TypeAlias = "Iterable[Any] | Mapping[str, Any] | DataFrame | str | os.PathLike[str]"
"""What is asked of the systems: inputs, cases or mappings; a mapping from id to input; a DataFrame; a file.

An input may be anything that JSON can hold. Besides, checkers take a list of cases and mappings for one of objects.
"""

_DEFAULTS = {
    field.name: field.default
    for field in msgspec.structs.fields(Case)
    if field.name not in ("recorded", "evaluators", "occurrence")
}
_KEYS = tuple(_DEFAULTS)
_VERSION = "schema_version"
_EXPECTED = tuple(f.name for f in msgspec.structs.fields(Expected))


def given_cases(given: Any) -> list[Case]:
    """The cases, numbered from "1" if they have no id. Raises InputError that lists every problem."""
    problems: list[Problem] = []
    cases = list(_cases(given, problems))
    again = [name for name, number in Counter(case.key for case in cases).items() if number > 1]
    problems += [refused("cases", f"two cases have the id {name!r}") for name in again]
    if not problems and not cases:
        problems.append(refused("cases", "expected at least one case, found none"))
    if problems:
        raise InputError(problems)
    return cases


def _cases(cases: Any, problems: list[Problem]) -> Iterator[Case]:
    for position, item in enumerate(_items(cases)):
        try:
            if isinstance(item, Case):
                yield _case_of_case(item)
            elif isinstance(item, Mapping):
                yield _case_of_mapping(item, position)
            else:
                yield Case(str(position + 1), _json_data(item, "an input"))
        except _NoCaseError as error:
            problems += (refused(bracketed(("cases", position, *place)), text) for place, text in error.mistakes)


class _NoCaseError(Exception):
    """What is wrong with a case: places in it, each with a message."""

    def __init__(self, *mistakes: tuple[Place, str]) -> None:
        super().__init__(mistakes)
        self.mistakes = mistakes


def _items(cases: Any) -> Iterable[Any]:
    if is_frame(cases):
        return rows_of_frame(cases)
    if isinstance(cases, str | os.PathLike):
        return _items_in_file(Path(cases))
    if isinstance(cases, Mapping):
        return [{"id": str(name), "input": question} for name, question in cases.items()]
    if isinstance(cases, Iterable) and not isinstance(cases, bytes):
        return cases
    expected = "a list of inputs or cases, a mapping from id to input, a DataFrame or a file"
    raise InputError(refused("cases", f"expected {expected}, found {type(cases).__name__}"))


def _items_in_file(path: Path) -> Iterable[Any]:
    """The cases of a file; of a suite file, the suite's."""
    if path == Path():
        raise InputError(refused("cases", "expected the path of a file, found an empty text"))
    if not path.is_file():
        raise InputError(refused("cases", f"there is no file {path}; a single input is written [{str(path)!r}]"))
    suffix = path.suffix.lower()
    if suffix == ".csv":
        return rows_of_csv(path)
    if suffix == ".parquet":
        return rows_of_parquet(path)
    if suffix not in (".jsonl", ".json", ".yaml", ".yml"):
        raise InputError(refused("cases", f"expected .jsonl, .json, .csv, .yaml or .parquet, found {path.name}"))
    lines = _items_in_lines(path) if suffix == ".jsonl" else _items_in_document(path)
    if lines is None:
        from evalwright.formats.loading import load_suite

        return map(snapshot, load_suite(path, to_run=False).cases)
    return lines


def _items_in_lines(path: Path) -> list[Any] | None:
    """The objects of a JSON Lines file; None if its cases are those of a suite format."""
    lines: list[Any] = []
    problems: list[Problem] = []
    for number, line in lines_of(path):
        try:
            lines.append(decoded(line))
        except ValueError as error:
            problems.append(Problem(str(path), f"broken JSON: {error}{advice_on(line)}", number))
    if problems:
        raise InputError(problems)
    return lines if not lines or not isinstance(lines[0], dict) or "input" in lines[0] else None


def _items_in_document(path: Path) -> list[Any] | None:
    """The cases of a list or of a file of cases; None for anything else, such as a suite."""
    from evalwright.files import yaml

    value = yaml.load(path, "true_false").value
    if isinstance(value, dict) and "cases" in value and value.keys() <= {"cases", "schema_version"}:
        version = value.get("schema_version", "1.0")
        if not (isinstance(version, str) and version.startswith("1.")):
            raise InputError(Problem(str(path), f"expected a version 1.x in quotes, found {version!r}", None, _VERSION))
        value = value["cases"]
    return value if isinstance(value, list) else None


def _case_of_case(case: Case) -> Case:
    """The case, if the types of its fields are right: nothing checked them when it was made."""
    if not isinstance(case.expected, Expected):
        raise _NoCaseError((("expected",), f"expected an Expected, found {type(case.expected).__name__}"))
    fields = {key: value for key, default in _DEFAULTS.items() if (value := getattr(case, key)) is not default}
    _convert(_json_data(fields, "a case"))
    if case.occurrence is msgspec.UNSET:  # else the format of the case tells cases apart without ids
        _must_have_id(case)
    return case


def _case_of_mapping(item: Mapping[str, Any], position: int) -> Case:
    mistakes: list[tuple[Place, str]]
    mistakes = [((str(key),), f"unknown key{did_you_mean(str(key), _KEYS)}") for key in item if key not in _KEYS]
    if mistakes:
        place, message = mistakes[-1]
        hint = "" if "input" in item else """; an input that is a mapping is written {'input': {...}}"""
        mistakes[-1] = place, f"{message} (known: {', '.join(_KEYS)}{hint})"
    elif "input" not in item:
        mistakes.append(((), "the key 'input' is missing"))
    expected = item.get("expected")
    if isinstance(expected, Mapping):
        strange = (key for key in expected if key not in _EXPECTED)
        mistakes += ((("expected", str(key)), f"unknown key{did_you_mean(str(key), _EXPECTED)}") for key in strange)
    elif isinstance(expected, str | int | float | list):
        like = "{'answer_should_include': ['...']}"
        mistakes.append((("expected",), f"expected a mapping like {like}, found {type(expected).__name__}"))
    if mistakes:
        raise _NoCaseError(*mistakes)
    fields = {"id": str(position + 1), **{key: value for key, value in item.items() if value is not None}}
    fields.setdefault("input", None)
    if isinstance(fields["id"], int) and not isinstance(fields["id"], bool):
        fields["id"] = str(fields["id"])
    return _must_have_id(_convert(_json_data(fields, "a case")))


def _must_have_id(case: Case) -> Case:
    if not case.id:
        raise _NoCaseError((("id",), "expected an id that is not empty, by which results name the case, found ''"))
    return case


def _convert(raw: dict[str, Any]) -> Case:
    try:
        return msgspec.convert(raw, Case)
    except msgspec.ValidationError as error:
        message, _, inside = str(error).partition(" - at `$")
        message = message.replace("`", "").replace(", got ", ", found ")
        message = message.replace("array", "list").replace("object", "dict")  # JSON's words, which are not Python's
        raise _NoCaseError((steps_of(inside.rstrip("`")), f"{message[:1].lower()}{message[1:]}")) from None


def _json_data(value: Any, what: str) -> Any:
    """The value as plain data that a run can store unchanged."""
    try:
        data = msgspec.to_builtins(value, str_keys=True)
        encoded = msgspec.json.encode(data)
    except (TypeError, ValueError, RecursionError) as error:
        why = f"{error}"
        raise _NoCaseError(((), f"expected {what} that JSON can hold: {why[:1].lower()}{why[1:]}")) from None
    if b"null" in encoded:  # NaN and infinities are written like this, too
        endless = [(place, f"expected a JSON value, found {found}") for place, found in not_finite(data)]
        if endless:
            raise _NoCaseError(*endless)
    return data
