"""What is wrong with the configuration of an evaluator, key by key."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from typing import Any, get_args, get_origin

import msgspec

from evalwright.errors import Problem, did_you_mean
from evalwright.evaluators.fields import select
from evalwright.evaluators.wording import in_words, noun, shown
from evalwright.files.key_paths import Place, as_written, bracketed

__all__ = ["endless_number", "mismatches", "undeclared_key"]


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
    place = key + inner.rstrip("`").removeprefix("$") if inner.startswith("$") else key
    message = f"{key!r} must be {in_words(expected)}"
    if inner.startswith("key"):
        message += " with strings as keys"
    elif not detail.startswith("Expected"):
        here = value if place == key else select(place)({key: value})
        message += f", found {_with_type(here)}: {detail[:1].lower()}{detail[1:].replace('`', chr(39))}"
    elif "[...]" in place:  # some value of a mapping
        place = key
        message += (
            f" with other values, found {_with_type(value)}: {detail[:1].lower()}{detail[1:].replace('`', chr(39))}"
        )
    elif place == key:
        message += f"{_bound(detail)}, found {_with_type(value)}"
    else:
        message += f", found {_with_type(select(place)({key: value}))} at {place!r}"
    return Problem("", message, key=place)


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
