"""What is wrong with the configuration of an evaluator, key by key."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from types import UnionType
from typing import Annotated, Any, Union, get_args, get_origin

import msgspec

from evalwright.errors import Problem, did_you_mean
from evalwright.evaluators.fields import select
from evalwright.evaluators.wording import in_words, noun, shown
from evalwright.files.key_paths import Place, as_written, bracketed

__all__ = ["endless_number", "mismatches", "undeclared_key"]

_STEP = re.compile(r"\[[^\]]*\]|\.[^.\[]+")
"""A step of msgspec's path to a part of a value."""
_FIELD = re.compile(r"Object (?:contains unknown field `(?P<unknown>.*)`|missing required field `(?P<missing>.*)`)")


def undeclared_key(key: object, names: Collection[str]) -> Problem:
    """A key that the evaluator does not have."""
    near = did_you_mean(str(key), names) or (f" (there are: {', '.join(names)})" if names else "")
    return Problem("", f"unknown key {shown(key)}{near}", key=str(key))


def endless_number(key: str, place: Place, number: float) -> Problem:
    """NaN or infinity, which JSON does not have, at a place inside the value of a key."""
    where = bracketed((key, *place))
    return Problem("", f"{where!r} must be a finite number, found {number}", key=where)


def mismatches(key: str, expected: Any, value: Any, detail: str) -> list[Problem]:
    """A problem for each wrong item of a list, as msgspec names the first one only; else the one in `detail`."""
    item = _item_type(expected) if isinstance(value, list) else None
    details = [] if item is None else [*_mistakes_in_items(item, value)]
    return [_mismatch(key, expected, value, line) for line in details or [detail]]


def _item_type(expected: Any) -> Any:
    """The type of the items of a list; None if a value of this type is none."""
    if get_origin(expected) is list:
        return get_args(expected)[0]
    return next((item for arg in get_args(expected) if (item := _item_type(arg)) is not None), None)


def _mistakes_in_items(item: Any, value: Sequence[Any]) -> Iterator[str]:
    """Messages as msgspec's about the whole list."""
    for i, element in enumerate(value):
        try:
            msgspec.convert(element, item)
        except (msgspec.ValidationError, TypeError, RecursionError) as error:
            detail, _, inner = str(error).partition(" - at `")
            if not inner or inner.startswith("$"):
                yield f"{detail} - at `$[{i}]{inner.removeprefix('$') or '`'}"


def _mismatch(key: str, expected: Any, value: Any, detail: str) -> Problem:
    """What was found and what was expected. `detail` is msgspec's message, which says where in the value, or which
    bound."""
    detail, _, inner = detail.partition(" - at `")
    inner = inner.rstrip("`").removeprefix("$") if inner.startswith("$") else inner
    if inner.startswith("key"):
        return Problem("", f"{key!r} must be {in_words(expected)} with strings as keys", key=key)
    place = f"{key}{inner}"
    kind = _type_at(expected, inner)
    if kind is None:
        at, near = ("", key) if "[...]" in inner else (f" at {place!r}", place)  # some value of a mapping
        found = _with_type(select(near)({key: value}))
        return Problem("", f"{key!r} must be {in_words(expected)}, found {found}{at}: {_in_sentence(detail)}", key=near)
    found = select(place)({key: value})
    if (field := _FIELD.fullmatch(detail)) is not None and (fields := _fields_meant(kind, field)):
        return _mistake_about_field(place, fields, field)
    message = f"{place!r} must be {in_words(kind)}{_bound(detail)}, found {_with_type(found)}"
    reason = "" if detail.startswith(("Expected", "Invalid enum")) else f": {_in_sentence(detail)}"
    return Problem("", f"{message}{reason}", key=place)


def _mistake_about_field(place: str, fields: Mapping[str, Any], field: re.Match[str]) -> Problem:
    """A key of a mapping that it may not have, or one that it must have."""
    if field["unknown"] is not None:
        return Problem("", undeclared_key(field["unknown"], fields).message, key=place)
    missing = field["missing"]
    return Problem("", f"the required key {missing!r} is missing, expected {in_words(fields[missing])}", key=place)


def _fields_meant(kind: Any, field: re.Match[str]) -> Mapping[str, Any]:
    """Those of the mapping that a message is about; none if they are not known, as for dataclasses of plug-ins."""
    missing, unknown = field["missing"], field["unknown"]
    mappings = (fields for part in _kinds(kind) if (fields := _fields(part)))
    return next((fields for fields in mappings if missing in fields or (missing is None and unknown not in fields)), {})


def _type_at(expected: Any, inner: str) -> Any:
    """The type that is expected at msgspec's path within a value; None if the path does not lead to one."""
    for step in _STEP.findall(inner):
        parts = [part for kind in _kinds(expected) if (part := _type_of_part(kind, step)) is not None]
        if len(parts) != 1:
            return None
        expected = parts[0]
    return expected


def _type_of_part(kind: Any, step: str) -> Any:
    if step[0] == ".":
        return _fields(kind).get(step[1:])
    return get_args(kind)[0] if get_origin(kind) is list and step != "[...]" else None


def _kinds(expected: Any) -> tuple[Any, ...]:
    """The types that a value may have."""
    if get_origin(expected) is Annotated:
        return _kinds(get_args(expected)[0])
    if get_origin(expected) in (Union, UnionType):
        return tuple(kind for part in get_args(expected) for kind in _kinds(part))
    return (expected,)


def _fields(kind: Any) -> dict[str, Any]:
    """The keys of a mapping and their types; none of any other type."""
    if not (isinstance(kind, type) and issubclass(kind, msgspec.Struct)):
        return {}
    return {field.encode_name: field.type for field in msgspec.structs.fields(kind)}


def _in_sentence(detail: str) -> str:
    return detail[:1].lower() + detail[1:].replace("`", "'")


def _bound(detail: str) -> str:
    """The limits in a message of msgspec, such as `Expected `int` >= 1`."""
    limits = [i for sign in "<>" if (i := detail.find(f" {sign}")) >= 0]
    return detail[min(limits) :].removesuffix(".0") if limits else ""


def _with_type(value: Any) -> str:
    if value is None or isinstance(value, bool):
        return as_written(value)
    if isinstance(value, (list, dict)):
        return f"a {noun(type(value))}"
    return f"the {noun(type(value))} {shown(value, 60)}"
