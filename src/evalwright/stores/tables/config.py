"""The configuration of a store in a database, checked."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

import msgspec

from evalwright.errors import InputError, Problem, did_you_mean

__all__ = ["read_config"]

T = TypeVar("T")


def read_config(kind: type[T], config: Mapping[str, Any]) -> T:
    """The configuration as `kind`, a struct. Raises InputError for an unknown key or a wrong value."""
    known = kind.__struct_fields__  # type: ignore[attr-defined]
    problems = [Problem("", f"unknown key{did_you_mean(key, known)}", None, key) for key in config if key not in known]
    if not problems:
        try:
            return msgspec.convert(config, kind)
        except msgspec.ValidationError as error:
            message, _, place = str(error).partition(" - at `$.")
            problems = [Problem("", message[0].lower() + message[1:], None, place.rstrip("`"))]
    raise InputError(problems)
