"""Reading one run, a folder of JSON Lines files."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from filecmp import cmp
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, TypeVar

from evalwright.errors import InputError, Problem
from evalwright.files.masker import Masker
from evalwright.model.damage import MendedDamage
from evalwright.model.protocols import Part
from evalwright.model.snapshot import Case
from evalwright.model.summary import RunSummary
from evalwright.model.trace import is_newer
from evalwright.stores.documents import (
    INDEXED_FROM,
    PlanSecrets,
    cells_of,
    newer_version,
    summary_from_yaml,
)
from evalwright.stores.local_files.lines import LineDecoder, decoded_case
from evalwright.stores.local_files.opened import open_if_there, read_errors

if TYPE_CHECKING:
    from evalwright.model.cell_index import IndexCreation
    from evalwright.stores.index.reading import RunIndex
    from evalwright.stores.local_files.case_index import CaseIndex

__all__ = [
    "ARTIFACTS",
    "CASES",
    "PLAN",
    "RESULTS",
    "SUMMARY",
    "TRACES",
    "VERDICTS",
    "LocalReader",
]

T = TypeVar("T")

PLAN = "plan.json"
CASES = "cases.jsonl"
TRACES = "traces.jsonl"
RESULTS = "results.jsonl"
VERDICTS = "verdicts.jsonl"
SUMMARY = "summary.yaml"
ARTIFACTS = "artifacts"

_BUFFER = 1 << 20
_INDEX = "index.sqlite"
_BYTES_OF_CELL = 500
"""Minimum size of a cell's trace, for folders without a plan, which do not say how many cells there are."""


def _read_whole(path: Path) -> bytes | None:
    """The content of a file; None if there is none. Raises as `read_errors` does."""
    file = open_if_there(path)
    if file is None:
        return None
    with file:
        return file.read()


