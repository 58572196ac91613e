"""Where the cases of a run are written: file and line, as far as the files tell."""

from __future__ import annotations

import csv
import hashlib
import json
import re
from collections import Counter
from collections.abc import Collection, Iterator
from pathlib import Path

from evalwright.files.paths import seen_from_here
from evalwright.model.plan import Plan
from evalwright.reports.context import CaseLine

__all__ = ["case_places", "ids_in"]

_ID = re.compile(r"""(?:^|[{,\s-])["']?id["']?\s*:\s*("(?:[^"\\]|\\.)*"|'(?:[^']|'')*'|[^\s,}#][^,}#\n]*)""")
"""A key `id` and its value, in YAML, JSON or JSON Lines."""
_TABLES = {".csv": ",", ".tsv": "\t"}
_LINES = (".yaml", ".yml", ".json", ".jsonl", ".ndjson")


def case_places(plan: Plan, wanted: Collection[str]) -> dict[str, CaseLine]:
    """The places of the cases whose keys are wanted, of those whose file names them by `id`.

    Only files of a run of your own are opened (a run folder may be anyone's), and only those that have not changed
    since: in others the line would be another one.
    """
    found: dict[str, CaseLine] = {}
    if not plan.seal:
        return found
    left, seen = set(wanted), Counter[str]()
    for name, digest in plan.files.items():
        path = Path(name)
        if not left or path.suffix not in (*_LINES, *_TABLES):
            continue
        try:
            if not _unchanged(path, digest):
                continue
            shown = _shown(path)
            for id_, line in ids_in(path):
                seen[id_] += 1
                for key in (id_, f"{id_}#{seen[id_]}"):
                    if key in left:
                        left.discard(key)
                        found[key] = CaseLine(shown, line)
        except (OSError, ValueError, csv.Error):
            continue  # what cannot be read has no lines
    return found


def _unchanged(path: Path, digest: str) -> bool:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest() == digest


def _shown(path: Path) -> str:
    """Relative to the repository, as services name files; outside of one relative to the working directory."""
    root = next((folder for folder in path.parents if (folder / ".git").exists()), None)
    return (seen_from_here(path) if root is None else path.relative_to(root)).as_posix()


def ids_in(path: Path) -> Iterator[tuple[str, int]]:
    """Each id in a file of cases with its line, from 1; a file of a million lines is not held in memory.

    Nothing for a file that is none by its name. Raises OSError, csv.Error.
    """
    if path.suffix not in (*_LINES, *_TABLES):
        return
    with path.open(encoding="utf-8", errors="replace", newline="" if path.suffix in _TABLES else None) as file:
        if path.suffix in _TABLES:
            rows = csv.DictReader(file, delimiter=_TABLES[path.suffix])
            for row in rows:
                if row.get("id"):
                    yield str(row["id"]), rows.line_num
            return
        for number, line in enumerate(file, 1):
            for match in _ID.finditer(line) if "id" in line else ():
                yield _plain(match[1]), number


def _plain(text: str) -> str:
    if text.startswith('"'):
        try:
            return str(json.loads(text))
        except ValueError:
            return text[1:-1]
    return text[1:-1].replace("''", "'") if text.startswith("'") else text.strip()
