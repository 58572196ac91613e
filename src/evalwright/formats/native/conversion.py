"""What `convert` must know of the native format."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from evalwright.formats.shared.references import references_in

__all__ = ["names_in", "unread"]


def names_in(source: Path, _options: Mapping[str, Any]) -> list[str]:
    """The references in the file, with their defaults."""
    return references_in([source], defaults=True)


def unread(document: dict[str, Any]) -> Iterator[str]:
    """Paths of keys without effect."""
    head = document.get("eval") or {}
    yield from (f"eval.{key}" for key in ("owner", "tags") if head.get(key))
    if (document.get("trace") or {}).get("capture"):
        yield "trace.capture"
    first = (document.get("output") or [{}])[0]
    if (first.get("type"), first.get("path")) != ("local_files", "runs"):
        yield "output[0]"
