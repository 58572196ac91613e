"""Which files are NorthStar datasets: their first record has the keys of a case."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from evalwright.files.jsonl import lines_of

__all__ = ["detects"]

_NEEDED = {"id", "messages"}


def detects(path: Path, head: Mapping[str, Any]) -> bool:
    record = _first_record(path, head)
    if not isinstance(record, Mapping) or not record.keys() >= _NEEDED:
        return False
    from evalwright.formats.northstar.cases import CASE_KEYS  # only here: most JSON files are of other formats

    return record.keys() <= {*CASE_KEYS}


def _first_record(path: Path, head: Mapping[str, Any]) -> Any:
    """The first record of a file, as far as it can be read."""
    if path.suffix.lower() == ".jsonl":
        return next((_json(line) for _, line in lines_of(path)), None)
    document: Any = head or _json(path.read_bytes())
    if isinstance(document, Mapping) and "cases" in document:
        document = document["cases"]
    return (document[0] if document else None) if isinstance(document, list) else document


def _json(content: bytes) -> Any:
    try:
        return json.loads(content)
    except (ValueError, RecursionError):
        return None
