"""The records of many shards as those of one run, in the order of its grid.

Each shard is read once, to find where the newest records of its cells are, and then copied cell by cell: 36 bytes a
cell stay in memory, and of one shard at a time the names of its cells. A line is taken apart only at its top, to give
it the id of the merged run; all its values keep their bytes.
"""

from __future__ import annotations

import os
import shutil
from array import array
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import BinaryIO, NamedTuple, TypeVar, get_args

import msgspec

from evalwright.errors import InputError, Problem
from evalwright.files.durable import PRIVATE, PRIVATE_FOLDER, storage_error
from evalwright.model.cell import OfCase
from evalwright.model.facts import VerdictFacts
from evalwright.model.protocols import RunReader
from evalwright.model.result import Status
from evalwright.stores.local_files.judgements import COMMITTED
from evalwright.stores.local_files.run import RESULTS, TRACES, VERDICTS

__all__ = [
    "Located",
    "Merging",
    "case_lines",
    "copy_artifacts",
    "located_shard",
    "spool",
    "write_lines",
    "write_merged",
]

T = TypeVar("T")

_BUFFER = 1 << 20
_UNTIDY = 255
_STATUSES: tuple[Status, ...] = get_args(Status)
_RECORDS = (TRACES, RESULTS, VERDICTS)

NumberOf = Callable[[int | None, str, int], int | None]
"""From case index, variant and trial to the number of a cell in its shard; None for a record of no such cell."""


class _TraceMark(OfCase, gc=False):
    variant_name: str
    trial: int = 0
    attempt: int = 1
    case_index: int | None = None


class _ResultMark(OfCase, gc=False):
    variant_name: str
    evaluator: str
    trial: int = 0
    attempt: int = 1


class _Places:
    """Where one line, or adjacent ones, of each cell are in a file; a length of 0 where there are none."""

    def __init__(self, cells: int) -> None:
        self.start: array[int] = array("Q", bytes(8 * cells))
        self.length: array[int] = array("I", bytes(4 * cells))
        self.more: dict[int, list[tuple[int, int]]] = {}
        """Further lines of a cell that do not follow on its first ones: a few, those that a crash cut in two."""

    def put(self, number: int, start: int, length: int) -> None:
        self.start[number], self.length[number] = start, length
        self.more.pop(number, None)

    def add(self, number: int, start: int, length: int) -> None:
        """Put behind the lines that are there already."""
        if not self.length[number]:
            self.put(number, start, length)
        elif number not in self.more and self.start[number] + self.length[number] == start:
            self.length[number] += length
        else:
            self.more.setdefault(number, []).append((start, length))


class Located(NamedTuple):
    """One shard: its folder, and where the newest records of its cells are in the files there."""

    folder: Path
    run_id: str
    traces: _Places
    results: _Places
    tidy: bytearray
    """Number of results of a cell, if they lie side by side in the order of the plan; 255 if they do not."""
    verdicts: _Places
    statuses: dict[Status, int]
    """Number of cells by their verdict."""
    damage: list[str]
    """Lines that cannot be read, and are left out."""


def located_shard(folder: Path, run_id: str, cells: int, number_of: NumberOf, evaluators: Sequence[str]) -> Located:
    """Find the newest records of each of so many cells: of the highest attempt, and of these the last."""
    traces, results, verdicts = _Places(cells), _Places(cells), _Places(cells)
    attempts: array[int] = array("H", bytes(2 * cells))
    numbers: dict[tuple[str, str, int], int] = {}
    tidy, names = bytearray(cells), evaluators[: _UNTIDY - 1]
    damage: list[str] = []
    for start, length, trace in _marks(folder, TRACES, _TraceMark, damage):
        number = number_of(trace.case_index, trace.variant_name, trace.trial)
        if number is not None and trace.attempt >= attempts[number]:
            attempts[number] = trace.attempt
            numbers[trace.case_key, trace.variant_name, trace.trial] = number
            traces.put(number, start, length)
    for start, length, row in _marks(folder, RESULTS, _ResultMark, damage):
        number = numbers.get((row.case_key, row.variant_name, row.trial))
        if number is not None and row.attempt == attempts[number]:
            results.add(number, start, length)
            place = tidy[number]
            in_order = place < len(names) and row.evaluator == names[place] and number not in results.more
            tidy[number] = place + 1 if in_order else _UNTIDY
    states = bytearray(cells)
    for start, length, verdict in _marks(folder, VERDICTS, VerdictFacts, damage):
        number = number_of(verdict.case_index, verdict.variant_name, verdict.trial)
        if number is not None and verdict.attempt == attempts[number]:
            verdicts.put(number, start, length)
            states[number] = 1 + _STATUSES.index(verdict.status)
    statuses = {status: states.count(place) for place, status in enumerate(_STATUSES, 1)}
    return Located(folder, run_id, traces, results, tidy, verdicts, statuses, damage)


