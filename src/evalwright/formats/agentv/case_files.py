"""Cases that are in other files than the suite.

`tests: ./cases.yaml`, a folder of folders with a `case.yaml` each, or `file://cases/*.yaml` in the list.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from evalwright.errors import InputError, Problem
from evalwright.files import yaml
from evalwright.files.boundary import Boundary, OutsideError
from evalwright.files.jsonl import exact, lines_of
from evalwright.files.key_paths import as_written, steps_of
from evalwright.files.paths import near_file

__all__ = ["LISTS", "SCHEME", "CasePlace", "cases_in_files", "names_cases"]

SCHEME = "file://"
_OF_FOLDER = ("case.yaml", "case.yml")
_KNOWN = (".yaml", ".yml", ".json", ".jsonl")
_BRACES = re.compile(r"\{([^{}]*,[^{}]*)\}")
LISTS = ("tests", "cases", "evalcases")
"""Keys of the list of cases in a file; the first one present counts."""


class CasePlace(NamedTuple):
    """Where a case is: its document and the path in it, or its line in JSON Lines."""

    path: Path
    document: yaml.Document | None
    at: tuple[str | int, ...]
    line: int | None = None

    def problem(self, case_id: str, path: str, message: str) -> Problem:
        """A mistake in the case, with its place."""
        place = "".join(f"[{step}]" if isinstance(step, int) else step for step in self.at)
        named = f" ({case_id})" if case_id else ""
        line = self.line
        if self.document is not None:
            line = self.document.line((*self.at, *steps_of(path)))
        key = f"{place}.{path}".strip(".")
        return Problem(str(self.path), f"{place}{named}: {message}".removeprefix(": "), line, key)


def names_cases(entry: Any) -> bool:
    """Whether an entry of a list of cases names files of cases."""
    return isinstance(entry, str) and entry.startswith(SCHEME)


def cases_in_files(
    path: Path, document: yaml.Document, key: str, allowed: Sequence[Path]
) -> tuple[list[Any], list[CasePlace]]:
    """All cases of a suite, in the order in which they are named. Raises InputError."""
    listed = document.value[key]
    boundary = Boundary(path.resolve().parent, allowed)
    cases: list[Any] = []
    places: list[CasePlace] = []
    entries = [(listed, (key,))] if isinstance(listed, str) else [(one, (key, i)) for i, one in enumerate(listed)]
    for entry, at in entries:
        if at == (key,) or names_cases(entry):
            named_cases = list(_named_cases(path, document, entry, at, boundary))
        else:
            named_cases = [(entry, CasePlace(path, document, at))]
        cases += [case for case, _ in named_cases]
        places += [place for _, place in named_cases]
    return cases, places


def _named_cases(
    path: Path, document: yaml.Document, entry: str, at: tuple[str | int, ...], boundary: Boundary
) -> Iterator[tuple[Any, CasePlace]]:
    """The cases of the files that an entry names."""
    line = document.line(at)
    pattern = entry.removeprefix(SCHEME)
    folder = path.resolve().parent
    wild = any(sign in pattern for sign in "*?[{") and not pattern.startswith("/")
    patterns = (
        [alternative for alternative in _alternatives(pattern) if alternative and not alternative.startswith("/")]
        if wild
        else []
    )
    files = sorted({file for name in patterns for file in folder.glob(name)}) if wild else [folder / pattern]
    if not wild and os.path.isdir(folder / pattern):
        yield from _cases_in_folders(path, folder / pattern, boundary, line, str(at[0]))
        return
    files = [file for file in files if os.path.isfile(file)]
    if not files:
        near = "" if wild else near_file(folder / pattern)
        message = f"there is no file of cases {entry!r}, relative to {folder}{near}"
        raise InputError(Problem(str(path), message, line, str(at[0])))
    for file in files:
        try:
            boundary.check(file)
        except OutsideError as error:
            raise InputError(Problem(str(path), str(error), line, str(at[0]))) from None
        suffix = file.suffix.lower()
        if suffix not in _KNOWN:
            message = f"cases are read from {', '.join(_KNOWN)}, not from {file.name}"
            raise InputError(Problem(str(path), message, line, str(at[0])))
        yield from _lines(file) if suffix == ".jsonl" else _cases_in_yaml(file)


def _alternatives(pattern: str) -> list[str]:
    """The patterns for which one with braces stands: `a.{yaml,yml}` for `a.yaml` and `a.yml`."""
    braces = _BRACES.search(pattern)
    if braces is None:
        return [pattern]
    parts = (f"{pattern[: braces.start()]}{part}{pattern[braces.end() :]}" for part in braces[1].split(","))
    return [alternative for part in parts for alternative in _alternatives(part)]


def _cases_in_folders(
    path: Path, folder: Path, boundary: Boundary, line: int | None, key: str
) -> Iterator[tuple[Any, CasePlace]]:
    """The case of each folder in a folder: its `case.yaml`. A case without an id gets the folder's name.

    A folder `workspace` beside it is the template of the workspace.
    """
    files = [file for entry in sorted(folder.iterdir()) for name in _OF_FOLDER if os.path.isfile(file := entry / name)]
    if not files:
        raise InputError(Problem(str(path), f"no folder in {folder} has a case.yaml", line, key))
    for file in files:
        try:
            boundary.check(file)
        except OutsideError as error:
            raise InputError(Problem(str(path), str(error), line, key)) from None
        document = yaml.load(file, "yaml12")
        if not isinstance(document.value, dict):
            raise InputError(Problem(str(file), f"expected one case, found {as_written(document.value)}"))
        case = {"id": file.parent.name, **document.value}
        if "workspace" not in case and os.path.isdir(file.parent / "workspace"):
            case["workspace"] = {"template": str(file.parent / "workspace")}
        yield case, CasePlace(file, document, ())


def _lines(file: Path) -> Iterator[tuple[Any, CasePlace]]:
    for number, line in lines_of(file):
        try:
            yield exact(line), CasePlace(file, None, (), number)
        except (ValueError, RecursionError) as error:
            raise InputError(Problem(str(file), f"malformed JSON: {error}", number)) from None


def _cases_in_yaml(file: Path) -> Iterator[tuple[Any, CasePlace]]:
    document = yaml.load(file, "yaml12")
    value = document.value
    if isinstance(value, dict) and "id" in value:
        yield value, CasePlace(file, document, ())
        return
    at: tuple[str | int, ...] = ()
    if isinstance(value, dict):
        at = next(((key,) for key in LISTS if isinstance(value.get(key), list)), ())
        value = value[at[0]] if at else value
    if not isinstance(value, list):
        raise InputError(Problem(str(file), f"expected a list of cases, found {as_written(value)}"))
    for i, case in enumerate(value):
        yield case, CasePlace(file, document, (*at, i))
