"""Turns whatever user code returned into plain JSON data, and reports what it had to replace.

What JSON or UTF-8 cannot express is replaced by something recognisable, and each replacement is noted, so that the
stored record says that it differs from what the system returned.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from evalwright.errors import TargetError
from evalwright.files.key_paths import Place

__all__ = ["MAX_DEPTH", "clean_text", "mapping_or_empty", "not_finite", "plain"]

MAX_DEPTH = 200
"""Levels of nesting that are accepted; deeper data is rejected rather than cut."""
_INT64 = range(-(2**63), 2**64)
"""Integers that msgspec encodes: signed or unsigned, of 64 bits."""
_REPR_LIMIT = 500


def clean_text(text: str, place: str, notes: list[str]) -> str:
    """`text` with each lone surrogate, which UTF-8 cannot encode, replaced by U+FFFD."""
    if text.isascii():
        return text
    try:
        text.encode()
    except UnicodeEncodeError:
        notes.append(f"{place}: lone surrogates replaced by U+FFFD")
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text


def plain(value: Any, place: str, notes: list[str], depth: int = 0) -> Any:
    """`value` as None, bool, int, float, str, list or dict with string keys, all the way down.

    Adds a line to `notes` for each replacement. Raises TargetError beyond MAX_DEPTH (cycles included).
    """
    is_dict = value.__class__ is dict
    if is_dict and depth < MAX_DEPTH and all(map(_is_plain, value.values())) and all(map(_is_plain_key, value)):
        return {**value}
    if not is_dict and _is_plain(value):
        return value
    if isinstance(value, str):
        return clean_text(str(value), place, notes)
    if isinstance(value, int):
        return int(value) if value in _INT64 else _replaced_number(_digits(value), place, notes)
    if isinstance(value, float):
        # `value - value` is NaN for NaN and for infinities, which JSON cannot express.
        return float(value) if value - value == 0 else _replaced_number(str(value), place, notes)
    if depth >= MAX_DEPTH:
        raise TargetError(f"{place.partition('.')[0].partition('[')[0]} is nested deeper than {MAX_DEPTH} levels")
    if isinstance(value, Mapping):
        return {
            (name := _key(key, place, notes)): plain(item, f"{place}.{name}" if depth < 8 else place, notes, depth + 1)
            for key, item in value.items()
        }
    if isinstance(value, (list, tuple, set, frozenset)):
        return [plain(item, f"{place}[{i}]" if depth < 8 else place, notes, depth + 1) for i, item in enumerate(value)]
    return _from_object(value, place, notes, depth)


def not_finite(value: Any) -> Iterator[tuple[Place, float]]:
    """The places of NaN and infinities in plain data: a run is stored as JSON, which would change them.

    Data may have any number of levels: Python since 3.12 reads JSON of more levels than its functions can call each
    other.
    """
    open_parts: list[Iterator[tuple[Place, Any]]] = [
        iter([((), value)])
    ]  # an iterator a level, instead of a call a level
    while open_parts:
        for place, item in open_parts[-1]:
            if isinstance(item, (dict, list)):
                open_parts.append(_parts(place, item))
                break
            if isinstance(item, float) and item - item != 0:
                yield place, item
        else:
            open_parts.pop()


def _parts(place: Place, value: dict[Any, Any] | list[Any]) -> Iterator[tuple[Place, Any]]:
    for key, item in value.items() if isinstance(value, dict) else enumerate(value):
        yield (*place, key), item


def _is_plain(value: Any) -> bool:
    """Whether a value stays as it is and has no parts to look into, judged by its exact type; true of most values."""
    kind = type(value)
    if kind is str:
        return bool(value.isascii())
    if kind is int:
        return value in _INT64
    if kind is float:
        return bool(value - value == 0)
    return value is None or kind is bool


def _is_plain_key(key: Any) -> bool:
    return type(key) is str and key.isascii()


def _from_object(value: Any, place: str, notes: list[str], depth: int) -> Any:
    """Models, dataclasses, dates and so on by their fields; anything else by its repr."""
    if hasattr(value, "model_dump"):
        return plain(value.model_dump(mode="json"), place, notes, depth + 1)
    try:
        return plain(msgspec.to_builtins(value, str_keys=True), place, notes, depth + 1)
    except (TypeError, ValueError, RecursionError):
        return _replaced_number(_repr(value)[:_REPR_LIMIT], place, notes)


def _repr(value: object) -> str:
    try:
        return repr(value)
    except Exception:  # of a user's class, whose `__repr__` may raise anything
        return object.__repr__(value)


def _key(key: Any, place: str, notes: list[str]) -> str:
    return clean_text(key if isinstance(key, str) else str(key), f"{place} (key)", notes)


def _digits(value: int) -> str:
    """Decimal digits, or hexadecimal ones beyond the length that Python is willing to print."""
    try:
        return str(value)
    except ValueError:
        return hex(value)


def _replaced_number(text: str, place: str, notes: list[str]) -> str:
    notes.append(f"{place}: {text[:40]} has no JSON form, kept as text")
    return clean_text(text, place, notes)


def mapping_or_empty(value: Any) -> dict[str, Any]:
    """`value` if it is a mapping, else an empty one: for parts of a document that may be missing or anything else."""
    return value if isinstance(value, dict) else {}
