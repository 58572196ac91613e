"""A fresh copy of the same files for each cell: workspace type `tempdir_snapshot`."""

from __future__ import annotations

import shutil
import threading
from collections.abc import Callable, Mapping, Set
from itertools import count
from pathlib import Path
from typing import Any, TypeVar

from evalwright.errors import InputError, Problem
from evalwright.files.key_paths import as_written
from evalwright.files.paths import named_in
from evalwright.files.temporary import TemporaryFolder, remove_tree
from evalwright.model.artifact import Changes
from evalwright.model.snapshot import Case
from evalwright.workspaces.diffs import difference, removals
from evalwright.workspaces.trees import Mask, Twin, copy_tree

__all__ = ["CopiedWorkspace", "Snapshots", "folder_named", "reads", "refuse_left_out", "tempdir_snapshot", "text_in"]

M = TypeVar("M", bound=Callable[..., object])


def reads(*keys: str) -> Callable[[M], M]:
    """Declares the keys that a workspace reads as its `config_keys`: a suite with any other key gets a warning."""

    def declared(make: M) -> M:
        make.config_keys = keys  # type: ignore[attr-defined]
        return make

    return declared


@reads("copy_from", "base_path")
def tempdir_snapshot(config: Mapping[str, Any], suite_folder: Path) -> Snapshots:
    """A copy of a folder in the place for temporary files.

    `copy_from`: the folder that each cell starts with; `base_path`: where the copies are made.
    """
    problems: list[Problem] = []
    copy_from = folder_named("copy_from", config, suite_folder, problems)
    base_path = text_in("base_path", config, problems)
    if problems:
        raise InputError(problems)
    return Snapshots(copy_from, _place(base_path))


def text_in(key: str, config: Mapping[str, Any], problems: list[Problem]) -> str | None:
    """The string under a key, None if there is none; a mistake is added to `problems`."""
    value = config.get(key)
    if value is None or (isinstance(value, str) and value and "\0" not in value):
        return value
    problems.append(Problem("", f"{key!r} must be a string, found {as_written(value)}", key=key))
    return None


def folder_named(key: str, config: Mapping[str, Any], suite_folder: Path, problems: list[Problem]) -> Path | None:
    """The folder under a key, relative to the suite's folder if it exists there, else to the working directory."""
    name = text_in(key, config, problems)
    if name is None:
        return None
    folder = named_in(suite_folder / "eval.yaml", name)
    try:
        exists = folder.is_dir()
    except OSError:
        exists = False
    if not exists:
        problems.append(Problem("", f"{key!r}: folder {name!r} not found", key=key, absent=True))
    return folder


def _place(base_path: str | None) -> Path | None:
    return None if base_path is None else Path(base_path).expanduser()


class Snapshots:
    """Copies of one folder, or empty ones. The folder is read once, so that all cells of a run start equally."""

    base: Path | None
    copy_from: Path | None

    kind = "tempdir_snapshot"
    without: Set[str] = frozenset()
    """Entries at the top that are not compared."""

    def __init__(self, copy_from: Path | None, base_path: Path | None = None) -> None:
        self.copy_from, self.base = copy_from, base_path
        self._numbers = count(1)
        self._root: TemporaryFolder | None = None
        self._twin: Twin | None = None
        self._linking = threading.Lock()

    def open(self) -> None:
        """Make the copy that all cells start from. Raises InputError if the files cannot be copied."""
        try:
            self._root = TemporaryFolder(self.base)
            self.seed(self._root.path / "seed")
            # Copied once more, within an artifact's limits: a start that could not be compared later is an error now.
            scratch = self._root.path / "seen"
            tree = copy_tree(self._root.path / "seed", scratch, without=self.without)
            remove_tree(scratch)
        except OSError as error:
            raise InputError(f"cannot make a workspace: {error.strerror}: {error.filename}") from error
        refuse_left_out(tree.left_out)

    def seed(self, into: Path) -> None:
        """Fill a new folder with what each cell starts with."""
        if self.copy_from is None:
            into.mkdir()
            return
        refuse_left_out(copy_tree(self.copy_from.resolve(), into).left_out)

    def prepare(self, case: Case, trial: int) -> CopiedWorkspace:
        """A folder for one attempt at a cell. Raises OSError."""
        assert self._root is not None
        path = self._root.path / f"cell-{next(self._numbers)}"
        shutil.copytree(self._root.path / "seed", path, symlinks=True)
        return CopiedWorkspace(self, path)

    def collect(self, path: Path, into: Path, mask: Mask | None, start: Path | None = None) -> Changes:
        """Copy the files of a workspace before and after into a new folder; returns the changes.

        It began as `start`, or as all others did.
        Unchanged files are links to an earlier copy, so that the artifacts of a run take little more than its changes.
        """
        assert self._root is not None
        with self._linking:  # cells are collected in several threads
            twin = self._twin
        began = start or self._root.path / "seed"
        before = copy_tree(began, into / "before", without=self.without, mask=mask, twin=twin)
        with self._linking:
            self._twin = Twin(into / "before", before.manifest)
        after_twin = Twin(into / "before", before.manifest)
        after = copy_tree(path, into / "after", without=self.without, mask=mask, twin=after_twin)
        changes = difference(before, after, into / "before", into / "after")
        diffs = {**changes.diff.text_diffs, **removals(changes.diff.removed, into / "before")}
        (into / "diff.txt").write_bytes("".join(diffs[name] for name in sorted(diffs)).encode(errors="replace"))
        return changes

    def close(self) -> None:
        if self._root is not None:
            self._root.close()


class CopiedWorkspace:
    """The workspace of one attempt at a cell."""

    path: Path

    def __init__(self, snapshots: Snapshots, path: Path) -> None:
        self._snapshots, self.path = snapshots, path

    def collect(self, into: Path, mask: Mask | None = None) -> Changes:
        return self._snapshots.collect(self.path, into, mask)

    def remove(self) -> None:
        remove_tree(self.path)


def refuse_left_out(left_out: Mapping[str, str]) -> None:
    """Raise InputError if anything was left out: a cell that starts with only some of the files would be another
    case."""
    if left_out:
        listed = [f"{path}: {why}" for path, why in list(left_out.items())[:10]]
        raise InputError("cannot copy the files that each workspace starts with: " + "; ".join(listed))
