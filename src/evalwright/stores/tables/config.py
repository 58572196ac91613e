"""The configuration of a store in a database, checked."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import UnionType
from typing import Any, TypeVar, get_args, get_origin

import msgspec

from evalwright.errors import InputError, Problem, did_you_mean

__all__ = ["read_config"]

T = TypeVar("T")
_WORDS = {
    str: "a text",
    int: "a whole number",
    float: "a number",
    bool: "true or false",
    dict: "a mapping",
    list: "a list",
}


def read_config(kind: type[T], config: Mapping[str, Any]) -> T:
    """The configuration as `kind`, a struct. Raises InputError for all unknown and missing keys and wrong values."""
    if problems := [*_problems(kind, config)]:
        raise InputError(problems)
    return msgspec.convert(config, kind)


def _problems(kind: type, config: Mapping[str, Any]) -> Iterator[Problem]:
    fields = msgspec.structs.fields(kind)
    types = {field.name: field.type for field in fields}
    for field in fields:
        if field.required and field.name not in config:
            message = f"the required key {field.name!r} is missing, expected {_in_words(field.type)}"
            yield Problem("", message, None, field.name)
    for key, value in config.items():
        if key not in types:
            yield Problem("", f"unknown key{did_you_mean(key, types)}", None, key)
            continue
        try:
            msgspec.convert(value, types[key])
        except (msgspec.ValidationError, RecursionError):
            found = "null" if value is None else _WORDS.get(type(value), type(value).__name__)
            yield Problem("", f"expected {_in_words(types[key])}, found {found}", None, key)


def _in_words(expected: Any) -> str:
    """A type without null."""
    choices = get_args(expected) if get_origin(expected) is UnionType else (expected,)
    return " or ".join(_WORDS[get_origin(choice) or choice] for choice in choices if choice is not type(None))
