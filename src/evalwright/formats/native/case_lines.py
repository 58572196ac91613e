"""Lines of JSON Lines datasets that are right in every respect, read at once.

A line in which anything is doubtful (a key that nothing reads, null, a recording, numbers that JSON has not) is no
mistake yet: pydantic reads it, and says what is wrong with it if anything is.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

import msgspec

from evalwright.model.snapshot import Case, Expected

__all__ = ["Given", "case_in"]

_DEEPEST = 200
"""Brackets in a line whose values may be nested deeper than pydantic reads."""


class _Expected(msgspec.Struct, forbid_unknown_fields=True, gc=False):
    must_call_tools: list[str] = []
    answer_should_include: list[str] = []
    answer_should_not_include: list[str] = []
    facts: dict[str, Any] = {}
    must_modify_files: list[str] = []
    must_not_modify_files: list[str] = []


class _Line(msgspec.Struct, forbid_unknown_fields=True, gc=False):
    id: str
    input: dict[str, Any]
    expected: _Expected = msgspec.field(default_factory=_Expected)
    metadata: dict[str, Any] = {}
    tags: list[str] = []
    group: str | None = None
    schema_version: str = "1.0"


_decode = msgspec.json.Decoder(_Line).decode
_NO_RECORDING = msgspec.Raw(b"null")


class Given:
    """Which parts of `expected` the cases of a dataset have: what is said of its keys needs no second reading."""

    def __init__(self) -> None:
        self._parts: set[str] = set()

    def add(self, expected: Expected) -> None:
        parts = self._parts
        if expected.answer_should_include:
            parts.add("answer_should_include")
        if expected.facts:
            parts.add("facts")
        if expected.must_call_tools:
            parts.add("must_call_tools")
        if expected.answer_should_not_include:
            parts.add("answer_should_not_include")
        if expected.must_modify_files:
            parts.add("must_modify_files")
        if expected.must_not_modify_files:
            parts.add("must_not_modify_files")

    def all_read(self, read: Collection[str] | None, needed: Mapping[str, Collection[str]]) -> bool:
        """Whether each of them is read, and every evaluator finds one of those that it needs."""
        return (read is None or self._parts.issubset(read)) and not any(
            self._parts.isdisjoint(keys) for keys in needed.values()
        )


def case_in(line: bytes) -> Case | None:
    """The case in a line; None if it has to be looked at more slowly."""
    try:
        read = _decode(line)
    except (ValueError, RecursionError):
        return None
    version = read.schema_version
    if not read.id.strip() or (version != "1.0" and not version.startswith("1.")):
        return None
    if line.count(b"[") + line.count(b"{") > _DEEPEST:
        return None
    asked = read.expected
    expected = Expected(
        asked.must_call_tools,
        asked.answer_should_include,
        asked.answer_should_not_include,
        asked.facts,
        asked.must_modify_files,
        asked.must_not_modify_files,
        None,
    )
    return Case(
        read.id,
        read.input,
        expected,
        read.metadata,
        read.tags,
        _NO_RECORDING,
        read.group,
        schema_version=version,
    )
