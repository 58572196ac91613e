"""Which suites the paths on a command line mean: files, folders and globs."""

from __future__ import annotations

import glob
import itertools
import os
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from evalwright.errors import InputError, Problem
from evalwright.formats.loading import fitting, suite_beside
from evalwright.formats.shared.folders import files_below
from evalwright.model.format import Format, Repository
from evalwright.registry import format_of, formats, resolve

__all__ = ["FoundSuites", "stood_for", "suite_files"]

_YAML = (".yaml", ".yml")
_NOT_SEARCHED = (".json",)
"""Most JSON files in a folder are not suites: those that are must be named, or have a name that only suites have."""


class FoundSuites(NamedTuple):
    """The suites among some paths, and what looks like one and is not."""

    files: list[Path]
    """Each once, in the order of the paths; sorted if one path means several."""
    skipped: list[Path]
    """YAML files in folders and globs whose format is not recognised and that are not sidecars."""


class _Searched(NamedTuple):
    """Which files in folders may be suites."""

    suffixes: tuple[str, ...]
    names: frozenset[str]

    @classmethod
    def of_formats(cls) -> _Searched:
        suffixes = {*_YAML, *(suffix for suite_format in formats() for suffix in suite_format.suffixes)}
        names = frozenset(name for suite_format in formats() for name in suite_format.names)
        return cls(tuple(suffixes - {*_NOT_SEARCHED}), names)

    def has(self, file: Path) -> bool:
        return file.name in self.names or file.name.endswith(self.suffixes)


def suite_files(paths: Sequence[Path], dialect: str | None = None) -> FoundSuites:
    """The suites among files, folders and globs; in folders and globs, those of a recognised or the given format.

    Folders are searched to the bottom, except hidden ones, `node_modules` and stored runs. If a repository says which
    of a format's files are suites, only those count, even in hidden folders. Without paths, the folder of such a
    repository is meant. Raises InputError for a glob or folder that contains no suite; the contents of files are not
    checked.
    """
    suites = FoundSuites([], [])
    problems = []
    for path in paths or [_repository_here()]:
        files, skipped = _meant(path, dialect)
        if not files:
            is_run = (path / "plan.json").is_file()
            run = "is a run folder, not a suite: it is for `evalwright resume`, `retry` and `re-evaluate`"
            problems.append(Problem(str(path), run if is_run else "contains no suite"))
        suites.files.extend(files)
        suites.skipped.extend(skipped)
    if problems:
        raise InputError(problems)
    return FoundSuites(list(dict.fromkeys(suites.files)), list(dict.fromkeys(suites.skipped)))


def _repository_here() -> Path:
    for _, repository in _repositories(Path.cwd()):
        return repository.root
    raise InputError(
        "Missing argument 'PATH...': name a suite, such as eval.yaml, or a folder with suites "
        "(no repository here or above lists its own under eval_patterns)"
    )


def _meant(path: Path, dialect: str | None) -> FoundSuites:
    searched = _Searched.of_formats()
    if not os.path.lexists(path) and glob.has_magic(str(path)):
        matches = sorted(map(Path, glob.glob(str(path), recursive=True)))  # noqa: PTH207 - takes absolute patterns too
        files = [file for match in matches for file in (_below(match, searched) if match.is_dir() else [match])]
        return _sorted_out(filter(searched.has, files), dialect)
    reads_folders = dialect is not None and format_of(dialect).reads_folders
    if reads_folders or not os.path.isdir(path):
        return FoundSuites([path], [])
    suites = _sorted_out(_below(path, searched), dialect)
    suites.files.extend(stood_for(path, dialect))
    for rules_of, repository in _repositories(path):
        suites = _selected_files(suites, path, rules_of, repository, dialect)
    return suites


def _below(folder: Path, searched: _Searched) -> Iterator[Path]:
    """The files in a folder that may be suites."""
    files = files_below(folder, {*searched.suffixes, *searched.names})
    return (file for file in files if searched.has(file) and not _has_another_name(file))


def _has_another_name(file: Path) -> bool:
    """Whether the suite of the file's folder is there under a name that its format prefers."""
    names = next((suite_format.names for suite_format in formats() if file.name in suite_format.names), ())
    return any(file.with_name(name).is_file() for name in itertools.takewhile(lambda name: name != file.name, names))


def stood_for(folder: Path, dialect: str | None) -> Iterator[Path]:
    """The suites that a folder stands for, whose files are not searched."""
    for suite_format in formats() if dialect is None else [format_of(dialect)]:
        if suite_format.suite_in is not None and (suite := resolve(suite_format.suite_in)(folder)) is not None:
            yield suite


def _repositories(folder: Path) -> Iterator[tuple[Format, Repository]]:
    """The rules of the repository that contains a folder, by the format that has them."""
    for suite_format in formats():
        if suite_format.repository is not None and (repository := resolve(suite_format.repository)(folder)) is not None:
            yield suite_format, repository


def _selected_files(
    suites: FoundSuites, folder: Path, rules_of: Format, repository: Repository, dialect: str | None
) -> FoundSuites:
    """What was found; of one format's files, only those that its rules select."""
    own = [file for file in suites.files if fitting(file) == [rules_of]]
    others = [file for file in suites.files if file not in own]
    selected = repository.select(folder, own)
    return FoundSuites(sorted({*others, *_sorted_out(selected, dialect).files}), suites.skipped)


def _sorted_out(files: Iterable[Path], dialect: str | None) -> FoundSuites:
    wanted = None if dialect is None else format_of(dialect)
    suites = FoundSuites([], [])
    for file in files:
        fits = fitting(file)
        if wanted in fits if wanted is not None else fits:
            suites.files.append(file)
        elif file.suffix in _YAML and suite_beside(file) is None:
            suites.skipped.append(file)
    return suites
