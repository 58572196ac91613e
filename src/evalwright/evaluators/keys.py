"""The keys of an evaluator's configuration: their names, defaults, and types in words."""

from __future__ import annotations

import inspect
import types
import typing
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

import msgspec

__all__ = ["Key", "fields_by_key", "in_words", "keys_of", "noun"]

_NOUNS = {str: "string", int: "int", float: "number", bool: "bool", list: "list", dict: "mapping"}
_UNIONS = (typing.Union, types.UnionType)
_LISTS = (list, Sequence)


class Key(msgspec.Struct, frozen=True):
    """One key of a configuration."""

    name: str
    type: str
    """In words: `a list of strings`."""
    required: bool
    default: Any = None
    """As JSON has it; None also if the key has no default."""


def keys_of(kind: Any) -> list[Key]:
    """The keys that a registered evaluator takes, required ones first."""
    if isinstance(kind, type) and issubclass(kind, msgspec.Struct):
        keys = [_of_field(field) for field in fields_by_key(kind).values()]
    else:
        keys = [_of_argument(argument) for argument in inspect.signature(kind, eval_str=True).parameters.values()]
    return sorted(keys, key=lambda key: not key.required)


def _of_field(field: msgspec.structs.FieldInfo) -> Key:
    default = field.default
    if field.default_factory is not msgspec.NODEFAULT:
        default = field.default_factory()
    absent = default is msgspec.NODEFAULT or default is msgspec.UNSET
    return Key(
        field.encode_name, in_words(field.type), field.required, None if absent else msgspec.to_builtins(default)
    )


def _of_argument(argument: inspect.Parameter) -> Key:
    missing = argument.default is argument.empty
    annotation = Any if argument.annotation is argument.empty else argument.annotation
    return Key(argument.name, in_words(annotation), missing, None if missing else argument.default)


@cache
def fields_by_key(kind: type[msgspec.Struct]) -> dict[str, msgspec.structs.FieldInfo]:
    """By key. msgspec reads the annotations anew each time, which takes most of the time of building evaluators."""
    return {field.encode_name: field for field in msgspec.structs.fields(kind)}


@cache
def in_words(expected: Any) -> str:
    """A type as a person says it, null left out: `a list of strings`, `an int`."""
    choices = typing.get_args(expected) if typing.get_origin(expected) in _UNIONS else (expected,)
    kinds = [kind for kind in choices if kind is not type(None) and kind is not msgspec.UnsetType]
    if set(kinds) == {int, float}:
        kinds = [float]
    return " or ".join(map(_one_in_words, kinds))


def _one_in_words(kind: Any) -> str:
    origin, arguments = typing.get_origin(kind), typing.get_args(kind)
    if origin is typing.Annotated:
        return in_words(arguments[0])
    if origin is typing.Literal:
        return "one of " + ", ".join(map(repr, arguments))
    if origin in _LISTS and arguments[0] is not Any:
        items = typing.get_args(arguments[0]) if typing.get_origin(arguments[0]) in _UNIONS else arguments[:1]
        return f"a list of {' or '.join(f'{noun(item)}s' for item in items)}"
    found = noun(origin or kind)
    return found if kind is Any else f"an {found}" if found[0] in "aeiou" else f"a {found}"


def noun(kind: Any) -> str:
    """A type in a word or two: `mapping`."""
    if kind is Any:
        return "any value"
    kind = typing.get_origin(kind) or kind
    if isinstance(kind, type) and issubclass(kind, (msgspec.Struct, Mapping)):
        return "mapping"
    return _NOUNS.get(kind) or str(getattr(kind, "__name__", kind))
