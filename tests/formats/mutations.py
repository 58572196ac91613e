"""Documents with one mistake each, for tests of what refuses them."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from typing import Any

WRONG: tuple[Any, ...] = (None, True, 3, -1, 0.5, "word", [1], {"a": 1}, [], {})


def mutated(document: Any) -> Iterator[tuple[str, Any]]:
    """The document with one key dropped, misspelt or of another type."""
    for place in list(places(document)):
        for how in ("drop", "misspell", *WRONG):
            changed = copy.deepcopy(document)
            inner: Any = changed
            for step in place[:-1]:
                inner = inner[step]
            key = place[-1]
            if how == "drop":
                del inner[key]
            elif how != "misspell":
                inner[key] = how
            elif isinstance(key, str):
                inner[f"{key}x"] = inner.pop(key)
            else:
                continue
            yield f"{place}: {how!r}", changed


def places(value: Any, place: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in items:
        yield (*place, key)
        yield from places(inner, (*place, key))


def as_json(value: Any) -> Any:
    return json.loads(json.dumps(value, default=str))