def _marks(folder: Path, name: str, kind: type[T], damage: list[str]) -> Iterator[tuple[int, int, T]]:
    decode, start = msgspec.json.Decoder(kind).decode, 0
    with _opened(folder, name) as file:
        for line_number, line in enumerate(file, 1):
            try:
                yield start, len(line), decode(line)
            except (ValueError, RecursionError) as error:
                damage.append(f"{folder / name}:{line_number}: left out: {error}")
            start += len(line)


def _opened(folder: Path, name: str) -> BinaryIO:
    try:
        committed = folder / COMMITTED / name  # of a crash while results were replaced: see `judgements`
        return (committed if committed.is_file() else folder / name).open("rb", buffering=_BUFFER)
    except OSError as error:
        raise InputError(Problem(str(folder / name), f"cannot be read: {error.strerror}")) from error


class Merging(NamedTuple):
    """What is merged: the shards by the position of their first case, and the grid that they share."""

    shards: Mapping[int, Located]
    of: int
    cases: int
    per_case: int
    """Cells of a case."""
    run_id: str
    evaluators: Sequence[str]
    """In whose order the results of a cell are."""
    at_once: int
    """Shards whose files may be open at the same time; those of all others are opened for each cell."""


def write_merged(merging: Merging, folder: Path) -> None:
    """Write the records of all cells into new files of a folder, durably. Raises StorageError, InputError."""
    own_id = msgspec.json.encode(merging.run_id)
    order = {msgspec.json.encode(name): place for place, name in enumerate(merging.evaluators)}
    with ExitStack() as stack:
        traces, results, verdicts = (stack.enter_context(_created(folder / name)) for name in _RECORDS)
        sources = {
            first: _sources(shard, stack if nth < merging.at_once else None)
            for nth, (first, shard) in enumerate(merging.shards.items())
        }
        renames = {first: _renaming(shard.run_id, own_id) for first, shard in merging.shards.items()}
        try:
            for first, number in _cells(merging):
                rename, (trace_of, rows_of, verdict_of) = renames[first], sources[first]
                traces.write(rename(trace_of(number), 1))
                rows, count = rows_of(number), merging.shards[first].tidy[number]
                if count == _UNTIDY:
                    rows, count = _ordered(rows, order)
                results.write(rename(rows, count))
                verdicts.write(rename(verdict_of(number), 1))
            for file in (traces, results, verdicts):
                file.flush()
                os.fsync(file.fileno())
        except OSError as error:
            raise storage_error("write", folder, error) from error


def _cells(merging: Merging) -> Iterator[tuple[int, int]]:
    """Shard and number within it of each cell, in the order of the whole grid."""
    for case in range(merging.cases):
        nth, first = divmod(case, merging.of)
        if first in merging.shards:
            for number in range(nth * merging.per_case, (nth + 1) * merging.per_case):
                yield first, number


def _sources(shard: Located, stack: ExitStack | None) -> list[Callable[[int], bytes]]:
    """Functions that give the traces, results and verdict of a cell, each line with its end.

    The files stay open until the end of `stack`; without one they are opened for each cell.
    """
    return [
        _source(shard.folder, name, places, None if stack is None else stack.enter_context(_opened(shard.folder, name)))
        for name, places in zip(_RECORDS, (shard.traces, shard.results, shard.verdicts), strict=True)
    ]


