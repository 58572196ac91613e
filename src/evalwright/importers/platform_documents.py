"""Files that tracing platforms export: JSON Lines, one document, or a list; and values in them that may be absent."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from evalwright.files.numbers import finite_number_in, is_number
from evalwright.importers.placed_records import placed_records
from evalwright.importers.record_values import described, too_deep
from evalwright.importers.sources import Mistakes
from evalwright.importers.span_files import Lose

__all__ = ["number_under", "platform_objects", "text_of"]


def platform_objects(source: Path, lose: Lose) -> Iterator[tuple[str, dict[str, Any]]]:
    """The objects of a file with their places; other values are lost. Raises InputError for a file that is not JSON."""
    mistakes = Mistakes()
    for record in placed_records(source, mistakes):
        place = f"line {record.line}" if record.line is not None else record.key or "the document"
        if not isinstance(record.value, dict):
            lose(place, f"expected an object, found {described(record.value)}")
        elif too_deep(record.value):
            lose(place, "is nested too deeply")
        else:
            yield place, record.value
    for problem in mistakes.found:
        lose(f"line {problem.line}", problem.message)


def number_under(holder: Mapping[str, Any], key: str) -> float | None:
    """A number under a key, including a number in a text; None for anything else."""
    value = holder.get(key)
    if isinstance(value, str):
        value = finite_number_in(value)
    return value if is_number(value) else None


def text_of(value: Any) -> str | None:
    return value if isinstance(value, str) and value else None
