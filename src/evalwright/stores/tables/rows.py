"""Records as rows of a database: the columns by which they are found, and the masked line of JSON with the record."""

from __future__ import annotations

import hashlib
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from itertools import islice
from typing import BinaryIO, NamedTuple

import msgspec

from evalwright.files.masker import MASKED
from evalwright.model.artifact import FilesystemArtifact
from evalwright.model.cell import OfCase, attempt_key
from evalwright.model.result import CaseVerdict, EvaluationResult
from evalwright.model.snapshot import Case
from evalwright.model.trace import Trace
from evalwright.stores.local_files.lines import LineEncoder

__all__ = ["Batch", "Row", "RowEncoder", "batched", "row_of_line", "spooled_cases"]

_MASKED = MASKED.encode()
# Most datasets fit and never touch the disk; of larger ones, only this much is held while they are read.
_IN_MEMORY = 1 << 22


class Row(NamedTuple):
    """One record; columns that its kind does not have are empty."""

    case_id: str
    """The key of the case."""
    variant_name: str
    trial: int
    attempt: int
    evaluator: str
    started_at: datetime | None
    line: str
    """JSON without a line end."""


class _Key(OfCase, gc=False):
    variant_name: str
    trial: int
    attempt: int
    evaluator: str = ""
    started_at: datetime | None = None


_key_decoder = msgspec.json.Decoder(_Key)

Record = Trace | EvaluationResult | CaseVerdict | FilesystemArtifact


class RowEncoder(LineEncoder):
    """Encodes records as rows whose columns contain no secrets either."""

    def rows(self, records: Sequence[Record]) -> list[Row]:
        lines = self.lines(records).split(b"\n")
        return [self._row(record, line) for record, line in zip(records, lines, strict=False)]

    def _row(self, record: Record, line: bytes) -> Row:
        if _MASKED in line:  # a key may contain the secret too, so the columns are read from the masked line
            return row_of_line(line)
        evaluator = record.evaluator if isinstance(record, EvaluationResult) else ""
        started_at = record.started_at if isinstance(record, (Trace, EvaluationResult)) else None
        return Row(*attempt_key(record), evaluator, started_at, line.decode())


def row_of_line(line: bytes) -> Row:
    """The row of a stored line; the columns are read from the record."""
    key = _key_decoder.decode(line)
    return Row(*attempt_key(key), key.evaluator, key.started_at, line.rstrip(b"\n").decode())


class Batch:
    """Rows that wait to be written together, in the order in which they came."""

    def __init__(self) -> None:
        self.traces: list[Row] = []
        self.results: list[Row] = []
        self.verdicts: list[Row] = []

    def __len__(self) -> int:
        return len(self.traces) + len(self.results) + len(self.verdicts)

    def extend(self, later: Batch) -> None:
        self.traces += later.traces
        self.results += later.results
        self.verdicts += later.verdicts

    def tables(self) -> Iterator[tuple[str, list[Row]]]:
        """Name and rows of each table, traces first and verdicts last."""
        yield from (("traces", self.traces), ("results", self.results), ("verdicts", self.verdicts))


def spooled_cases(cases: Iterable[Case], encoder: LineEncoder) -> tuple[BinaryIO, int, str]:
    """The lines of all cases in a temporary file, rewound; their number; and the SHA-256 of all lines.

    They are read completely before a transaction begins, so that a slow dataset does not lock the database.
    """
    file = tempfile.SpooledTemporaryFile(max_size=_IN_MEMORY)  # noqa: SIM115 - the caller closes it
    total, digest = 0, hashlib.sha256()
    try:
        for case in cases:
            line = encoder.case(case)
            digest.update(line)
            file.write(line)
            total += 1
        file.seek(0)
    except BaseException:  # reading a long dataset is when Ctrl-C is likely
        file.close()
        raise
    return file, total, digest.hexdigest()  # type: ignore[return-value]


def batched(rows: Iterable[Row], size: int) -> Iterator[list[Row]]:
    """The rows in lists of at most `size`."""
    rows = iter(rows)
    while batch := list(islice(rows, size)):
        yield batch
