"""Writing one run, a folder of JSON Lines files, while holding its lock."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import closing, suppress
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, BinaryIO

from evalwright.errors import StorageError
from evalwright.files.durable import PRIVATE, AppendFile, repair_tail, replace_file
from evalwright.files.masker import Masker
from evalwright.model.artifact import FilesystemArtifact
from evalwright.model.damage import MendedDamage
from evalwright.model.plan import Plan
from evalwright.model.protocols import JudgementWriter
from evalwright.model.result import CaseVerdict, EvaluationResult
from evalwright.model.summary import RunSummary
from evalwright.model.trace import Trace
from evalwright.stores.documents import (
    plan_to_json,
    reserved_words,
    summary_to_plain,
    summary_to_yaml,
)
from evalwright.stores.local_files.lines import LineEncoder
from evalwright.stores.local_files.reader import (
    PLAN,
    RESULTS,
    SUMMARY,
    TRACES,
    VERDICTS,
    LocalReader,
)
from evalwright.stores.lock import RunLock

if TYPE_CHECKING:
    from datetime import datetime

    from evalwright.model.facts import RejudgedCell
    from evalwright.stores.index.keeper import IndexKeeper
    from evalwright.stores.index.written_cells import WrittenCells

__all__ = ["LocalWriter"]

_MOST_HELD = 1 << 16
"""Bytes of records that wait to be written: more would no longer be in the processor's cache by then."""


class LocalWriter(LocalReader):
    """A run folder with the exclusive right to write."""

    plan: Plan | None

    def __init__(self, folder: Path, lock: RunLock, masker: Masker, *, new: bool = False) -> None:
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
        self._cells: WrittenCells | None = None
        try:
            super().__init__(folder, masker, masker.secrets if new else {})
            self._encoder = LineEncoder(self._masker)
            if not new:
                self._clear_up()
            self._open_files()
            if not new and self._has_index and (index := self.index()) is not None:
                index.close()  # a change from outside is only detectable until the files have grown
        except BaseException:  # the lock is held by now, and must be released whatever happens
            self.close()
            raise

    def reveal(self, variables: Mapping[str, str]) -> dict[str, str]:
        """See `RunReader.reveal`."""
        named = super().reveal(variables)
        self._encoder = LineEncoder(self._masker)
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
                self.damage.append(MendedDamage(f"{name}: torn tail of {cut} bytes, cut"))
            self._files.append(AppendFile(path, PRIVATE))

    def _ends(self) -> list[int]:
        return [file.length for file in self._files]

    def append_trace(self, trace: Trace) -> int:
        line = self._encoder.unfinished((trace,))
        if self._cells is not None:
            self._cells.add_trace(trace, line)
        self._held[0].append(line)
        self._write_soon(len(line))
        self._grown = True
        return len(line)

    def append_results(self, results: Sequence[EvaluationResult]) -> None:
        if results:
            lines = self._encoder.unfinished(results)
            if self._cells is not None:
                self._cells.add_results(results, lines)
            self._held[1].append(lines)
            self._write_soon(len(lines))

    def append_verdict(self, verdict: CaseVerdict) -> None:
        line = self._encoder.unfinished((verdict,))
        if self._cells is not None:
            self._cells.add_verdict(verdict, line)
        self._held[2].append(line)
        self._write_soon(len(line))

    def noting(self) -> Callable[[Sequence[RejudgedCell], datetime], None] | None:
        """See `JudgedBlocks`. From now on, the index of a large run is kept without reading back what is appended."""
        if self.plan is None or not self._is_large():
            return None
        from evalwright.stores.index.written_cells import WrittenCells

        self._cells = WrittenCells(self.plan, self._ends())
        return self._cells.note

    def append_lines(self, results: bytes, verdicts: bytes) -> None:
        """See `JudgedBlocks`."""
        if self._cells is not None:
            self._cells.add_lines(results, verdicts)
        self._held[1].append(results)
        self._held[2].append(verdicts)
        self._write_soon(len(results) + len(verdicts))

    def _write_soon(self, size: int) -> None:
        """Write what is held, and has grown by this many bytes: at once or a little later."""
        self._size += size
        if self._later is None or self._size > _MOST_HELD:
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
        self._size, changed = 0, False
        try:
            for file, held in zip(self._files, self._held, strict=False):
                if held:
                    block = b"".join(held)
                    held.clear()
                    finished = self._encoder.finished(block)
                    changed = changed or finished is not block
                    file.append(finished)
        except StorageError as error:
            self._failure = error
            raise
        if self._cells is not None:
            self._cells.written(self._ends(), changed=changed)
            if self._cells.are_many:
                self._keep_index(at_once=True)

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

    def _keep_index(self, *, at_once: bool = False) -> None:
        """Bring the index up to date with what was appended, `at_once` or not at all if that means to wait. Only for a
        run that grows, so re-evaluating creates none."""
        from evalwright.stores.index.keeper import IndexKeeper

        # Another thread than the one that appends does most syncs, and may still be at work at the last one of a run.
        if not self._indexing.acquire(blocking=not at_once):
            return
        try:
            if self._keeper is None:
                self._keeper = IndexKeeper(self.folder, self._numbering)
            written = () if self._cells is None else self._cells.taken()
            self._keeper.follow(written=written, may_wait=not at_once)
        finally:
            self._indexing.release()

    def save_summary(self, summary: RunSummary) -> None:
        replace_file(
            self.folder / SUMMARY, summary_to_yaml(self._masker.mask_strings(summary_to_plain(summary))), PRIVATE
        )

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
        if self._numbering is not None and self._keeper is None and self._has_index:
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
            if self._cells is not None:
                self._cells.replaced(self._ends())
        if kept is not None:
            with self._indexing, closing(kept):
                if kept.rejudge(notes):
                    return
        if not self.damage and self._has_index and self._is_large():  # all traces were read, and the rest is our own
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
                    self._keeper.follow(last=True, written=() if self._cells is None else self._cells.taken())
                    self._keeper.close()
            for file in self._files:
                file.close()
            super().close()
            self._lock.release()  # last: the next writer must find everything written
