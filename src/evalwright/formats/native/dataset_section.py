"""The `dataset` of an `eval.yaml`: its type and its files."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from glob import has_magic
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Any

from evalwright import built_in, registry
from evalwright.errors import InputError, Problem
from evalwright.files.key_paths import steps_of
from evalwright.files.paths import named_in, near_file
from evalwright.model.plan import EvaluatorSpec
from evalwright.model.snapshot import Case

if TYPE_CHECKING:
    from evalwright.formats.native.file import EvalFile
    from evalwright.formats.native.suite_file import SuiteFile
    from evalwright.model.case import EvalCase

__all__ = ["ENDINGS", "PACKINGS", "DatasetReading", "brought_by", "file_type", "is_of_rows"]

_OF_ROWS = ("csv", "huggingface", "json", "parquet", "tsv", "xlsx")
ENDINGS = {**{kind: kind for kind in (*_OF_ROWS, "jsonl") if kind != "huggingface"}, "ndjson": "jsonl"}
"""Types of datasets by file ending, except YAML, which has two types."""
PACKINGS = (".gz", ".zst")
_KEYS_OF_ROWS = ("map", "source", "types")
"""Keys of `dataset` for rows of any type."""
_KEYS_OF_CSV, _KEYS_OF_JSON = ("delimiter", "encoding"), ("records",)
_KEYS_OF_TYPE = {"csv": _KEYS_OF_CSV, "json": _KEYS_OF_JSON, "tsv": _KEYS_OF_CSV, "xlsx": ("sheet",)}
_KEYS_ON_DISK = ("name", "split", "subset")
"""Keys that select a Hugging Face dataset."""

_NO_TABLES = {".yaml": "yaml", ".yml": "yaml", ".json": "json", ".jsonl": "jsonl"}
"""Types of datasets by suffixes that no table has."""
_SHEETS = (".xls", ".xlsm", ".ods")
_PATH = ("dataset", "path")


def is_of_rows(kind: str, path: str | Sequence[str], config: Mapping[str, Any]) -> bool:
    """Whether a dataset is read as rows: JSON Lines of cases in one plain file are not."""
    if kind != "jsonl":
        return kind in _OF_ROWS
    return not isinstance(path, str) or "map" in config or path.endswith(PACKINGS) or has_magic(path)


def brought_by(kind: str | None, path: str | Sequence[str] | None) -> Mapping[str, Any]:
    """The defaults that a type of dataset brings to a suite, by the name of the field."""
    if kind is None or not registry.knows("datasets", kind) or is_of_rows(kind, path or "", {}):
        return {}
    brought: Mapping[str, Any] = getattr(registry.load("datasets", kind), "completes", {})
    return brought


def file_type(path: str | Sequence[str]) -> str | None:
    """The type of dataset for the name of the first file."""
    first = path if isinstance(path, str) else next(iter(path), "")
    for packing in PACKINGS:
        first = first.removesuffix(packing)
    return ENDINGS.get(PurePath(first).suffix.lower()[1:])


class DatasetReading:
    """The cases of a suite, or why it has none."""

    def __init__(self, file: SuiteFile, sections: EvalFile, evaluators: list[EvaluatorSpec], *, to_run: bool) -> None:
        self._file, self._sections, self._evaluators, self._to_run = file, sections, evaluators, to_run

    def cases(self) -> Iterable[EvalCase | Case]:
        """The cases, read on iteration; none if the section has mistakes, which are then noted."""
        kind = self._kind() if "dataset" in self._sections.written else None
        if kind is None:
            return ()
        dataset = self._sections.dataset
        rows = is_of_rows(kind, dataset.path or "", dataset.extra)
        if kind in built_in.KINDS["datasets"]:
            self._file.doubt_keys(("dataset",), dataset, _own_keys(kind, rows))
        if dataset.own_evaluators and kind != "cases":
            self._file.report(("dataset", "own_evaluators"), "only cases of a dataset of type 'cases' have their own")
        return self._rows(kind) if rows else self._in_file(kind)

    def _kind(self) -> str | None:
        """The type of the dataset, stated or by the file's ending; None if there is none of that name."""
        dataset = self._sections.dataset
        kind = dataset.type or file_type(dataset.path or "")
        if kind is None:
            self._file.report(("dataset", "type"), _missing_type(dataset.path))
            return None
        return kind if self._file.known(("dataset", "type"), "datasets", kind) else None

    def _in_file(self, kind: str) -> Iterable[EvalCase | Case]:
        """The cases of a dataset in one file that is not of rows."""
        dataset = self._sections.dataset
        if isinstance(dataset.path, list):
            self._file.report(_PATH, f"cases of type {kind!r} are in one file, found a list")
            return ()
        path = self._file.found(_PATH, dataset.path or "")
        if not dataset.path or not os.path.isfile(path):
            what = "it is a folder" if os.path.isdir(path) else near_file(path).removeprefix("; ")
            message = f"there is no dataset file {dataset.path!r}" + (f"; {what}" if what else "")
            return self._missing(_at_path(message if dataset.path else "'path' is missing").problems)
        if self._to_run and not self._file.must_be_inside(_PATH, path):
            return ()  # nothing of it is shown either
        name = self._sections.eval.name if "eval" in self._sections.written else ""
        config = dataset.plain()
        if dataset.own_evaluators:
            folder = str(self._file.path.resolve().parent)
            config |= {"evaluators": self._evaluators, "expanded": self._file.expansion.expanded, "folder": folder}
            config["to_run"] = self._to_run
            with open(path, encoding="utf-8", errors="replace") as lines:  # noqa: PTH123 - `path` may be a text
                self._file.expansion.learn_from(lines)
        elif brought_by(kind, dataset.path):
            config |= {"evaluators": self._evaluators}
        elif self._to_run:
            config |= _expected_checks(self._evaluators)
        cases: Iterable[EvalCase | Case] = registry.load("datasets", kind)(path, name, config)
        self._file.files += getattr(cases, "files", ())
        return cases

    def _rows(self, kind: str) -> Iterable[EvalCase | Case]:
        """The cases of a dataset of rows, in any number of files."""
        from evalwright.formats.native.row_files import JsonlRows

        try:
            files = self._on_disk() if kind == "huggingface" else self._named_files()
        except InputError as error:
            return self._missing(error.problems)
        for file in files:
            if kind == "csv" and (other := _NO_TABLES.get(file.suffix.lower())):
                self._file.report(("dataset", "type"), f"{file.name} is not a table; did you mean type: {other}?")
                return ()
        config = self._sections.dataset.plain() | {"files": files}
        if self._to_run:
            config |= _expected_checks(self._evaluators)
        made = JsonlRows if kind == "jsonl" else registry.load("datasets", kind)
        try:
            cases: Iterable[EvalCase | Case] = made(files[0], self._sections.eval.name, config)
        except InputError as error:
            for problem in error.listed:
                self._file.report(steps_of(problem.key), problem.message)
            return ()
        return cases

    def _named_files(self) -> list[Path]:
        """The files at the path, or at each path of a list. Raises InputError for a path without files."""
        from evalwright.formats.native.tables import files_of

        path = self._sections.dataset.path
        files: list[Path] = []
        for name in [path] if isinstance(path, str) else path or []:
            pattern = self._file.path.parent / name if has_magic(name) else named_in(self._file.path, name)
            files_found = files_of(pattern)
            if not files_found:
                near = "" if has_magic(name) else near_file(pattern)
                what = "no file matches" if has_magic(name) else "there is no dataset file"
                raise _at_path(f"{what} {name!r}{near}")
            files += [self._file.found(_PATH, str(one)) for one in files_found]
        if not files:
            raise _at_path("'path' is missing")
        for file in files if self._to_run else ():
            self._file.must_be_inside(_PATH, file)
        return files

    def _on_disk(self) -> list[Path]:
        """The files in which Hugging Face keeps the dataset: in a folder of the suite, or in the user's cache."""
        from evalwright.formats.native.huggingface import dataset_files

        dataset = self._sections.dataset
        folder = self._file.path.resolve().parent
        if (
            isinstance(dataset.path, str)
            and self._to_run
            and not self._file.must_be_inside(_PATH, folder / dataset.path)
        ):
            raise InputError([])  # nothing of it is looked at
        files = dataset_files({**dataset.extra, "path": dataset.path}, folder)
        self._file.files += files
        return files

    def _missing(self, problems: Sequence[Problem]) -> Iterable[EvalCase | Case]:
        """The message for a missing dataset, which matters only to a run."""
        for problem in problems if self._to_run else ():
            if problem.file:
                self._file.findings.add(InputError(problem))
            else:
                self._file.report(steps_of(problem.key), problem.message)
        if self._to_run:
            return ()
        return _MissingDataset(
            Problem(str(self._file.path), problem.message, self._file.document.line(steps_of(problem.key)), problem.key)
            for problem in problems
        )


