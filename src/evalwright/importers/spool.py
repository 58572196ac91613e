"""Records set aside on disk by key: related records may be anywhere in the files, and memory must not grow."""

from __future__ import annotations

import sqlite3
import tempfile
from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import Any

import msgspec

from evalwright.errors import StorageError
from evalwright.files.masker import Masker
from evalwright.model.trace import Trace

__all__ = ["RecordSpool", "SpooledTrace", "TraceSpool", "case_pieces"]

_PIECE = 1 << 20
"""Bytes of a trace that are held at once, besides its largest message."""


class RecordSpool:
    """Bytes by key. Keys come back in the order in which they were first seen, and the bytes of a key in theirs."""

    def __init__(self) -> None:
        self.keys: int = 0
        self._base = sqlite3.connect("")  # a temporary file of SQLite's own, gone with the connection
        self._base.execute("PRAGMA synchronous = OFF")
        self._base.execute("CREATE TABLE keys (id TEXT PRIMARY KEY, number INTEGER)")
        self._base.execute("CREATE TABLE records (number INTEGER, record BLOB)")

    def add(self, key: str, record: bytes) -> None:
        """Set a record aside. Raises StorageError if there is no space."""
        try:
            row = self._base.execute("SELECT number FROM keys WHERE id = ?", (key,)).fetchone()
            if row is None:
                row = (self.keys,)
                self._base.execute("INSERT INTO keys VALUES (?, ?)", (key, self.keys))
                self.keys += 1
            self._base.execute("INSERT INTO records VALUES (?, ?)", (row[0], record))
        except sqlite3.Error as error:
            raise StorageError(f"cannot store records in the temporary folder: {error}") from error

    def __iter__(self) -> Iterator[tuple[str, Iterator[bytes]]]:
        rows = self._base.execute(
            "SELECT keys.id, record FROM records JOIN keys USING (number) ORDER BY number, records.rowid"
        )
        for key, group in groupby(rows, key=lambda row: row[0]):
            yield key, (record for _, record in group)

    def close(self) -> None:
        self._base.close()


class SpooledTrace(msgspec.Struct):
    """Where a trace is, and the name of its system in the file."""

    variant: str
    start: int
    size: int


_NAMED_LATER = ("case_id", "variant_name", "trial")
"""Fields of a trace that are only known when all traces have been read."""


class TraceSpool:
    """Traces as JSON in an unnamed file, without secrets.

    They are written and read in pieces: one trace may be a session of hours.
    """

    def __init__(self, masker: Masker) -> None:
        self._masker = masker
        self._encoder = msgspec.json.Encoder()
        self._end = 0
        try:
            self._file = tempfile.TemporaryFile()  # noqa: SIM115 - `close` closes it
        except OSError as error:
            raise _no_space(error) from error

    def add(self, trace: Trace) -> SpooledTrace:
        """Set a trace aside. Raises StorageError if there is no space."""
        start = self._end
        for piece in _members(trace, self._encoder, _NAMED_LATER):
            self._write(self._masker.mask_bytes(piece))
        self._write(b"}")
        return SpooledTrace(trace.variant_name, start, self._end - start)

    def _write(self, data: bytes) -> None:
        try:
            self._file.seek(self._end)
            self._end += self._file.write(data)
        except OSError as error:
            raise _no_space(error) from error

    def pieces(self, aside: SpooledTrace, case_id: str, variant: str, trial: int) -> Iterator[bytes]:
        """The JSON of a trace, as this trial of this cell."""
        names = {"case_id": case_id, "variant_name": variant, "trial": trial}
        yield self._masker.mask_bytes(self._encoder.encode(names)).removesuffix(b"}")
        yield from self._pieces(aside)

    def _pieces(self, aside: SpooledTrace) -> Iterator[bytes]:
        at, end = aside.start, aside.start + aside.size
        while at < end:
            self._file.seek(at)
            piece = self._file.read(min(_PIECE, end - at))
            at += len(piece)
            yield piece

    def close(self) -> None:
        self._file.close()


def case_pieces(case: dict[str, Any], traces: Sequence[Trace]) -> Iterator[bytes]:
    """The line of a case with its recordings in pieces, each of whole JSON values: no secret is cut in two."""
    encoder = msgspec.json.Encoder()
    yield encoder.encode(case).removesuffix(b"}") + b',"embedded_trace":' + (b"[" if len(traces) > 1 else b"")
    for number, trace in enumerate(traces):
        yield b",{" if number else b"{"
        members = _members(trace, encoder)
        yield next(members).removeprefix(b",")
        yield from members
        yield b"}"
    yield b"]}\n" if len(traces) > 1 else b"}\n"


def _members(trace: Trace, encoder: msgspec.json.Encoder, left_out: Sequence[str] = ()) -> Iterator[bytes]:
    """The members of a trace's JSON object, each after a comma, in pieces of whole values."""
    buffer = bytearray()
    for name in trace.__struct_fields__:
        value = getattr(trace, name)
        if value is msgspec.UNSET or name in left_out:
            continue
        buffer += b',"' + name.encode() + b'":'
        if isinstance(value, list) and value:
            between = b"["
            for item in value:
                buffer += between
                between = b","
                encoder.encode_into(item, buffer, -1)
                if len(buffer) > _PIECE:
                    yield bytes(buffer)
                    buffer.clear()
            buffer += b"]"
        else:
            encoder.encode_into(value, buffer, -1)
    yield bytes(buffer)


def _no_space(error: OSError) -> StorageError:
    return StorageError(f"cannot store records in the temporary folder: {error.strerror or error}")
