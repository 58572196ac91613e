"""What is wrong with the configuration of an evaluator, key by key."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Collection, Iterator, Mapping
from types import UnionType
from typing import Annotated, Any, NamedTuple, Union, get_args, get_origin, get_type_hints

import msgspec

from evalwright.errors import Problem, did_you_mean
from evalwright.evaluators.wording import in_words, noun, shown
from evalwright.files.key_paths import Place, as_written, bracketed

__all__ = ["endless_number", "mismatches", "undeclared_key"]

_LIMIT = re.compile(r"Expected `[^`]*` (.+)")


class _Field(NamedTuple):
    type: Any
    is_required: bool


class _Part(NamedTuple):
    """An item of a list, or the value of a key; `step` leads to it from the place of the whole."""

    step: str
    expected: Any
    value: Any


def undeclared_key(key: object, names: Collection[str]) -> Problem:
    """A key that the evaluator does not have."""
    near = did_you_mean(str(key), names) or (f" (there are: {', '.join(names)})" if names else "")
    return Problem("", f"unknown key {shown(key)}{near}", key=str(key))


def endless_number(key: str, place: Place, number: float) -> Problem:
    """NaN or infinity, which JSON does not have, at a place inside the value of a key."""
    where = bracketed((key, *place))
    return Problem("", f"{where!r} must be a finite number, found {number}", key=where)


def mismatches(place: str, expected: Any, value: Any, detail: str) -> list[Problem]:
    """The problems of each part of a value that is not of the expected type; of the value itself if its parts are.

    `detail` is the message of msgspec, which names the first mistake only.
    """
    kind = _mapping_meant(expected, value)
    problems = [*_mistakes_in_keys(place, kind, value)]
    for part in _parts(expected, _fields(kind), value):
        refusal = _refusal(part)
        problems += mismatches(f"{place}{part.step}", part.expected, part.value, refusal) if refusal else []
    return problems or [_mismatch(place, expected, value, detail)]


def _mistakes_in_keys(place: str, kind: Any, value: Any) -> Iterator[Problem]:
    """Keys that a mapping of this kind may not have, and those that it must have."""
    fields = _fields(kind)
    if isinstance(kind, type) and issubclass(kind, msgspec.Struct) and kind.__struct_config__.forbid_unknown_fields:
        for key in value:
            if key not in fields:
                yield Problem("", undeclared_key(key, fields).message, key=place)
    for name, field in fields.items():
        if field.is_required and name not in value:
            message = f"the required key {name!r} is missing, expected {in_words(field.type)}"
            yield Problem("", message, key=place)


def _parts(expected: Any, fields: Mapping[str, _Field], value: Any) -> Iterator[_Part]:
    """The parts of a value whose type is known."""
    if isinstance(value, dict):
        of_any_key = _type_of_parts(expected, dict)
        for key, part in value.items():
            if key in fields or of_any_key is not None:
                yield _Part(f".{key}", fields[key].type if key in fields else of_any_key, part)
    elif isinstance(value, list) and (of_items := _type_of_parts(expected, list)) is not None:
        yield from (_Part(f"[{i}]", of_items, item) for i, item in enumerate(value))


def _type_of_parts(expected: Any, container: type) -> Any:
    """The type of the items of a list or of the values of a mapping; None if a value of this type is neither."""
    return next((get_args(kind)[-1] for kind in _kinds(expected) if get_origin(kind) is container), None)


def _refusal(part: _Part) -> str:
    """What msgspec says of a part that is not of its type; empty if it is."""
    try:
        msgspec.convert(part.value, part.expected)
    except (msgspec.ValidationError, TypeError, RecursionError) as error:
        return str(error)
    return ""


def _mismatch(place: str, expected: Any, value: Any, detail: str) -> Problem:
    """What was found and what was expected. `detail` is msgspec's message, which says which bound, or which of the
    parts that are not known here."""
    detail, _, inner = detail.partition(" - at `")
    if inner.startswith("key"):
        return Problem("", f"{place!r} must be {in_words(expected)} with strings as keys", key=place)
    inner = inner.rstrip("`").removeprefix("$")
    message = f"{place!r} must be {in_words(expected)}{_bound(detail)}, found {_with_type(value)}"
    if not inner and detail.startswith(("Expected", "Invalid enum")):
        return Problem("", message, key=place)
    at = f" at {place + inner!r}" if inner and "[...]" not in inner else ""
    return Problem("", f"{message}: {detail[:1].lower()}{detail[1:].replace('`', chr(39))}{at}", key=place)


def _mapping_meant(expected: Any, value: Any) -> Any:
    """The only type with declared keys that a mapping may become; None if there is none, or a choice."""
    kinds = [kind for kind in _kinds(expected) if _fields(kind)] if isinstance(value, dict) else []
    return kinds[0] if len(kinds) == 1 else None


def _kinds(expected: Any) -> tuple[Any, ...]:
    """The types that a value may have."""
    if get_origin(expected) is Annotated:
        return _kinds(get_args(expected)[0])
    if get_origin(expected) in (Union, UnionType):
        return tuple(kind for part in get_args(expected) for kind in _kinds(part))
    return (expected,)


def _fields(kind: Any) -> dict[str, _Field]:
    """The keys of a mapping that becomes an object; none of any other type."""
    if isinstance(kind, type) and issubclass(kind, msgspec.Struct):
        return {field.encode_name: _Field(field.type, field.required) for field in msgspec.structs.fields(kind)}
    if isinstance(kind, type) and dataclasses.is_dataclass(kind):
        types = get_type_hints(kind, include_extras=True)
        missing = dataclasses.MISSING
        return {
            field.name: _Field(types[field.name], field.default is missing and field.default_factory is missing)
            for field in dataclasses.fields(kind)
        }
    return {}


def _bound(detail: str) -> str:
    """The limit in a message of msgspec, such as `Expected `int` >= 1`."""
    limit = _LIMIT.fullmatch(detail)
    if limit is None:
        return ""
    # the length is that of a list, not of what is in it
    return f", {limit[1]}" if limit[1].startswith("of length") else f" {limit[1].removesuffix('.0')}"


def _with_type(value: Any) -> str:
    if value is None or isinstance(value, bool):
        return as_written(value)
    if isinstance(value, (list, dict)):
        return f"{'a' if value else 'an empty'} {noun(type(value))}"
    return f"the {noun(type(value))} {shown(value, 60)}"
