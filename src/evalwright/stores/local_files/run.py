"""One run as a folder of JSON Lines files: a reader, and a writer that holds the run's lock."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, suppress
from filecmp import cmp
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, BinaryIO, TypeVar

from evalwright.errors import InputError, Problem, StorageError
from evalwright.files.durable import PRIVATE, AppendFile, repair_tail, replace_file
from evalwright.files.masker import Masker
from evalwright.model.artifact import FilesystemArtifact
from evalwright.model.damage import Mended
from evalwright.model.plan import Plan
from evalwright.model.protocols import JudgementWriter, Part
from evalwright.model.result import CaseVerdict, EvaluationResult
from evalwright.model.snapshot import Case
from evalwright.model.summary import RunSummary
from evalwright.model.trace import Trace, is_newer
from evalwright.stores.documents import (
    INDEXED_FROM,
    cells_of,
    named_in_plan,
    newer_version,
    plan_from_json,
    plan_to_json,
    summary_from_yaml,
    summary_to_plain,
    summary_to_yaml,
)
from evalwright.stores.local_files.lines import LineDecoder, LineEncoder, decoded_case, reserved_words
from evalwright.stores.lock import RunLock

if TYPE_CHECKING:
    from evalwright.stores.index.keeper import IndexKeeper
    from evalwright.stores.index.reading import RunIndex
    from evalwright.stores.local_files.case_index import CaseIndex

__all__ = ["CASES", "PLAN", "RESULTS", "TRACES", "VERDICTS", "LocalReader", "LocalWriter"]

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
_MOST_HELD = 1 << 16
"""Bytes of records that wait to be written: more would no longer be in the processor's cache by then."""
_BYTES_OF_CELL = 500
"""Minimum size of a cell's trace, for folders without a plan, which do not say how many cells there are."""


def _stored_plan(path: Path, variables: Mapping[str, str]) -> tuple[Plan | None, dict[str, str]]:
    """The plan with its secrets from `variables`, and the placeholders of secrets that are not there."""
    data = _read(path)
    return (None, {}) if data is None else plan_from_json(str(path), data, variables)


def _read(path: Path) -> bytes | None:
    try:
        return path.read_bytes()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise InputError(Problem(str(path), f"cannot be read: {error.strerror}")) from error