def _source(folder: Path, name: str, places: _Places, file: BinaryIO | None) -> Callable[[int], bytes]:
    starts, lengths, more = places.start, places.length, places.more

    def read(opened: BinaryIO, number: int) -> bytes:
        block = os.pread(opened.fileno(), lengths[number], starts[number])
        for start, length in more.get(number, ()):
            block += os.pread(opened.fileno(), length, start)
        return block if block.endswith(b"\n") else block + b"\n"  # of the last line a crash may have left out the end

    def of(number: int) -> bytes:
        if not lengths[number]:
            return b""
        if file is not None:
            return read(file, number)
        with _opened(folder, name) as opened:
            return read(opened, number)

    return of


_record = msgspec.json.Decoder(dict[str, msgspec.Raw])


def _renaming(old: str, own_id: bytes) -> Callable[[bytes, int], bytes]:
    """A function that gives a block of so many lines the merged run's id in place of the shard's."""
    key = b'"run_id":'
    before, after = key + msgspec.json.encode(old), key + own_id

    def rename(block: bytes, lines: int) -> bytes:
        # Records begin with their fields in the same order, and a text cannot hold unescaped quotes: as many places
        # as lines are those of the records themselves. What a system gave may have the same key and value, too.
        if not block or block.count(before) == lines:
            return block.replace(before, after)
        return b"".join(_renamed(line, own_id) for line in block.splitlines())

    return rename


def _renamed(line: bytes, own_id: bytes) -> bytes:
    record = _record.decode(line)
    record["run_id"] = msgspec.Raw(own_id)
    return msgspec.json.encode(record) + b"\n"


def _ordered(block: bytes, order: Mapping[bytes, int]) -> tuple[bytes, int]:
    """The rows of a cell, and how many: of each evaluator the last, in the order of the plan, others as they come."""
    rows: dict[bytes, bytes] = {}
    for line in block.splitlines(keepends=True):
        rows[bytes(_record.decode(line)["evaluator"])] = line
    names = sorted(rows, key=lambda name: order.get(name, len(order)))
    return b"".join(rows[name] for name in names), len(names)


def _created(path: Path) -> BinaryIO:
    try:
        return open(path, "xb", buffering=_BUFFER, opener=lambda name, flags: os.open(name, flags, PRIVATE))
    except OSError as error:
        raise storage_error("create", path, error) from error


def copy_artifacts(source: Path, target: Path) -> list[Problem]:
    """Copy the files of a shard's artifacts, durably; those that are there already with other bytes are problems."""
    problems: list[Problem] = []
    for path in sorted(source.rglob("*")):
        if path.is_symlink() or not path.is_file():
            continue  # links are not followed: a run folder may be anyone's
        copy = target / path.relative_to(source)
        try:
            if copy.exists():
                if copy.read_bytes() != path.read_bytes():
                    problems.append(Problem(str(path), "is in another shard, too, with other bytes"))
                continue
            copy.parent.mkdir(PRIVATE_FOLDER, parents=True, exist_ok=True)
            with path.open("rb") as original, _created(copy) as file:
                shutil.copyfileobj(original, file, _BUFFER)
                file.flush()
                os.fsync(file.fileno())
        except OSError as error:
            raise storage_error("copy", path, error) from error
    return problems


def spool(reader: RunReader, folder: Path) -> None:
    """Write the records of a run that is in no folder into one, as lines. Raises StorageError."""
    for name, records in (
        (TRACES, reader.traces(msgspec.Raw)),
        (RESULTS, reader.results(msgspec.Raw)),
        (VERDICTS, reader.verdicts(msgspec.Raw)),
    ):
        write_lines(folder / name, (bytes(record) + b"\n" for record in records))


def case_lines(reader: RunReader) -> Iterator[bytes]:
    """The cases of a run as stored. Raises InputError for a store that does not give them."""
    lines = getattr(reader, "case_lines", None)
    if lines is None:
        raise InputError(f"{reader.location} is in a store of another package, whose runs cannot be merged")
    found: Iterator[bytes] = lines()
    return found


def write_lines(path: Path, lines: Iterable[bytes]) -> None:
    """Write a new file, durably. Raises StorageError."""
    with _created(path) as file:
        try:
            file.writelines(lines)
            file.flush()
            os.fsync(file.fileno())
        except OSError as error:
            raise storage_error("write", path, error) from error