def _own_keys(kind: str, rows: bool) -> Sequence[str]:
    """Keys of the section that only datasets of this type have."""
    if kind == "huggingface":
        return (*_KEYS_OF_ROWS, *_KEYS_OF_CSV, *_KEYS_OF_JSON, *_KEYS_ON_DISK)
    if rows:
        return (*_KEYS_OF_ROWS, *_KEYS_OF_TYPE.get(kind, ()))
    own: Sequence[str] = getattr(registry.load("datasets", kind), "config_keys", ())
    return own


def _missing_type(path: str | Sequence[str] | None) -> str:
    """The message for a missing type when the file's ending does not give one."""
    name = PurePath((path if isinstance(path, str) else next(iter(path or ()), "")).lower())
    if name.suffix in _SHEETS:
        return f"{name.suffix} is not read: save the sheet as .xlsx or CSV"
    return "the key 'type' is missing" + (f": the ending {name.suffix!r} stands for none" if name.suffix else "")


def _at_path(message: str) -> InputError:
    return InputError(Problem("", message, key="dataset.path"))


def _expected_checks(evaluators: Iterable[EvaluatorSpec]) -> dict[str, object]:
    """Tells a dataset which keys nothing reads, and which evaluators find nothing to do in it."""
    from evalwright.evaluators.build import needed_keys

    return {"read_of_expected": _read_of_expected(evaluators), "needed": needed_keys(evaluators)}


def _read_of_expected(evaluators: Iterable[EvaluatorSpec]) -> frozenset[str] | None:
    """The keys of `expected` that the evaluators read; None if one of them may read any."""
    from evalwright.evaluators.build import build

    read: frozenset[str] = frozenset()
    for spec in evaluators:
        try:
            traits = build(spec).traits
        except InputError:
            return None
        own = traits.expected_keys if traits.uses_case else frozenset[str]()
        if own is None:
            return None
        read |= own
    return read


class _MissingDataset:
    """The cases of a missing dataset, reported when they are read."""

    def __init__(self, problems: Iterable[Problem]) -> None:
        self._problems = [*problems]

    def __iter__(self) -> Iterator[EvalCase]:
        raise InputError(self._problems)
