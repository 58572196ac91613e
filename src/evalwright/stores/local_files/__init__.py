"""Runs as folders of JSON Lines files: `<folder>/<run id>/`.

A run is built in a draft and appears under its id by a single rename. File names never come from data; the run id is
made safe first.
"""

from __future__ import annotations

import errno
import hashlib
import os
import re
import stat
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec

from evalwright.errors import InputError, Problem, StorageError
from evalwright.files.durable import PRIVATE, AppendFile, replace_file, storage_error, sync_folder
from evalwright.files.masker import Masker
from evalwright.files.paths import path_in, safe_id
from evalwright.model.plan import Plan
from evalwright.model.snapshot import Case
from evalwright.stores.documents import Masked, plan_to_json, reserved_words
from evalwright.stores.drafts import draft_in, free_places, publish
from evalwright.stores.local_files.lines import LineEncoder
from evalwright.stores.local_files.opened import read_errors
from evalwright.stores.local_files.reader import (
    CASES,
    PLAN,
    RESULTS,
    TRACES,
    VERDICTS,
    LocalReader,
)
from evalwright.stores.local_files.writer import LocalWriter
from evalwright.stores.lock import LOCK_NAME, RunLock, is_held

__all__ = ["LocalFiles", "is_run", "local_files"]

_BATCH = 1 << 16
_FAILING = (errno.EIO, errno.ESTALE)
"""Errors of a disk that does not say whether there is a file."""
_DATE_IN_ID = re.compile(r"(\d{4}-\d\d-\d\d)T(\d\d)-(\d\d)-(\d\d)")
_COUNTER = re.compile(r"(.*?)(?:-(\d{1,9}))?")


def local_files(config: Mapping[str, Any], masker: Masker | None, runs: Path) -> LocalFiles:
    """Runs as folders of JSON Lines files below `path`. Raises InputError."""
    return LocalFiles(path_in(config, "folder"), masker)


class LocalFiles(Masked):
    """A folder of runs. Without a masker, secrets of the environment are masked in everything written."""

    def __init__(self, folder: Path, masker: Masker | None = None) -> None:
        self.folder: Path = Path(folder).absolute()  # user code may change the working directory
        super().__init__(masker)

    @classmethod
    def at(cls, path: Path, masker: Masker | None = None) -> tuple[LocalFiles, str]:
        """The store and the run id of a run folder; links are followed. Raises InputError."""
        folder = Path(path).resolve()
        if not is_run(folder):
            raise _not_a_run(path, folder)
        _check_entries(folder)
        return cls(folder.parent, masker), folder.name

    def create(self, plan: Plan, cases: Iterable[Case], documents: Mapping[str, bytes]) -> LocalWriter:
        """A new run; see `Store.create`. Raises InputError and StorageError."""
        self._must_not_be_a_run()
        run_id = safe_id(plan.run_id)
        with draft_in(self.folder) as (draft, lock):
            encoder = LineEncoder(self._masker.keeping(reserved_words(plan)))
            plan.cases_total, plan.cases_sha256 = _write_cases(draft / CASES, cases, encoder)
            _write_documents(draft, documents, self._masker)
            folder = self._publish(draft, plan, run_id)
        return LocalWriter(folder, lock, self._masker, new=True)

    def _must_not_be_a_run(self) -> None:
        if is_run(self.folder):
            raise InputError(Problem(str(self.folder), "is a run: name the folder in which runs are created"))

    def _publish(self, draft: Path, plan: Plan, run_id: str) -> Path:
        """Rename the draft to the first free id."""
        for folder in free_places(self.folder, run_id):
            plan.run_id = folder.name  # the plan contains the id, so it is written again for each name that is tried
            replace_file(draft / PLAN, plan_to_json(plan, self._masker.keeping(reserved_words(plan))), PRIVATE)
            if publish(draft, folder):
                return folder
        raise AssertionError("numbers do not end")

    def assemble(self, plan: Plan, fill: Callable[[Path], None], unresolved: Mapping[str, str] = {}) -> LocalWriter:
        """Create a run whose records are all there from the start: `fill` writes them into a draft, which has its plan.

        The run's id must be set before, as the records contain it; `unresolved` are the placeholders of secrets in the
        plan. Raises InputError and StorageError.
        """
        self._must_not_be_a_run()
        with draft_in(self.folder) as (draft, lock):
            folder = next(free_places(self.folder, safe_id(plan.run_id)))
            plan.run_id = folder.name
            masker = self._masker.keeping(reserved_words(plan))
            replace_file(draft / PLAN, plan_to_json(plan, masker, unresolved), PRIVATE)
            fill(draft)
            try:
                sync_folder(draft)
            except OSError as error:
                raise storage_error("create", folder, error) from error
            if not publish(draft, folder):
                raise StorageError(f"cannot create {folder}: another process has just made it")
        return LocalWriter(folder, lock, self._masker, new=True)

    def open(self, run_id: str) -> LocalWriter:
        """Open a run for writing; see `Store.open`."""
        folder = self._existing(run_id)
        return LocalWriter(folder, RunLock(folder / LOCK_NAME, folder), self._masker)

    def read(self, run_id: str) -> LocalReader:
        """Open a run for reading; needs no lock. Raises InputError if there is no such run."""
        return LocalReader(self._existing(run_id), self._masker)

    def run_ids(self) -> list[str]:
        """Ids of the stored runs, oldest first; none of a folder that this user may not read. Raises StorageError if a
        folder cannot be listed for another reason."""
        try:
            folders = [path for path in self.folder.iterdir() if not path.name.startswith(".") and is_run(path)]
        except (FileNotFoundError, NotADirectoryError, PermissionError):
            return []
        except OSError as error:  # a list that seems empty would have its runs made once more
            raise storage_error("read", self.folder, error) from error
        return [folder.name for folder in sorted(folders, key=_age)]

    def is_written(self, run_id: str) -> bool:
        """Whether a process is writing the run."""
        return is_held(self.folder / run_id / LOCK_NAME)

    def _existing(self, run_id: str) -> Path:
        folder = self.folder / run_id
        if Path(run_id).name != run_id or run_id in ("", ".", "..") or not is_run(folder):
            raise _not_a_run(folder, folder)
        _check_entries(folder)
        return folder


