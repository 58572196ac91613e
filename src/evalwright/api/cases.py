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
from evalwright.model.snapshot import Case, Expected, snapshot

if TYPE_CHECKING:

    class DataFrame(Protocol):
        """A DataFrame of pandas or polars."""

        @property
        def columns(self) -> Any: ...


__all__ = ["CasesLike", "given_cases"]

CasesLike: TypeAlias = (
    "Iterable[Case | Mapping[str, Any] | str] | Mapping[str, Any] | DataFrame | str | os.PathLike[str]"
)
"""What is asked of the systems: inputs, cases or mappings; a mapping from id to input; a DataFrame; a file."""

_KEYS = tuple(f.name for f in msgspec.structs.fields(Case) if f.name not in ("recorded", "evaluators", "occurrence"))
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


def _cases(given: Any, problems: list[Problem]) -> Iterator[Case]:
    for position, item in enumerate(_items(given)):
        place = f"cases[{position}]"
        if isinstance(item, Case):
            case: Case | str = item
        elif isinstance(item, Mapping):
            case = _of_mapping(item, position)
        else:
            case = _of_input(item, position)
        if isinstance(case, str):
            key, _, message = case.rpartition("\0")
            problems.append(refused(f"{place}{key}", message))
        else:
            yield case


def _items(given: Any) -> Iterable[Any]:
    if is_frame(given):
        return rows_of_frame(given)
    if isinstance(given, str | os.PathLike):
        return _of_file(Path(given))
    if isinstance(given, Mapping):
        return [{"id": str(name), "input": asked} for name, asked in given.items()]
    if isinstance(given, Iterable) and not isinstance(given, bytes):
        return given
    expected = "a list of inputs or cases, a mapping from id to input, a DataFrame or a file"
    raise InputError(refused("cases", f"expected {expected}, found {type(given).__name__}"))


def _of_file(path: Path) -> Iterable[Any]:
    """The cases of a file; of a suite file, the suite's."""
    if not path.is_file():
        raise InputError(refused("cases", f"there is no file {path}; a single input is written [{str(path)!r}]"))
    if path.suffix == ".csv":
        return rows_of_csv(path)
    if path.suffix == ".parquet":
        return rows_of_parquet(path)
    if path.suffix not in (".jsonl", ".json", ".yaml", ".yml"):
        raise InputError(refused("cases", f"expected .jsonl, .json, .csv, .yaml or .parquet, found {path.name}"))
    found = _of_lines(path) if path.suffix == ".jsonl" else _of_document(path)
    if found is None:
        from evalwright.formats.loading import load_suite

        return map(snapshot, load_suite(path, to_run=False).cases)
    return found


def _of_lines(path: Path) -> list[Any] | None:
    """The objects of a JSON Lines file; None if its cases are those of a suite format."""
    lines: list[Any] = []
    for number, line in enumerate(path.read_bytes().splitlines(), 1):
        if line.strip():
            try:
                lines.append(msgspec.json.decode(line))
            except (msgspec.DecodeError, RecursionError) as error:
                raise InputError(Problem(str(path), f"broken JSON: {error}", number)) from error
    return lines if not lines or not isinstance(lines[0], dict) or "input" in lines[0] else None


def _of_document(path: Path) -> list[Any] | None:
    from evalwright.files import yaml

    value = yaml.load(path, "true_false").value
    if isinstance(value, dict) and value.keys() == {"cases"}:
        value = value["cases"]
    return value if isinstance(value, list) else None


def _of_input(item: Any, position: int) -> Case | str:
    try:
        return Case(str(position + 1), msgspec.to_builtins(item))
    except (TypeError, ValueError, RecursionError) as error:
        return f"\0expected an input that JSON can hold: {error}"


def _of_mapping(item: Mapping[str, Any], position: int) -> Case | str:
    """A case, or its problem as a key path and a message."""
    strange = next((key for key in item if key not in _KEYS), None)
    if strange is not None:
        return f".{strange}\0unknown key{did_you_mean(str(strange), _KEYS)} (known: {', '.join(_KEYS)})"
    if "input" not in item:
        return "\0the key 'input' is missing"
    expected = item.get("expected")
    if isinstance(expected, Mapping):
        strange = next((key for key in expected if key not in _EXPECTED), None)
        if strange is not None:
            return f".expected.{strange}\0unknown key{did_you_mean(str(strange), _EXPECTED)}"
    given = {"id": str(position + 1), **{key: value for key, value in item.items() if value is not None}}
    given.setdefault("input", None)
    if isinstance(given["id"], int):
        given["id"] = str(given["id"])
    try:
        return msgspec.convert(msgspec.to_builtins(given), Case)
    except (msgspec.ValidationError, TypeError, ValueError, RecursionError) as error:
        message, _, inside = str(error).partition(" - at `$")
        message = message.replace("`", "").replace(", got ", ", found ")
        return f"{inside.rstrip('`')}\0{message[:1].lower()}{message[1:]}"
