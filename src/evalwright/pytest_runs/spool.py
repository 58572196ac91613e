"""What the processes of a pytest session leave behind: one file each in a hidden folder, with a line for every cell.

A cell is written when it begins, as the error that counts if its process dies, and again when it is judged. The newest
line of a cell counts, and of a test that ran several times, the cells of its last attempt.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

import msgspec

from evalwright.files.durable import AppendFile
from evalwright.files.masker import Masker
from evalwright.files.paths import safe_id
from evalwright.model.plan import PassCriteria
from evalwright.model.result import CaseVerdict, EvaluationResult
from evalwright.model.snapshot import Case
from evalwright.model.trace import Trace
from evalwright.stores.local_files.lines import LineEncoder

__all__ = ["Spool", "SpoolPlace", "SpoolRecord", "parts_of", "places_in", "records_at"]


class SpoolRecord(msgspec.Struct):
    """One cell: its case (whose id names the test), trace, results and verdict."""

    test: str
    position: int
    """Among the cells of its test, from 1."""
    case: Case
    trace: Trace
    results: list[EvaluationResult]
    verdict: CaseVerdict
    criteria: PassCriteria = PassCriteria()
    """The criteria that decided the verdict."""
    test_started_at: datetime = datetime.min.replace(tzinfo=UTC)
    """Tells the attempts of a test apart."""


def parts_of(record: SpoolRecord) -> list[Trace | CaseVerdict | EvaluationResult]:
    """The records of a run that it contains."""
    return [record.trace, record.verdict, *record.results]


class Spool:
    """The file of this process in the folder of its session; both are created with the first record."""

    def __init__(self, folder: Path, process: str, words: Iterable[str]) -> None:
        """`process` is the name of the file, `words` are left alone when secrets are masked."""
        self._path = folder / f"{safe_id(process)}-{os.getpid()}.jsonl"
        self._words = frozenset(words) | set(SpoolRecord.__struct_fields__)
        self._secrets: dict[str, str] = {}
        self._file: AppendFile | None = None
        self._encoder = self._new_encoder()

    def hide(self, secrets: Mapping[str, str]) -> None:
        """Mask these, too, by the names of their sources."""
        if secrets.items() <= self._secrets.items():
            return
        self._secrets |= secrets
        self._encoder = self._new_encoder()

    def _new_encoder(self) -> LineEncoder:
        return LineEncoder(Masker.of(self._secrets, os.environ).keeping(self._words))

    def append(self, record: SpoolRecord) -> None:
        """Hand a line to the operating system. Raises StorageError, and ValueError or TypeError for what JSON cannot
        express."""
        line = self._encoder.line(record)
        if self._file is None:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            self._file = AppendFile(self._path)
        self._file.append(line)

    def close(self) -> None:
        if self._file is not None:
            self._file.close()


class SpoolPlace(NamedTuple):
    """Where a record is."""

    test: str
    position: int
    file: Path
    start: int


class _Mark(msgspec.Struct):
    test: str
    position: int
    test_started_at: datetime


def places_in(folder: Path) -> list[SpoolPlace]:
    """The newest record of each cell of a test's last attempt, by test and position. A torn last line is left out."""
    attempts_by_test: dict[str, dict[datetime, dict[int, SpoolPlace]]] = {}
    decode = msgspec.json.Decoder(_Mark).decode
    for file in folder.glob("*.jsonl"):
        with file.open("rb") as lines:
            start = 0
            for line in lines:
                if line.endswith(b"\n"):
                    mark = decode(line)
                    attempts = attempts_by_test.setdefault(mark.test, {})
                    place = SpoolPlace(mark.test, mark.position, file, start)
                    attempts.setdefault(mark.test_started_at, {})[mark.position] = place
                start += len(line)
    last_attempts = (attempts[max(attempts)] for attempts in attempts_by_test.values())
    return sorted(place for cells in last_attempts for place in cells.values())


def records_at(places: Iterable[SpoolPlace]) -> Iterator[SpoolRecord]:
    """The records, one at a time."""
    decode = msgspec.json.Decoder(SpoolRecord).decode
    for place in places:
        with place.file.open("rb") as lines:
            lines.seek(place.start)
            yield decode(lines.readline())