def is_run(folder: Path) -> bool:
    """Whether a folder contains a run: it has traces and results. The other files may be missing, as in runs of
    evalh. False for a folder that this user may not read. Raises StorageError if the disk fails."""
    return _is_file(folder / TRACES) and _is_file(folder / RESULTS)


def _is_file(path: Path) -> bool:
    try:
        return stat.S_ISREG(os.stat(path).st_mode)  # noqa: PTH116 - called for each entry of large folders
    except OSError as error:
        if error.errno in _FAILING:
            raise storage_error("read", path, error) from error
    except ValueError:  # a NUL in a name
        pass
    return False


def _check_entries(folder: Path) -> None:
    """Raise InputError for entries of a run folder that we cannot have put there.

    A link that leads out of it could show any file; a pipe, socket or device keeps whoever reads it waiting for ever.
    """
    inside = os.path.realpath(folder)
    with read_errors(folder), os.scandir(folder) as entries:
        for entry in entries:
            if entry.is_symlink() and not os.path.realpath(entry.path).startswith(inside + os.sep):
                raise InputError(f"{entry.path} is a link that leads out of the run folder")
            # An entry removed meanwhile, such as a temporary file, is neither of the two, either.
            if not (entry.is_file() or entry.is_dir()) and Path(entry.path).exists():
                raise InputError(
                    f"{entry.path} is neither a file nor a folder (a pipe, perhaps): delete it, no run has one"
                )


def _not_a_run(path: Path, folder: Path) -> InputError:
    missing = " and no ".join(name for name in (TRACES, RESULTS) if not _is_file(folder / name))
    what = f"is not a run folder: it has no {missing}" if folder.exists() else "does not exist"
    try:
        runs = sorted(entry.name for entry in folder.parent.iterdir() if is_run(entry))
    except OSError:
        runs = []
    from difflib import get_close_matches

    near = get_close_matches(folder.name, runs, n=3) or runs[-3:]
    inside = sorted(entry.name for entry in folder.iterdir() if is_run(entry)) if folder.is_dir() else []
    if inside:
        which = f"one of the {len(inside):,} runs in it, like" if len(inside) > 1 else "the run in it,"
        hint = f"; name {which} {path / inside[-1]}"
    elif near:
        hint = f"; runs next to it: {', '.join(near)}"
    else:
        hint = f"; a run folder contains {TRACES} and {RESULTS}: `evalwright list runs FOLDER` lists runs"
    return InputError(f"{path} {what}{hint}")


def _write_cases(path: Path, cases: Iterable[Case], encoder: LineEncoder) -> tuple[int, str]:
    """Stream the cases into a durable file. Returns their number, and the SHA-256 of all lines."""
    total, pending, file, digest = 0, bytearray(), AppendFile(path, PRIVATE), hashlib.sha256()

    def write() -> None:
        digest.update(pending)
        file.append(pending)
        pending.clear()

    try:
        for case in cases:
            pending += encoder.case(case)
            total += 1
            if len(pending) >= _BATCH:
                write()
        write()
        file.sync()
    finally:
        file.close()
    return total, digest.hexdigest()


def _write_documents(draft: Path, documents: Mapping[str, bytes], masker: Masker) -> None:
    for name in (TRACES, RESULTS, VERDICTS):
        AppendFile(draft / name, PRIVATE).close()
    for name, content in documents.items():
        if Path(name).name != name or (draft / name).exists():
            raise ValueError(f"not a name for a document of a run: {name!r}")
        # Documents are users' files in any encoding: bytes that are not UTF-8 are kept unchanged.
        text = masker.mask_text(content.decode("utf-8", "surrogateescape"))
        replace_file(draft / name, text.encode("utf-8", "surrogateescape"), PRIVATE)


def _age(folder: Path) -> tuple[datetime, str, int]:
    """The sort key of a run: its start, from its plan, its name or its files; then its name, with `-10` after `-9`."""
    base, number = _COUNTER.fullmatch(folder.name).groups()  # type: ignore[union-attr]
    return _start_time(folder), base, int(number or 1)


class _Start(msgspec.Struct):
    started_at: datetime


def _start_time(folder: Path) -> datetime:
    with suppress(OSError, ValueError, RecursionError):
        plan = (folder / PLAN).read_bytes() if (folder / PLAN).is_file() else b""  # a pipe would keep us waiting
        started = msgspec.json.decode(plan, type=_Start).started_at
        return started if started.tzinfo else started.replace(tzinfo=UTC)
    with suppress(ValueError):
        if match := _DATE_IN_ID.match(folder.name):
            return datetime.fromisoformat(f"{match[1]}T{match[2]}:{match[3]}:{match[4]}+00:00")
    with suppress(OSError):
        return datetime.fromtimestamp((folder / TRACES).stat().st_mtime, UTC)
    return datetime.max.replace(tzinfo=UTC)
