"""Which suites the paths of a command line mean: files, folders and globs."""

from __future__ import annotations

import glob
import os
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from evalwright import registry
from evalwright.errors import InputError, Problem
from evalwright.formats.agentv.file import lines_beside
from evalwright.formats.loading import fitting

if TYPE_CHECKING:
    from evalwright.formats.agentv.messages import Files

__all__ = ["Found", "suite_files"]

_YAML = (".yaml", ".yml")
_SUFFIXES = (*_YAML, ".jsonl")
_IGNORED = ("node_modules", ".git")
_BESIDE = ("targets", "config")
"""Files of a repository of AgentEvals that hold no cases."""
_OF_RUN = "config_hash.txt"
"""A folder with this file holds a run, and a copy of its suite (specification evalh: run folder)."""


class Found(NamedTuple):
    files: list[Path]
    """Each once, in the order of the paths, and sorted where one path means several."""
    passed_over: list[Path]
    """YAML files in folders, and of globs, that fit no format and are no sidecars."""


def suite_files(paths: Sequence[Path], dialect: str | None = None) -> Found:
    """The suites of files, folders and globs; of the latter two those that fit a format, or the given dialect.

    Folders are gone through to the bottom, apart from hidden ones, `node_modules` and stored runs. Of AgentEvals files
    in folders only those count that the `eval_patterns` of their repository name, where it has some, in hidden folders
    too. Without paths, the repository's folder is meant where it has some. Raises InputError for a glob or folder that
    leads to no suite; what a file holds is not looked at.
    """
    if not paths:
        repository = _with_patterns(Path.cwd())
        if repository is None:
            raise InputError("Missing argument 'PATH...': no .agentv/config.yaml here or above has eval_patterns")
        paths = [repository.root]
    found = Found([], [])
    problems = []
    for path in paths:
        files, passed_over = _meant(path, dialect)
        if not files:
            problems.append(Problem(str(path), "leads to no suite"))
        found.files.extend(files)
        found.passed_over.extend(passed_over)
    if problems:
        raise InputError(problems)
    return Found(list(dict.fromkeys(found.files)), list(dict.fromkeys(found.passed_over)))


def _meant(path: Path, dialect: str | None) -> Found:
    if not os.path.lexists(path) and glob.has_magic(str(path)):
        matches = sorted(map(Path, glob.glob(str(path), recursive=True)))  # noqa: PTH207 - takes absolute patterns too
        files = [file for match in matches for file in (_below(match) if match.is_dir() else [match])]
        return _sorted_out((file for file in files if file.suffix in _SUFFIXES), dialect)
    reads_folders = dialect is not None and getattr(registry.load("dialects", dialect), "reads_folders", False)
    if reads_folders or not os.path.isdir(path):  # noqa: PTH112 - Path.is_dir raises for a name too long
        return Found([path], [])
    repository = _with_patterns(path)
    found = _sorted_out(_below(path), dialect)
    return found if repository is None else _with_evals(found, path, repository, dialect)


def _with_patterns(folder: Path) -> Files | None:
    """The repository of a folder, if its `.agentv/config.yaml` says which files are evals."""
    from evalwright.formats.agentv.messages import Files

    repository = Files(folder.resolve())
    return repository if repository.config.evals is not None else None


def _with_evals(found: Found, folder: Path, repository: Files, dialect: str | None) -> Found:
    """What was found, of AgentEvals files only those that their repository names."""
    others = [file for file in found.files if file.stem in _BESIDE or fitting(file) != ["agentv"]]
    named = [file for file in _below(folder, hidden=True) if repository.is_eval(file.resolve())]
    return Found(sorted({*others, *_sorted_out(named, dialect).files}), found.passed_over)


def _below(folder: Path, *, hidden: bool = False) -> Iterator[Path]:
    def is_left_out(name: str) -> bool:
        return name in _IGNORED or (name.startswith(".") and not hidden)

    for place, folders, names in os.walk(folder):
        if _OF_RUN in names:
            folders.clear()
            continue
        folders[:] = sorted(name for name in folders if not is_left_out(name))
        yield from (Path(place, n) for n in sorted(names) if n.endswith(_SUFFIXES) and not is_left_out(n))


def _sorted_out(files: Iterable[Path], dialect: str | None) -> Found:
    found = Found([], [])
    for file in files:
        formats = fitting(file)
        if dialect in formats if dialect is not None else formats:
            found.files.append(file)
        elif file.suffix in _YAML and lines_beside(file) is None:
            found.passed_over.append(file)
    return found
