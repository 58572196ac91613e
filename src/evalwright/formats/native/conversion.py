"""What `convert` needs to know about the native format."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from evalwright.formats.shared.references import references_in

__all__ = ["has_rows", "names_in", "unread"]


def names_in(source: Path, _options: Mapping[str, Any]) -> list[str]:
    """The references in the file, with their defaults."""
    return references_in([source], defaults=True)


def has_rows(document: Mapping[str, Any]) -> bool:
    """Whether the cases are rows of a table, from which a file of cases can be made."""
    from evalwright.formats.native.dataset_section import file_type, is_of_rows

    dataset = document.get("dataset")
    if not isinstance(dataset, Mapping):
        return False
    path = dataset.get("path") or ""
    return is_of_rows(dataset.get("type") or file_type(path) or "", path, dataset)


def unread(document: dict[str, Any]) -> Iterator[str]:
    """Paths of keys without effect."""
    head = document.get("eval") or {}
    yield from (f"eval.{key}" for key in ("owner", "tags") if head.get(key))
    if (document.get("trace") or {}).get("capture"):
        yield "trace.capture"
    first = (document.get("output") or [{}])[0]
    if (first.get("type"), first.get("path")) != ("local_files", "runs"):
        yield "output[0]"
