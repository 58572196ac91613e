"""Repositories whose `.agentv/config.yaml` says which of their files are evals."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from evalwright.formats.agentv.message_files import Files
from evalwright.formats.shared.folders import files_below

__all__ = ["repository_of"]

_SUFFIXES = (".yaml", ".yml", ".jsonl")
_BESIDE = ("targets", "config")
"""Files without cases, which patterns for evals do not mean."""


class _Repository:
    """A repository with `eval_patterns`."""

    def __init__(self, files: Files) -> None:
        self._files = files
        self.root: Path = files.root

    def select(self, folder: Path, found: Sequence[Path]) -> list[Path]:
        beside = [file for file in found if file.stem in _BESIDE]
        below = files_below(folder, _SUFFIXES, hidden=True)
        return [*beside, *(file for file in below if self._files.is_eval(file.resolve()))]


def repository_of(folder: Path) -> _Repository | None:
    """The repository that contains a folder, if it has patterns. Raises InputError for mistakes in its
    configuration."""
    files = Files(folder.resolve())
    return _Repository(files) if files.config.evals is not None else None
