"""Values, texts and types in words, for the reasons that evaluators give; short enough for a list of failures."""

from __future__ import annotations

import reprlib
import types
import typing
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import is_dataclass
from functools import cache
from typing import Any

import msgspec

from evalwright.errors import apart_from, shorten

__all__ = ["assigned", "called_with", "in_words", "listed", "noun", "number", "shown"]

LONGEST = 120
"""Characters of quoted text in a reason."""
_BITS_OF_LONGEST = 256
"""An integer with fewer fits into a reason."""

_NOUNS = {str: "string", int: "integer", float: "number", bool: "boolean", list: "list", dict: "mapping"}
_UNIONS = (typing.Union, types.UnionType)
_LISTS = (list, Sequence)


class _Repr(reprlib.Repr):
    def repr_int(self, x: int, level: int) -> str:
        repr(x)  # raises ValueError, in whose place Python 3.14 would write an address
        return super().repr_int(x, level)


_repr = _Repr()
_repr.maxdict = _repr.maxlist = 20
_repr.maxstring = _repr.maxother = _repr.maxlong = LONGEST


def shown(value: object, longest: int = LONGEST) -> str:
    """A value as Python writes it, shortened, a text within its quotes; a huge value is not written out first."""
    if isinstance(value, str):
        text = repr(value[: longest + 1])
        return text if len(text) <= longest else f"{text[: longest - 4]}...{text[0]}"
    try:
        return shorten(_repr.repr(value), longest)
    except ValueError:  # an integer with more digits than Python prints
        return f"a huge {type(value).__name__}"


def listed(words: Iterable[str]) -> str:
    """Words in quotes, as many as there is room for."""
    return shorten(", ".join([shown(word, 60) for word in words]))


def number(value: float, limit: float | None = None) -> str:
    """A number without the noise of binary fractions: `0.3`, `1500`. With it where it alone tells it from a limit."""
    if isinstance(value, int):
        return repr(value) if value.bit_length() < _BITS_OF_LONGEST else shown(value)
    return f"{value:.15g}" if limit is None else apart_from(limit, value, 15)


def called_with(name: str, arguments: Mapping[str, object]) -> str:
    """A call as Python writes it: `book(flight='HAT001', seats=2)`."""
    return f"{name}({shorten(', '.join(assigned(arguments)), 80)})"


def assigned(arguments: Mapping[str, object]) -> list[str]:
    """`key=value` for each argument."""
    return [f"{key}={shown(value, 40)}" for key, value in arguments.items()]


@cache
def in_words(expected: Any) -> str:
    """A type in plain words, without null: `a list of strings`, `an integer`, `a boolean`."""
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
    word = noun(origin or kind)
    return word if kind is Any else f"an {word}" if word[0] in "aeiou" else f"a {word}"


def noun(kind: Any) -> str:
    """A type in a word or two: `mapping`."""
    if kind is Any:
        return "any value"
    kind = typing.get_origin(kind) or kind
    if isinstance(kind, type) and (issubclass(kind, (msgspec.Struct, Mapping)) or is_dataclass(kind)):
        return "mapping"
    return _NOUNS.get(kind) or str(getattr(kind, "__name__", kind))
