"""Where the index of a run reads from: the records as numbered lines, and how far they have been read."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from itertools import accumulate
from pathlib import Path
from typing import BinaryIO, NamedTuple, Protocol

import msgspec

from evalwright.stores.lock import LOCK_NAME, is_held

__all__ = ["RECORDS", "CoveredRecords", "FolderSource", "RecordLines", "RecordsAtMoment", "RecordsReplaced", "Source"]

RECORDS = ("traces.jsonl", "results.jsonl", "verdicts.jsonl")
_TAIL = 64
"""Bytes before the end of the covered part that are compared when an index is opened."""
_SHARE = 1 << 18
"""Bytes of all files that are read at a time: few, so that the records of a cell are still in the processor's cache
when it is written, and the collector of garbage has little to visit."""
_BUFFER = 1 << 17
_GAP, _STRETCH = 1 << 12, 1 << 20
"""Lines with fewer bytes between them are read together, at most so many bytes at once: a call to the system costs more
than what is read for nothing."""
_BEHIND = 64 << 20
"""Bytes by which the index of a run in progress may lag behind: more than a run writes between two syncs."""


class RecordLines(NamedTuple):
    """Lines with their ends, where each starts, and its length; in tables the number of its row, and 1."""

    lines: Sequence[bytes]
    starts: Iterable[int]
    lengths: Iterable[int]


class CoveredRecords(msgspec.Struct):
    """How far the records of one kind have been read."""

    length: int = 0
    tail: bytes = b""
    changed: int = 0
    """Reveals changes before the end: for a file that has not grown since, its time of change in nanoseconds, as the
    system reports it; for a table, the number of rows."""


class RecordsReplaced(Exception):
    """Records have been replaced: what was read of them belongs to no single moment."""


class RecordsAtMoment(Protocol):
    """The records of a run, up to where they ended when this was created. `RECORDS` names the kinds.

    For every verdict and result before its end, the trace is there, too.
    """

    ends: Mapping[str, int]

    def shares(self, starts: Mapping[str, int], ends: Mapping[str, int]) -> int:
        """The number of parts in which to read what is between two positions, so that none takes much memory."""

    def read(self, name: str, start: int, until: int) -> tuple[RecordLines, int]:
        """The whole lines that start from one position up to another, and where the next one starts."""

    def covered(self, name: str, at: int) -> CoveredRecords:
        """What to note about records that were read up to a position. Raises RecordsReplaced."""


class Source(Protocol):
    """The records of one run. Reading raises OSError, InputError, and RecordsReplaced."""

    location: str

    def moment(self) -> AbstractContextManager[RecordsAtMoment]: ...

    def matches(self, covered: Mapping[str, CoveredRecords]) -> bool:
        """Whether the records still begin as they did when they were read."""

    def whole(self, covered: Mapping[str, CoveredRecords]) -> bool:
        """Whether nothing follows what was read, such as a torn line, which a scan would report."""

    def near(self, covered: Mapping[str, CoveredRecords]) -> bool:
        """Whether an index that another process keeps up to date is close enough to the end."""

    def is_written(self) -> bool:
        """Whether a process is writing the run that keeps its index up to date."""

    def lines(self, name: str, places: Sequence[tuple[int, int]]) -> list[bytes]:
        """The lines at these places; fewer if some no longer exist."""

    def close(self) -> None: ...


class FolderSource:
    """The files of records in a run folder."""

    def __init__(self, folder: Path) -> None:
        self.location: str = str(folder)
        self._folder = folder
        self._descriptors: dict[str, int] = {}

    @contextmanager
    def moment(self) -> Iterator[_Files]:
        with ExitStack() as stack:
            yield _Files({name: stack.enter_context(_records_file(self._folder, name)) for name in RECORDS})

    def matches(self, covered: Mapping[str, CoveredRecords]) -> bool:
        for name, noted in covered.items():
            with _records_file(self._folder, name) as file:
                facts = os.fstat(file.fileno())
                size = facts.st_size
                if _tail_of(file, noted.length) != noted.tail:  # of a shorter file there are fewer bytes
                    return False
                if size == noted.length and size and facts.st_mtime_ns != noted.changed:
                    return False
        return True

    def whole(self, covered: Mapping[str, CoveredRecords]) -> bool:
        for name in RECORDS:
            with _records_file(self._folder, name) as file:
                if _size(file) > covered[name].length:
                    file.seek(covered[name].length)
                    if not file.readline().endswith(b"\n"):
                        return False
        return True

    def near(self, covered: Mapping[str, CoveredRecords]) -> bool:
        with self.moment() as moment:
            behind = sum(size - covered.get(name, CoveredRecords()).length for name, size in moment.ends.items())
        return behind <= _BEHIND

    def is_written(self) -> bool:
        return is_held(self._folder / LOCK_NAME)

    def lines(self, name: str, places: Sequence[tuple[int, int]]) -> list[bytes]:
        if name not in self._descriptors:
            self._descriptors[name] = os.open(self._folder / name, os.O_RDONLY | os.O_CLOEXEC)
        descriptor, lines = self._descriptors[name], []
        for start, end, some in _stretches(places):
            data = os.pread(descriptor, end - start, start)
            lines += [data[at - start : at - start + length] for at, length in some]
        return lines

    def close(self) -> None:
        for descriptor in self._descriptors.values():
            with suppress(OSError):
                os.close(descriptor)
        self._descriptors.clear()


def _stretches(places: Sequence[tuple[int, int]]) -> Iterator[tuple[int, int, Sequence[tuple[int, int]]]]:
    """Where to read from and to for the places that are near one another, in their order."""
    first = start = end = 0
    for number, (at, length) in enumerate(places):
        if not end <= at <= end + _GAP or at + length > start + _STRETCH:
            if number:
                yield start, end, places[first:number]
            first, start = number, at
        end = at + length
    if places:
        yield start, end, places[first:]


class _Files:
    """The open files of a folder, which may be replaced by others meanwhile."""

    def __init__(self, files: Mapping[str, BinaryIO]) -> None:
        self._files = files
        # In this order: for every verdict and result that is seen, the trace was written before.
        self.ends: Mapping[str, int] = {name: _size(files[name]) for name in reversed(RECORDS)}

    def shares(self, starts: Mapping[str, int], ends: Mapping[str, int]) -> int:
        return -(-sum(ends[name] - starts[name] for name in RECORDS) // _SHARE)

    def read(self, name: str, start: int, until: int) -> tuple[RecordLines, int]:
        file, end = self._files[name], self.ends[name]
        file.seek(start)
        lines = file.readlines(max(1, until - start - 1)) if until > start else []  # until there are more bytes
        lengths = list(map(len, lines))
        stop = start + sum(lengths)
        while lines and (stop > end or not lines[-1].endswith(b"\n")):  # appended since, or not yet completely
            stop -= lengths.pop()
            lines.pop()
        return RecordLines(lines, accumulate(lengths, initial=start), lengths), stop

    def covered(self, name: str, at: int) -> CoveredRecords:
        file = self._files[name]
        return CoveredRecords(at, _tail_of(file, at), os.fstat(file.fileno()).st_mtime_ns)


def _records_file(folder: Path, name: str) -> BinaryIO:
    """A file of records; an empty one if it does not exist, as folders of other programs have no verdicts."""
    try:
        return (folder / name).open("rb", buffering=_BUFFER)
    except FileNotFoundError:
        return Path(os.devnull).open("rb")


def _size(file: BinaryIO) -> int:
    return os.fstat(file.fileno()).st_size


def _tail_of(file: BinaryIO, end: int) -> bytes:
    """The last bytes before a position."""
    return os.pread(file.fileno(), min(_TAIL, end), max(0, end - _TAIL))
