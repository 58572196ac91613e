"""What every kind of store is given: its configuration, checked, and the masker of secrets."""

from __future__ import annotations

import os
from collections.abc import Mapping
from functools import cached_property
from typing import Any, TypeVar

import msgspec

from evalwright.errors import InputError, Problem, did_you_mean
from evalwright.files.masker import Masker

__all__ = ["Masked", "read_config"]

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


class Masked:
    """Masks with the given masker, or else the secrets of the environment as it is at the first write."""

    def __init__(self, masker: Masker | None) -> None:
        self._given_masker = masker

    @cached_property
    def _masker(self) -> Masker:
        return Masker.of({}, os.environ) if self._given_masker is None else self._given_masker
