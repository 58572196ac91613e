"""Records that may be the lines of a file, the items of a list, or one document."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from evalwright.importers.sources import Mistakes, json_document, json_value, lines, stem

__all__ = ["ImportRecord", "has_lines", "placed_records"]


@dataclass(frozen=True, slots=True)
class ImportRecord:
    """One record and its place."""

    value: Any
    line: int | None = None
    key: str = ""

    def below(self, key: str) -> str:
        return f"{self.key}.{key}".strip(".") if not key.startswith("[") else f"{self.key}{key}"

    def origin(self) -> dict[str, Any]:
        return {"line": self.line} if self.line is not None else {"record": self.key} if self.key else {}


def placed_records(
    file: Path, mistakes: Mistakes, *, items_are_one: Callable[[Any], bool] = lambda value: False
) -> Iterator[ImportRecord]:
    """The records of a file: its lines, if the first one is a complete value and another follows; else one document.
    The items of a list are records, unless `items_are_one`, called with the first item, says that the list is one
    record."""
    if has_lines(file):
        yield from _records_in_lines(file, mistakes)
        return
    whole = json_document(file, mistakes)
    if isinstance(whole, list) and whole and not items_are_one(whole[0]):
        for number, value in enumerate(whole):
            yield ImportRecord(value, None, f"[{number}]")
    else:
        yield ImportRecord(whole)


def has_lines(file: Path) -> bool:
    """Whether a file is JSON Lines. Raises InputError if it cannot be read."""
    first = next(iter(lines(file)), None)
    if first is None or stem(file, with_suffix=True).endswith((".jsonl", ".ndjson")):
        return first is not None
    try:
        json_value(first[1])
    except (ValueError, RecursionError):
        return False
    return any(True for number, _ in lines(file) if number > first[0])


def _records_in_lines(file: Path, mistakes: Mistakes) -> Iterator[ImportRecord]:
    for number, text in lines(file):
        try:
            yield ImportRecord(json_value(text, mistakes), number)
        except RecursionError:
            mistakes.add(file, "is nested too deeply", number)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            mistakes.add(file, f"is not valid JSON: {error}", number)
