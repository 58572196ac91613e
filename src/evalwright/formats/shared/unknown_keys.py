"""Keys that a format does not know."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Any

__all__ = ["unknown_keys"]


def unknown_keys(value: Any, known: Collection[str], place: str) -> Iterator[str]:
    """The paths of the keys of a mapping that are not `known`; `place` goes before each."""
    for key in value if isinstance(value, dict) else ():
        if key not in known:
            yield f"{place}{key}"