class LocalReader:
    """A run folder, read only; needs no lock and may be used while another process writes."""

    plan: Plan | None

    def __init__(self, folder: Path, variables: Mapping[str, str] = {}) -> None:
        """`variables` replace `${NAME}`, which is stored for secrets: none for merely looking, as the run may come from
        anyone."""
        self.folder = folder
        self.location: str = str(folder)
        self.artifacts: Path = folder / ARTIFACTS
        self._variables = variables
        self.damage: list[str] = []
        self._cases_file = str(folder / CASES)
        self._cases: CaseIndex | None = None
        self.plan, self._placeholders = _stored_plan(folder / PLAN, variables)
        self.unresolved: list[str] = sorted(self._placeholders)
        self._numbering = self.plan
        """Determines the numbers of cells in an index: commands give folders of other programs a plan of their own."""

    def cases(self, start: int = 0) -> Iterator[Case]:
        """The cases as run, from position `start`.

        Raises InputError at a damaged one: skipping it would move all later cases to a wrong position.
        """
        file = _open_if_there(self.folder / CASES)
        if file is None:
            return
        with file:
            if start:
                file.seek(self._case_index().start_of(start))
            for number, line in enumerate(file, start):
                yield decoded_case(file.name, line, number + 1, self._variables)

    def case_lines(self) -> Iterator[bytes]:
        """The cases as stored, a line each."""
        if (file := _open_if_there(self.folder / CASES)) is not None:
            with file:
                yield from file

    def case_blocks(self) -> Iterator[bytes]:
        """The same bytes in large blocks, which take a third of the time to hash."""
        if (file := _open_if_there(self.folder / CASES)) is not None:
            with file:
                while block := file.read(_BUFFER):
                    yield block

    def has_cases_of(self, other: object) -> bool:
        """Whether another run in a folder has the same cases, byte for byte, and therefore the same hashes of them.

        Each run noted the hash of all its cases when it began; if one did not, files of the same size are read.
        """
        if not isinstance(other, LocalReader):
            return False
        mine, theirs = self.folder / CASES, other.folder / CASES
        noted = [one.plan.cases_sha256 if one.plan is not None else "" for one in (self, other)]
        try:
            if noted[0] and noted[0] == noted[1] and mine.stat().st_size == theirs.stat().st_size:
                return True
            return cmp(mine, theirs, shallow=False)
        except OSError:
            return False

    def case(self, index: int) -> Case:
        """The case at a position of the dataset. Raises InputError if there is none, or it is damaged."""
        line = self._case_index().line(index)
        if line is None:
            raise InputError(Problem(self._cases_file, f"there is no case {index + 1}: lines are missing"))
        return decoded_case(self._cases_file, line, index + 1, self._variables)

    def _case_index(self) -> CaseIndex:
        if self._cases is None:
            from evalwright.stores.local_files.case_index import CaseIndex

            self._cases = CaseIndex(_open_if_there(self.folder / CASES))
        return self._cases

    def parts(self, count: int) -> list[Part]:
        """Byte ranges of the traces that start and end at starts of lines; none for a run without traces."""
        file = _open_if_there(self.folder / TRACES)
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
        if (file := self._opened(name)) is None:
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

    def _opened(self, name: str) -> BinaryIO | None:
        from evalwright.stores.local_files.judgements import COMMITTED

        # A committed set comes first: see `judgements`.
        return _open_if_there(self.folder / COMMITTED / name) or _open_if_there(self.folder / name)

    def count_first_attempts(self) -> int | None:
        """See `first_attempts`."""
        if (file := self._opened(TRACES)) is None:
            return 0
        from evalwright.stores.local_files.first_attempts import first_attempts

        with file:
            return first_attempts(file)

    def count_verdicts(self) -> int:
        """The number of verdicts: see `LineDecoder.count`. Results of a later major version are refused, too."""
        count = 0
        for name in (RESULTS, VERDICTS):
            if (file := self._opened(name)) is not None:
                with file:
                    count = LineDecoder(name, self.damage, str(file.name)).count(file)
        return count

    def _line_number(self, name: str, position: int) -> int:
        """The number of the line that starts at a byte position. Reads the file again, but only if there is damage."""
        from evalwright.stores.local_files.parts import line_number

        with (self.folder / name).open("rb") as file:
            return line_number(file, position)

    def summary(self) -> RunSummary | None:
        """The stored summary; None if there is none or it cannot be read, as it can be rebuilt."""
        try:
            data = (self.folder / SUMMARY).read_bytes()
        except OSError:
            return None
        try:
            summary = summary_from_yaml(data)
        except ValueError as error:
            self.damage.append(Mended(f"{SUMMARY}: {error}"))
            return None
        if is_newer(summary.schema_version):
            raise newer_version(str(self.folder / SUMMARY), summary.schema_version)
        return summary

    def index(self, *, small: bool = False, keep: bool = False, make: bool = True) -> RunIndex | None:
        """See `evalwright.model.cell_index.index_of`. An index that is in the folder is used whatever its size.

        With `keep` there is one in the folder afterwards, even for a small run.
        """
        large = keep or self._is_large()
        if not ((make and (large or small)) or (self.folder / _INDEX).exists()):
            return None
        from evalwright.stores.index import opened_index

        return opened_index(self.folder, self._numbering, keep=large)

    def _is_large(self) -> bool:
        if self._numbering is None:
            traces = self.folder / TRACES
            return traces.exists() and traces.stat().st_size >= INDEXED_FROM * _BYTES_OF_CELL
        return cells_of(self._numbering) >= INDEXED_FROM and self._numbering.run.index is not False

    def close(self) -> None:
        if self._cases is not None:
            self._cases.close()
        self._cases = None