class LocalReader(PlanSecrets):
    """A run folder, read only; needs no lock and may be used while another process writes."""

    def __init__(self, folder: Path, masker: Masker, variables: Mapping[str, str] = {}) -> None:
        """`variables` replace `${NAME}`, which is stored for secrets: none for merely looking, as the run may come from
        anyone."""
        self.folder = folder
        self.location: str = str(folder)
        self.artifacts: Path = folder / ARTIFACTS
        self.damage: list[str] = []
        self._cases_file = str(folder / CASES)
        self._cases: CaseIndex | None = None
        super().__init__(str(folder / PLAN), partial(_read_whole, folder / PLAN), masker, variables)
        self._numbering = self.plan
        """Determines the numbers of cells in an index: commands give folders of other programs a plan of their own."""

    def cases(self, start: int = 0) -> Iterator[Case]:
        """The cases as run, from position `start`.

        Raises InputError at a damaged one: skipping it would move all later cases to a wrong position.
        """
        file = open_if_there(self.folder / CASES)
        if file is None:
            return
        with file:
            if start:
                file.seek(self._case_index().start_of(start))
            for number, line in enumerate(file, start):
                yield decoded_case(file.name, line, number + 1, self._variables, recorded=self._recorded)

    def case_lines(self) -> Iterator[bytes]:
        """The cases as stored, a line each."""
        if (file := open_if_there(self.folder / CASES)) is not None:
            with file:
                yield from file

    def case_blocks(self) -> Iterator[bytes]:
        """The same bytes in large blocks, which take a third of the time to hash."""
        if (file := open_if_there(self.folder / CASES)) is not None:
            with file:
                while block := file.read(_BUFFER):
                    yield block

    def has_cases_of(self, other: object) -> bool:
        """Whether another run in a folder has the same cases, byte for byte, and therefore the same hashes of them.

        Each run noted the hash of all its cases when it began; if one did not, files of the same size are read.
        """
        if not isinstance(other, LocalReader):
            return False
        own_file, other_file = self.folder / CASES, other.folder / CASES
        noted = [reader.plan.cases_sha256 if reader.plan is not None else "" for reader in (self, other)]
        try:
            if noted[0] and noted[0] == noted[1] and own_file.stat().st_size == other_file.stat().st_size:
                return True
            return cmp(own_file, other_file, shallow=False)
        except OSError:
            return False

    def case(self, index: int) -> Case:
        """The case at a position of the dataset. Raises InputError if there is none, or it is damaged."""
        line = self._case_index().line(index)
        if line is None:
            raise InputError(Problem(self._cases_file, f"there is no case {index + 1}: lines are missing"))
        return decoded_case(self._cases_file, line, index + 1, self._variables, recorded=self._recorded)

    def _case_index(self) -> CaseIndex:
        if self._cases is None:
            from evalwright.stores.local_files.case_index import CaseIndex

            self._cases = CaseIndex(open_if_there(self.folder / CASES))
        return self._cases

    def parts(self, count: int) -> list[Part]:
        """Byte ranges of the traces that start and end at starts of lines; none for a run without traces."""
        file = open_if_there(self.folder / TRACES)
        if file is None:
            return []
        from evalwright.stores.local_files.parts import cut_at_lines

        with file:
            return cut_at_lines(file, count)

    def traces(self, kind: type[T], part: Part | None = None) -> Iterator[T]:
        return self._records(TRACES, kind, part)

    def results(self, kind: type[T]) -> Iterator[T]:
        return self._records(RESULTS, kind)

    def verdicts(self, kind: type[T]) -> Iterator[T]:
        return self._records(VERDICTS, kind)

    def _records(self, name: str, kind: type[T], part: Part | None = None) -> Iterator[T]:
        if (file := self._opened_file(name)) is None:
            return
        with file:
            decoder = LineDecoder(name, self.damage, str(file.name))
            if part is None:
                yield from decoder.records(kind, file)
                return
            from evalwright.stores.local_files.parts import lines_within

            yield from decoder.records(
                kind, lines_within(file, part), lambda position: position + self._line_number(name, part[0])
            )

    def _opened_file(self, name: str) -> BinaryIO | None:
        from evalwright.stores.local_files.judgements import COMMITTED

        # A committed set comes first: see `judgements`.
        return open_if_there(self.folder / COMMITTED / name) or open_if_there(self.folder / name)

    def count_first_attempts(self) -> int | None:
        """See `first_attempts`."""
        if (file := self._opened_file(TRACES)) is None:
            return 0
        from evalwright.stores.local_files.first_attempts import first_attempts

        with file:
            return first_attempts(file)

    def count_verdicts(self) -> int:
        """The number of verdicts: see `LineDecoder.count`. Results of a later major version are refused, too."""
        count = 0
        for name in (RESULTS, VERDICTS):
            if (file := self._opened_file(name)) is not None:
                with file:
                    count = LineDecoder(name, self.damage, str(file.name)).count(file)
        return count

    def _line_number(self, name: str, position: int) -> int:
        """The number of the line that starts at a byte position. Reads the file again, but only if there is damage."""
        from evalwright.stores.local_files.parts import line_number

        with read_errors(self.folder / name), (self.folder / name).open("rb") as file:
            return line_number(file, position)

    def document(self, name: str) -> bytes | None:
        """A document that the run was created with; None if there is none. Raises InputError."""
        return _read_whole(self.folder / name)

    def summary(self) -> RunSummary | None:
        """The stored summary; None if there is none or it cannot be read, as it can be rebuilt."""
        try:
            data = (self.folder / SUMMARY).read_bytes()
        except OSError:
            return None
        try:
            summary = summary_from_yaml(data)
        except ValueError as error:
            self.damage.append(MendedDamage(f"{SUMMARY}: {error}"))
            return None
        if is_newer(summary.schema_version):
            raise newer_version(str(self.folder / SUMMARY), summary.schema_version)
        return summary

    def index(self, create: IndexCreation = "if_large", least: int | None = None) -> RunIndex | None:
        """See `evalwright.model.cell_index.index_of`. An index that is in the folder is used whatever its size."""
        keep = create == "to_keep" or self._is_large(least)
        if not (self._has_index or create == "always" or (keep and create != "never")):
            return None
        from evalwright.stores.index import opened_index

        return opened_index(self.folder, self._numbering, keep=keep)

    @property
    def _has_index(self) -> bool:
        return (self.folder / _INDEX).exists()

    def _is_large(self, least: int | None = None) -> bool:
        cells = INDEXED_FROM if least is None else min(least, INDEXED_FROM)
        if self._numbering is None:
            traces = self.folder / TRACES
            return traces.exists() and traces.stat().st_size >= cells * _BYTES_OF_CELL
        return cells_of(self._numbering) >= cells and self._numbering.run.index is not False

    def close(self) -> None:
        if self._cases is not None:
            self._cases.close()
        self._cases = None
