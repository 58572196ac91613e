"""From an evaluator's type and configuration to the evaluator, every mistake of the configuration at once."""

from __future__ import annotations

import types
import typing
from collections.abc import Mapping
from functools import cache
from typing import Any, cast

import msgspec

from evalwright.errors import InputError, Problem, did_you_mean
from evalwright.model.protocols import Evaluator
from evalwright.registry import load

__all__ = ["build_evaluator"]

_WORDS = {
    str: "string",
    int: "int",
    float: "number",
    bool: "bool",
    list: "list",
    dict: "mapping",
    type(None): "null",
}


def build_evaluator(type_name: str, config: Mapping[str, Any]) -> Evaluator:
    """The evaluator registered under `type_name` with its configuration.

    Raises InputError for an unknown type, and for a bad configuration one whose problems have keys relative to it.
    """
    kind = load("evaluators", type_name)
    if not (isinstance(kind, type) and issubclass(kind, msgspec.Struct)):
        return _of_others(kind, config)
    values, problems = _checked(kind, config)
    if not problems:
        try:
            return cast(Evaluator, kind(**values))
        except InputError as error:
            problems.extend(error.problems)
    raise InputError(problems)


def _checked(kind: type[msgspec.Struct], config: Mapping[str, Any]) -> tuple[dict[str, Any], list[Problem]]:
    """The configuration's values by field, and what is wrong with them."""
    fields = {field.encode_name: field for field in msgspec.structs.fields(kind)}
    values: dict[str, Any] = {}
    problems = [
        Problem("", f"unknown key {key!r}{did_you_mean(str(key), fields)}", key=str(key))
        for key in config
        if key not in fields
    ]
    for name, field in fields.items():
        if name not in config:
            if field.required:
                problems.append(Problem("", f"the required key {name!r} is missing", key=name))
            continue
        expected = _hints(kind)[field.name]
        try:
            values[field.name] = msgspec.convert(config[name], expected)
        except msgspec.ValidationError as error:
            problems.append(_mismatch(name, expected, config[name], str(error)))
    return values, problems


@cache
def _hints(kind: type[msgspec.Struct]) -> dict[str, Any]:
    return typing.get_type_hints(kind, include_extras=True)


def _mismatch(name: str, expected: Any, found: Any, detail: str) -> Problem:
    """What was found and what was expected; a value of the right type but out of range keeps msgspec's words."""
    words = _words(expected)
    where, bound = name, ""
    if " - at `$" in detail:
        detail, _, inner = detail.partition(" - at `$")
        where = name + inner.rstrip("`").replace("[...]", ".*")
    if ">" in detail or "<" in detail:
        bound = " " + detail[detail.index(next(c for c in detail if c in "<>")) :]
    return Problem("", f"{name!r} must be {words}{bound}, found {_shown(found)}", key=where)


def _words(expected: Any) -> str:
    """A type as a person says it: `list of string`, `int or null`."""
    origin = typing.get_origin(expected)
    if origin is typing.Annotated:
        return _words(typing.get_args(expected)[0])
    if origin in (typing.Union, types.UnionType):
        return " or ".join(_words(argument) for argument in typing.get_args(expected))
    if origin is typing.Literal:
        return "one of " + ", ".join(repr(choice) for choice in typing.get_args(expected))
    if origin is list:
        return f"a list of {_words(typing.get_args(expected)[0])}"
    if origin is dict:
        return "a mapping"
    return _WORDS.get(expected, "any value")


def _shown(value: Any) -> str:
    word = _WORDS.get(type(value), type(value).__name__)
    if value is None or isinstance(value, (list, dict)):
        return f"a {word}" if value is not None else "null"
    return f"the {word} {str(value)[:60]!r}" if isinstance(value, str) else f"the {word} {value}"


def _of_others(kind: Any, config: Mapping[str, Any]) -> Evaluator:
    """A class that checks its own keyword arguments."""
    try:
        return cast(Evaluator, kind(**config))
    except (TypeError, ValueError) as error:
        raise InputError(Problem("", str(error))) from error
