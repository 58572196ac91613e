"""Where the cases of a run are written: file and line, if the files tell."""

from __future__ import annotations

import csv
import json
import re
from array import array
from bisect import bisect, bisect_left
from collections.abc import Iterator, Mapping
from contextlib import suppress
from functools import cached_property
from operator import itemgetter
from pathlib import Path

import msgspec

from evalwright.files.paths import seen_from_here
from evalwright.model.plan import Plan
from evalwright.reports.context import CaseLine
from evalwright.run.used_files import is_unchanged

__all__ = ["CasePlaces", "ids_in", "suite_file"]

_ID = re.compile(r"""(?:^|[{,\s-])["']?id["']?\s*:\s*("(?:[^"\\]|\\.)*"|'(?:[^']|'')*'|[^\s,}#][^,}#\n]*)""")
"""A key `id` and its value, in YAML, JSON or JSON Lines."""
_TABLES = {".csv": ",", ".tsv": "\t"}
_RECORDS = (".jsonl", ".ndjson")
_LINES = (".yaml", ".yml", ".json", *_RECORDS)


class _Record(msgspec.Struct, gc=False):
    id: str | None = None


_decode = msgspec.json.Decoder(_Record).decode


class CasePlaces(Mapping[str, CaseLine]):
    """Where cases are, by name, if their files name them by `id`; a file is read when it is first needed.

    Only files of the user's own runs are opened (a run folder may come from anyone), and only those that have not
    changed since, as their lines would be wrong. Memory holds 12 bytes per id, a hash of it and its line, and four
    more once ids are looked for in another order.
    """

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        self._starts: list[tuple[int, str]] = []
        """For each file, how many ids precede it, and its path as it is shown."""
        self._hashes, self._lines = array("q"), array("I")
        self._last = -1

    def __getitem__(self, key: str) -> CaseLine:
        at = self._last = self._position_of(key)
        return CaseLine(self._starts[bisect(self._starts, at, key=itemgetter(0)) - 1][1], self._lines[at])

    def __iter__(self) -> Iterator[str]:
        raise TypeError("the names of the cases are not kept")

    def __len__(self) -> int:
        self._read()
        return len(self._lines)

    def _position_of(self, key: str) -> int:
        """The position of an id. Raises KeyError."""
        self._read()
        digest = hash(key)
        # Reports ask in the order of the dataset: for the same case again, or for the next one.
        for at in (self._last, self._last + 1):
            if 0 <= at < len(self._hashes) and self._hashes[at] == digest:
                return at
        if (first := self._nth(digest, 1)) is not None:
            return first
        id_, _, number = key.rpartition("#")
        if not number.isdecimal() or (same := self._nth(hash(id_), int(number))) is None:
            raise KeyError(key)
        return same

    def _nth(self, digest: int, number: int) -> int | None:
        """The position of the nth id with this hash, from 1."""
        at = bisect_left(self._sorted_positions, digest, key=self._hashes.__getitem__) + number - 1
        position = self._sorted_positions[at] if number > 0 and at < len(self._sorted_positions) else None
        return position if position is not None and self._hashes[position] == digest else None

    @cached_property
    def _sorted_positions(self) -> array[int]:
        """The positions of all ids, by their hashes, for names in another order, or shared by several cases."""
        return array("I", sorted(range(len(self._hashes)), key=self._hashes.__getitem__))

    def _read(self) -> None:
        if self._starts or not self._plan.seal:
            return
        self._starts.append((0, ""))
        for name, digest in self._plan.files.items():
            path = Path(name)
            with suppress(OSError, ValueError, csv.Error):  # a file that cannot be read has no lines
                if path.suffix not in (*_LINES, *_TABLES) or not is_unchanged(path, digest):
                    continue
                self._starts.append((len(self._lines), _shown_path(path)))
                for id_, line in ids_in(path):
                    self._hashes.append(hash(id_))
                    self._lines.append(line)


def suite_file(plan: Plan) -> str:
    """The file of a run's suite, as reports for services name it; empty if it has none.

    Of a run that may come from anyone, no folder is looked at.
    """
    if not plan.config_path:
        return ""
    path = Path(plan.config_path)
    return _shown_path(path) if plan.seal else seen_from_here(path).as_posix()


def _shown_path(path: Path) -> str:
    """Relative to the repository, as services name files; outside a repository, relative to the working directory."""
    root = next((folder for folder in path.parents if (folder / ".git").exists()), None)
    return (seen_from_here(path) if root is None else path.relative_to(root)).as_posix()


def ids_in(path: Path) -> Iterator[tuple[str, int]]:
    """Each id in a file of cases with its line, from 1; a file of a million lines is not held in memory.

    Nothing if its name is not that of a file of cases. Raises OSError, csv.Error.
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
        decode = _decoded_id if path.suffix in _RECORDS else None
        for number, line in enumerate(file, 1):
            if decode is not None and (id_ := decode(line)) is not None:
                yield id_, number
                continue
            for match in _ID.finditer(line) if "id" in line else ():
                yield _unescaped(match[1]), number


def _decoded_id(line: str) -> str | None:
    """The id of a JSON Lines record; None if it has to be searched for."""
    try:
        return _decode(line).id
    except (msgspec.DecodeError, RecursionError):
        return None


def _unescaped(text: str) -> str:
    if text.startswith('"'):
        try:
            return str(json.loads(text))
        except ValueError:
            return text[1:-1]
    return text[1:-1].replace("''", "'") if text.startswith("'") else text.strip()
