"""A complete new set of results and verdicts, which replaces the old one by a single rename.

Several processes write shares into a hidden folder of the run; the shares are then joined to one file of results and
one of verdicts. Renaming that folder to `.judgements` is the commit: from then on readers look there first. A crash may
interrupt moving the two files to their usual places at any point; opening the run for writing completes it.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Sequence
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from evalwright.errors import StorageError
from evalwright.files.durable import PRIVATE, PRIVATE_FOLDER, storage_error, sync_folder
from evalwright.files.masker import Masker
from evalwright.model.result import CaseVerdict, EvaluationResult
from evalwright.stores.local_files.lines import LineEncoder

if TYPE_CHECKING:
    from datetime import datetime

    from evalwright.model.facts import RejudgedCell
    from evalwright.stores.index.cell_notes import CellNotes
    from evalwright.stores.index.numbering import PlanNumbering

__all__ = ["COMMITTED", "LocalJudgements", "LocalShare", "drop_abandoned", "finish_commit"]

COMMITTED = ".judgements"
_DRAFT = ".judging-"
_FILES = ("results.jsonl", "verdicts.jsonl")
_NOTES = "index"
_BUFFER = 1 << 20
_Swap = Callable[[Callable[[], None], Sequence[BinaryIO]], None]
_TOGETHER, _MOST_WAITING = 100, 1000
"""Cells whose lines are finished together."""


class LocalJudgements:
    """The new set of a run folder, from the first share to its commit."""

    def __init__(self, folder: Path, masker: Masker, swap: _Swap, numbering: PlanNumbering | None = None) -> None:
        """`swap(commit, notes)` calls `commit` while the files of the old set are closed.

        With a `numbering` of the cells in the run's index, `notes` are the files, one per share, that tell it about the
        new judgements (see `CellNotes`); there are none if some cells have no notes.
        """
        self._run, self._masker, self._swap, self._numbering = folder, masker, swap, numbering
        self._draft = folder / f"{_DRAFT}{os.urandom(4).hex()}"
        self._shares: dict[int, LocalShare] = {}
        try:
            self._draft.mkdir(PRIVATE_FOLDER)
        except OSError as error:
            raise storage_error("write", self._draft, error) from error

    def share(self, number: int) -> LocalShare:
        return self._shares.setdefault(number, LocalShare(self._draft, number, self._masker, self._numbering))

    def commit(self) -> None:
        """Replace the old set. Raises StorageError, also if a share was begun and never closed."""
        shares = [self._draft / str(number) for number in sorted(self._shares)]
        for share in shares:
            if not share.is_dir():
                raise StorageError(f"share {share.name} of the new results was never finished: {self._run}")
        try:
            for name in _FILES:
                _join([share / name for share in shares], self._draft / name)
            with ExitStack() as stack:  # kept open, they remain readable after their names are gone
                noted = all((share / _NOTES).exists() for share in shares)
                notes = [stack.enter_context((share / _NOTES).open("rb")) for share in shares if noted]
                for share in shares:
                    shutil.rmtree(share)
                sync_folder(self._draft)
                self._swap(self._put_in_place, notes)
        except OSError as error:
            raise storage_error("replace the results of", self._run, error) from error

    def _put_in_place(self) -> None:
        self._draft.rename(self._run / COMMITTED)
        # Made durable before anything is moved: a power cut could otherwise keep one move and lose the commit, and the
        # run would have new results with old verdicts.
        sync_folder(self._run)
        finish_commit(self._run)

    def abandon(self) -> None:
        for share in self._shares.values():
            share.drop()
        shutil.rmtree(self._draft, ignore_errors=True)


class LocalShare:
    """One process's share of new results and verdicts. It can be pickled until the first append."""

    def __init__(self, draft: Path, number: int, masker: Masker, numbering: PlanNumbering | None = None) -> None:
        self._draft, self._number, self._masker, self._numbering = draft, number, masker, numbering
        self._notes: CellNotes | None = None
        self._cells: list[RejudgedCell] = []
        self._encoder: LineEncoder | None = None
        self._files: tuple[BinaryIO, ...] = ()
        self._results: list[bytes] = []
        self._verdicts: list[bytes] = []

    def append_results(self, results: Sequence[EvaluationResult]) -> None:
        if results:  # encoded at once: an error must name these results
            self._results.append(self._open().unfinished(results))
            if len(self._results) >= _MOST_WAITING:  # not before its verdict, if that comes next
                self._write()

    def append_verdict(self, verdict: CaseVerdict) -> None:
        self._verdicts.append(self._open().unfinished([verdict]))
        if len(self._verdicts) >= _TOGETHER:
            self._write()

    def noting(self) -> Callable[[Sequence[RejudgedCell], datetime], None]:
        """See `JudgedBlocks`."""
        return self._note

    def _note(self, cells: Sequence[RejudgedCell], date: datetime) -> None:
        self._cells += [
            (index, trial, attempt, date if date > finished else finished, alike)
            for index, trial, attempt, finished, alike in cells
        ]

    def append_lines(self, results: bytes, verdicts: bytes) -> None:
        """See `JudgedBlocks`."""
        self._open()
        self._results.append(results)
        self._verdicts.append(verdicts)
        self._write()

    def close(self) -> None:
        """Finish the share: only then is it part of the new set. Raises StorageError."""
        self._open()  # a share without records is a share, too: its folder shows that it is finished
        self._write()
        try:
            for file in self._files:
                file.close()
            # Not synced: `commit` syncs the joined files; until then, a crash only loses a draft.
            self._open_folder().rename(self._draft / str(self._number))
        except OSError as error:
            raise storage_error("write", self._draft, error) from error

    def drop(self) -> None:
        """Close without finishing."""
        for file in self._files:
            with suppress(OSError):
                file.close()

    def _write(self) -> None:
        encoder = self._open()
        blocks = [encoder.finished(b"".join(lines)) for lines in (self._results, self._verdicts)]
        self._results.clear()
        self._verdicts.clear()
        for name, file, lines in zip(_FILES, self._files, blocks, strict=False):
            try:
                file.write(lines)
            except OSError as error:
                raise storage_error("write", self._draft / name, error) from error
        self._write_notes(*blocks)

    def _write_notes(self, results: bytes, verdicts: bytes) -> None:
        if self._notes is not None and not self._notes.add(self._cells, results, verdicts):
            self._notes = None
            (self._open_folder() / _NOTES).unlink()
        self._cells.clear()

    def _open(self) -> LineEncoder:
        """The encoder. Opens the files at first use, in the process that writes the share."""
        if self._encoder is None:
            folder = self._open_folder()
            try:
                folder.mkdir()
                for name in _FILES:  # one by one, so that an interruption leaves none that `drop` does not know
                    self._files = (*self._files, _private(folder / name))
                if self._numbering is not None:
                    self._begin_notes(self._numbering)
            except OSError as error:
                raise storage_error("write", folder, error) from error
            self._encoder = LineEncoder(self._masker)
        return self._encoder

    def _begin_notes(self, numbering: PlanNumbering) -> None:
        from evalwright.stores.index.cell_notes import CellNotes

        file = _private(self._open_folder() / _NOTES)
        self._files = (*self._files, file)
        self._notes = CellNotes(file, numbering)

    def _open_folder(self) -> Path:
        return self._draft / f"{self._number}.open"


def _private(path: Path) -> BinaryIO:
    return open(path, "xb", buffering=_BUFFER, opener=lambda name, flags: os.open(name, flags, PRIVATE))


def _join(sources: list[Path], target: Path) -> None:
    """Join the sources to one durable file."""
    if sources:  # the first one is moved, not copied: often there is only one
        sources[0].rename(target)
    with target.open("ab") as joined:
        for source in sources[1:]:
            with source.open("rb") as part:
                shutil.copyfileobj(part, joined, _BUFFER)
        joined.flush()
        os.fsync(joined.fileno())


def finish_commit(folder: Path) -> None:
    """Move a committed set to its usual place, as far as a crash left that undone. Raises StorageError."""
    committed = folder / COMMITTED
    if not committed.is_dir():
        return
    try:
        for name in _FILES:
            with suppress(FileNotFoundError):  # already moved before the crash
                (committed / name).rename(folder / name)
        sync_folder(folder)
        shutil.rmtree(committed)
    except OSError as error:
        raise storage_error("replace the results of", folder, error) from error


def drop_abandoned(folder: Path) -> None:
    """Remove sets that were never committed."""
    for draft in folder.glob(f"{_DRAFT}*"):
        shutil.rmtree(draft, ignore_errors=True)