def _open_if_there(path: Path) -> BinaryIO | None:
    try:
        return path.open("rb", buffering=_BUFFER)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise InputError(Problem(str(path), f"cannot be read: {error.strerror}")) from error


class LocalWriter(LocalReader):
    """A run folder with the exclusive right to write."""

    plan: Plan | None

    def __init__(
        self, folder: Path, lock: RunLock, masker: Masker, variables: Mapping[str, str] = {}, *, new: bool = False
    ) -> None:
        """Opening a run that is not `new` completes what a crash interrupted: it moves committed results and removes
        torn last lines. The cases of a new run are read back with its secrets."""
        self._lock = lock
        self._files: list[AppendFile] = []
        self._held: tuple[list[bytes], ...] = ([], [], [])
        self._later: Callable[[Callable[[], None]], object] | None = None
        self._is_due, self._size = False, 0
        self._failure: StorageError | None = None
        self._keeper: IndexKeeper | None = None
        self._indexing = Lock()
        self._grown = False
        try:
            super().__init__(folder, masker.secrets if new else variables)
            if self.plan is not None:
                masker = masker.keeping(reserved_words(self.plan))
            self._masker = masker
            self._encoder = LineEncoder(masker)
            if not new:
                self._clear_up()
            self._open_files()
            if not new and (folder / _INDEX).exists() and (index := self.index()) is not None:
                index.close()  # a change from outside is only detectable until the files have grown
        except BaseException:  # the lock is held by now, and must be released whatever happens
            self.close()
            raise

    def reveal(self, variables: Mapping[str, str]) -> dict[str, str]:
        """See `RunWriter.reveal`."""
        named = named_in_plan(_read(self.folder / PLAN), variables)
        self._masker = self._masker.hiding(named)
        self._encoder = LineEncoder(self._masker)
        self._variables = {**variables, **self._masker.secrets}
        self.plan, self._placeholders = _stored_plan(self.folder / PLAN, self._variables)
        self.unresolved: list[str] = sorted(self._placeholders)
        return named

    def _clear_up(self) -> None:
        from evalwright.stores.local_files.judgements import drop_abandoned, finish_commit

        finish_commit(self.folder)  # before the files are opened, because it replaces them
        drop_abandoned(self.folder)
        for leftover in self.folder.glob(".*.tmp"):
            with suppress(OSError):
                leftover.unlink()

    def _open_files(self) -> None:
        for name in (TRACES, RESULTS, VERDICTS):
            path = self.folder / name
            # First: AppendFile takes the length that it finds for the end of the last whole line.
            if path.exists() and (cut := repair_tail(path)):
                self.damage.append(Mended(f"{name}: torn tail of {cut} bytes, cut"))
            self._files.append(AppendFile(path, PRIVATE))

    def append_trace(self, trace: Trace) -> None:
        self._append(0, self._encoder.unfinished((trace,)))
        self._grown = True

    def append_results(self, results: Sequence[EvaluationResult]) -> None:
        if results:
            self._append(1, self._encoder.unfinished(results))

    def append_verdict(self, verdict: CaseVerdict) -> None:
        self._append(2, self._encoder.unfinished((verdict,)))

    def append_lines(self, results: bytes, verdicts: bytes) -> None:
        """See `JudgedBlocks`."""
        self._append(1, results)
        self._append(2, verdicts)

    def _append(self, file: int, lines: bytes) -> None:
        if self._later is None:
            self._files[file].append(self._encoder.finished(lines))
            return
        self._held[file].append(lines)
        self._size += len(lines)
        if self._size > _MOST_HELD:
            self._write_held()
        elif not self._is_due:
            self._is_due = True
            self._later(self._due)

    def hold(self, later: Callable[[Callable[[], None]], object] | None) -> Callable[[], None]:
        """Keep what is appended until `later` calls the function that it gets, so that many cells take one write per
        file.

        With None, as in the beginning, each record is written at once. The returned function writes everything that is
        kept, at any time.
        """
        self._later = later
        self._write_held()
        return self._write_held

    def _due(self) -> None:
        self._is_due = False
        self._write_held()

    def _write_held(self) -> None:
        """Traces first, verdicts last, as if each record had been written by itself."""
        if self._failure is not None:  # no verdict may follow later if its trace cannot be written
            raise self._failure
        self._size = 0
        try:
            for file, held in zip(self._files, self._held, strict=False):
                if held:
                    block = b"".join(held)
                    held.clear()
                    file.append(self._encoder.finished(block))
        except StorageError as error:
            self._failure = error
            raise

    @property
    def encoder(self) -> LineEncoder:
        """Encodes the lines that `append_finished` accepts, also in another process."""
        return self._encoder

    def append_finished(self, traces: bytes, results: bytes, verdicts: bytes) -> None:
        """Append the records of many cells, as lines of `encoder`; several processes do so in turns."""
        self.follow()
        for file, lines in zip(self._files, (traces, results, verdicts), strict=True):
            if lines:
                file.append(lines)

    def follow(self) -> None:
        """Take note of what other processes appended in their turns, so that `sync` covers it too."""
        for file in self._files:
            file.follow()

    def sync(self) -> None:
        for file in self._files:
            file.sync()
        if self._grown and self._is_large():
            self._keep_index()

    def _keep_index(self) -> None:
        """Bring the index up to date with what was appended. Only for a run that grows, so re-evaluating creates
        none."""
        from evalwright.stores.index.keeper import IndexKeeper

        with self._indexing:  # the last sync of a run may come while one in a thread is still working
            if self._keeper is None:
                self._keeper = IndexKeeper(self.folder, self._numbering)
            self._keeper.follow()

    def save_summary(self, summary: RunSummary) -> None:
        replace_file(
            self.folder / SUMMARY, summary_to_yaml(self._masker.mask_strings(summary_to_plain(summary))), PRIVATE
        )

    def mask(self, text: str) -> str:
        return self._masker.mask_text(text)

    def save_artifact(self, artifact: FilesystemArtifact) -> None:
        from evalwright.stores.artifacts import write_artifact

        write_artifact(self.artifacts, artifact.artifacts_path, self._encoder.line(artifact))

    def save_plan(self, plan: Plan) -> None:
        masker = self._masker.keeping(reserved_words(plan))
        replace_file(self.folder / PLAN, plan_to_json(plan, masker, self._placeholders), PRIVATE)
        self.plan = plan

    def rewrite_judgements(self) -> JudgementWriter:
        from evalwright.stores.local_files.judgements import LocalJudgements

        numbering = None
        if self._numbering is not None and self._keeper is None and (self.folder / _INDEX).exists():
            from evalwright.stores.index.numbering import PlanNumbering

            numbering = PlanNumbering(self._numbering)
        return LocalJudgements(self.folder, self._masker, self._take_over, numbering)

    def _take_over(self, commit: Callable[[], None], notes: Sequence[BinaryIO]) -> None:
        """Replace the old files with new ones, and append to those from now on."""
        kept = self._index_keeper() if notes and not self.damage else None
        for file in self._files[1:]:
            file.close()
        try:
            commit()
        finally:  # also after a failure: the run can continue with whichever set is there
            self._files[1:] = [AppendFile(self.folder / name, PRIVATE) for name in (RESULTS, VERDICTS)]
        if kept is not None:
            with self._indexing, closing(kept):
                if kept.rejudge(notes):
                    return
        if not self.damage and self._is_large():  # all traces were read, and the rest is our own
            with self._indexing, closing(self._index_keeper()) as keeper:
                keeper.follow(last=True)

    def _index_keeper(self) -> IndexKeeper:
        from evalwright.stores.index.keeper import IndexKeeper

        return IndexKeeper(self.folder, self._numbering)

    def close(self) -> None:
        """Sync what is not synced yet, then release the lock. Raises StorageError."""
        try:
            self._write_held()
            for file in self._files:
                file.sync()
        finally:
            if self._keeper is not None:
                with self._indexing:
                    self._keeper.follow(last=True)
                    self._keeper.close()
            for file in self._files:
                file.close()
            super().close()
            self._lock.release()  # last: the next writer must find everything written
