"""A folder that contains only the files of its case: workspace type `case_files`."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from evalwright.errors import InputError
from evalwright.files.temporary import remove_tree
from evalwright.model.artifact import Changes
from evalwright.model.snapshot import Case
from evalwright.workspaces.snapshot import CopiedWorkspace, Snapshots, reads, refuse_left_out, tempdir_snapshot
from evalwright.workspaces.trees import Mask, copy_tree

__all__ = ["WORKSPACE_FILES", "case_files"]

WORKSPACE_FILES = "workspace_files"
"""The key of a case's `extra` with its files: paths in the workspace, and where each file or folder comes from."""


@reads("copy_from", "base_path")
def case_files(config: Mapping[str, Any], suite_folder: Path) -> CaseFiles:
    """A folder outside any repository with the files that the case names.

    `copy_from`: what all cells start with, by default nothing; `base_path`: where the folders are made.
    """
    plain = tempdir_snapshot(config, suite_folder)
    return CaseFiles(plain.copy_from, plain.base)


class CaseFiles(Snapshots):
    """Folders outside any repository, whose files a program could find by itself, each with its case's files."""

    kind = "case_files"

    def open(self) -> None:
        base = (self.base or Path(tempfile.gettempdir())).resolve()
        inside = next((folder for folder in (base, *base.parents) if (folder / ".git").exists()), None)
        if inside is not None:
            raise InputError(
                f"workspaces would be inside the repository {inside}: set TMPDIR, or base_path, to a folder outside it"
            )
        super().open()

    def prepare(self, case: Case, trial: int) -> CopiedWorkspace:
        copied = super().prepare(case, trial)
        start = copied.path.with_name(f"{copied.path.name}.start")
        for name, source in case.extra.get(WORKSPACE_FILES, {}).items():
            _copy(Path(source), copied.path / name)
        shutil.copytree(copied.path, start, symlinks=True)
        return _WithFiles(self, copied.path, start)


class _WithFiles(CopiedWorkspace):
    def __init__(self, snapshots: Snapshots, path: Path, start: Path) -> None:
        super().__init__(snapshots, path)
        self._start = start

    def collect(self, into: Path, mask: Mask | None = None) -> Changes:
        return self._snapshots.collect(self.path, into, mask, self._start)

    def remove(self) -> None:
        remove_tree(self._start)
        super().remove()


def _copy(source: Path, target: Path) -> None:
    """Raises OSError, and InputError for a folder of which a part cannot be copied."""
    target.parent.mkdir(parents=True, exist_ok=True)
    if not source.is_dir():
        shutil.copy(source, target)
        return
    with_all = target.with_name(f"{target.name}.copying")
    refuse_left_out(copy_tree(source, with_all).left_out)
    shutil.copytree(with_all, target, dirs_exist_ok=True)
    remove_tree(with_all)
