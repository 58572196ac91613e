"""JSON Schemas with plain keywords, as a few comparisons instead of a walk through `jsonschema`, in a tenth of its
time.

Errors are those of `jsonschema` (draft 2020-12), in its order and wording. Schemas with other keywords are left to it,
and so are values of classes that JSON does not have.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

__all__ = ["Check", "NotPlainJson", "PlainError", "asks_for_size", "plain_check"]


class PlainError(NamedTuple):
    """A part of a value that does not satisfy the schema."""

    path: tuple[str | int, ...]
    message: str

    @property
    def json_path(self) -> str:
        """Where it is, such as `$.items[0]`."""
        return "$" + "".join(map(_step, self.path))


class NotPlainJson(Exception):
    """A value of a class that JSON does not have: `jsonschema` decides about it."""


Check = Callable[[Any], Sequence[PlainError]]
"""The errors of a value."""

_SILENT: Mapping[str, type] = {
    "$comment": str,
    "default": object,
    "description": str,
    "examples": list,
    "title": str,
}
"""Keywords that require nothing."""
_TYPES: Mapping[str, tuple[type, ...]] = {
    "array": (list,),
    "boolean": (bool,),
    "integer": (int,),
    "null": (type(None),),
    "number": (int, float),
    "object": (dict,),
    "string": (str,),
}
_PLAIN = frozenset((bool, dict, float, int, list, str, type(None)))
_SIZES: Mapping[str, tuple[type[list[Any] | str | dict[str, Any]], str]] = {
    "minItems": (list, "is too short"),
    "maxItems": (list, "is too long"),
    "minLength": (str, "is too short"),
    "maxLength": (str, "is too long"),
    "minProperties": (dict, "does not have enough properties"),
    "maxProperties": (dict, "has too many properties"),
}
_BOUNDS: Mapping[str, tuple[Callable[[Any, Any], bool], str]] = {
    "minimum": (lambda value, bound: value < bound, "is less than the minimum of"),
    "maximum": (lambda value, bound: value > bound, "is greater than the maximum of"),
    "exclusiveMinimum": (lambda value, bound: value <= bound, "is less than or equal to the minimum of"),
    "exclusiveMaximum": (lambda value, bound: value >= bound, "is greater than or equal to the maximum of"),
}
_NAME = re.compile("[a-zA-Z][a-zA-Z0-9_]*")


def _step(step: str | int) -> str:
    if isinstance(step, int):
        return f"[{step}]"
    if _NAME.fullmatch(step):
        return f".{step}"
    escaped = step.replace("\\", "\\\\").replace("'", r"\'")
    return f"['{escaped}']"


def plain_check(schema: Any) -> Check | None:
    """The check for a schema; None if it has a keyword that only `jsonschema` knows, or is malformed.

    A check raises NotPlainJson.
    """
    if not isinstance(schema, Mapping):
        return None
    checks: list[Check] = []
    for keyword, wanted in schema.items():
        if keyword in _SILENT and isinstance(wanted, _SILENT[keyword]):
            continue
        check = _extras(schema) if keyword == "additionalProperties" and wanted is False else _check(keyword, wanted)
        if check is None:
            return None
        checks.append(check)
    if len(checks) == 1:
        return checks[0]

    def together(value: Any) -> Sequence[PlainError]:
        errors: Sequence[PlainError] = ()
        for check in checks:
            if wrong := check(value):
                errors = [*errors, *wrong]
        return errors

    return together


def asks_for_size(schema: Mapping[str, Any]) -> bool:
    """Whether a schema with a plain check only requires a list to be one, and to have a certain length."""
    return all(keyword in _SIZES or keyword == "type" or keyword in _SILENT for keyword in schema)


def _check(keyword: str, wanted: Any) -> Check | None:
    if keyword == "type":
        return _type_check(wanted)
    if keyword in _SIZES:
        return _size_check(keyword, wanted)
    if keyword in _BOUNDS:
        return _bound_check(*_BOUNDS[keyword], wanted)
    if keyword == "required":
        return _requiring(wanted)
    if keyword == "properties":
        return _with_properties(wanted)
    if keyword == "items":
        return _items_check(wanted)
    if keyword == "enum":
        return _one_of(wanted)
    return None


def _is(value: Any, kind: type) -> bool:
    """Whether a value is of this class. Raises NotPlainJson."""
    if value.__class__ is kind:
        return True
    if value.__class__ not in _PLAIN:
        raise NotPlainJson
    return False


def _are_names(wanted: Any) -> bool:
    """Whether these are strings, none of them repeated."""
    return (
        isinstance(wanted, list) and all(isinstance(name, str) for name in wanted) and len(set(wanted)) == len(wanted)
    )


def _type_check(wanted: Any) -> Check | None:
    names = [wanted] if isinstance(wanted, str) else wanted
    if not _are_names(names) or not names or not all(name in _TYPES for name in names):
        return None
    kinds = frozenset(kind for name in names for kind in _TYPES[name])
    listed = ", ".join(map(repr, names))

    def check(value: Any) -> Sequence[PlainError]:
        kind = value.__class__
        if kind in kinds or (kind is float and int in kinds and value.is_integer()):
            return ()
        if kind not in _PLAIN:
            raise NotPlainJson
        return (PlainError((), f"{value!r} is not of type {listed}"),)

    return check


def _size_check(keyword: str, wanted: Any) -> Check | None:
    if wanted.__class__ is not int or wanted < 0:
        return None
    kind, wrong = _SIZES[keyword]
    if keyword.startswith("min"):
        wrong = "should be non-empty" if wanted == 1 else wrong
        return lambda value: (PlainError((), f"{value!r} {wrong}"),) if _is(value, kind) and len(value) < wanted else ()
    wrong = "is expected to be empty" if wanted == 0 else wrong
    return lambda value: (PlainError((), f"{value!r} {wrong}"),) if _is(value, kind) and len(value) > wanted else ()


def _bound_check(is_beyond: Callable[[Any, Any], bool], wrong: str, wanted: Any) -> Check | None:
    if wanted.__class__ not in (int, float):
        return None
    return lambda value: (
        (PlainError((), f"{value!r} {wrong} {wanted!r}"),)
        if (value.__class__ is int or _is(value, float)) and is_beyond(value, wanted)
        else ()
    )


def _requiring(wanted: Any) -> Check | None:
    if not _are_names(wanted):
        return None
    names = frozenset(wanted)

    def check(value: Any) -> Sequence[PlainError]:
        if not _is(value, dict) or names <= value.keys():
            return ()
        return [PlainError((), f"{name!r} is a required property") for name in wanted if name not in value]

    return check


def _extras(schema: Mapping[str, Any]) -> Check | None:
    """No properties except those that the schema names."""
    known = schema.get("properties", {})
    if not isinstance(known, Mapping):
        return None

    def check(value: Any) -> Sequence[PlainError]:
        if not _is(value, dict) or not (extras := sorted(value.keys() - known.keys(), key=str)):
            return ()
        message = f"{', '.join(map(repr, extras))} {'was' if len(extras) == 1 else 'were'} unexpected"
        return (PlainError((), f"Additional properties are not allowed ({message})"),)

    return check


def _with_properties(wanted: Any) -> Check | None:
    if not isinstance(wanted, Mapping):
        return None
    inner = {name: plain_check(schema) for name, schema in wanted.items()}
    known = [(name, check) for name, check in inner.items() if check is not None]
    if len(known) < len(inner):
        return None

    def check(value: Any) -> Sequence[PlainError]:
        errors: list[PlainError] = []
        if _is(value, dict):
            for name, property_check in known:
                if name in value and (wrong := property_check(value[name])):
                    errors += _below(name, wrong)
        return errors

    return check


def _items_check(wanted: Any) -> Check | None:
    item_check = plain_check(wanted)
    if item_check is None:
        return None

    def check(value: Any) -> Sequence[PlainError]:
        errors: list[PlainError] = []
        if _is(value, list):
            for index, item in enumerate(value):
                if wrong := item_check(item):
                    errors += _below(index, wrong)
        return errors

    return check


def _below(step: str | int, wrong: Sequence[PlainError]) -> list[PlainError]:
    return [PlainError((step, *path), message) for path, message in wrong]


def _one_of(wanted: Any) -> Check | None:
    """Strings only: whether numbers equal booleans is a different question."""
    if not _are_names(wanted) or not wanted:
        return None
    texts = frozenset(wanted)
    return lambda value: (
        () if _is(value, str) and value in texts else (PlainError((), f"{value!r} is not one of {wanted!r}"),)
    )
