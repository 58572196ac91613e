"""The samples of a Letta suite's dataset as cases; all mistakes of a file are reported together."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from pathlib import Path
from typing import Any, NamedTuple

from evalwright.errors import FirstProblems, InputError, Problem
from evalwright.files.boundary import Boundary, OutsideError
from evalwright.files.bulk import Repeats
from evalwright.files.key_paths import Place, as_written
from evalwright.files.paths import seen_from_here
from evalwright.formats.letta.dataset_rows import (
    SAMPLE_KEYS,
    VARIABLES,
    DatasetRow,
    kind_in_sample,
    rows_of,
)
from evalwright.model.case import ExpectedBehavior, ForeignCase

__all__ = ["RESERVED", "Samples", "Selection"]

RESERVED = ("input", "ground_truth", "submission")
"""Names in rubrics that a sample's own variables must not use."""
_EMPTY = "the dataset is empty: no samples"
_NOTHING = ExpectedBehavior()

ReportProblem = Callable[[str, str], None]
"""Reports a mistake: the field and the message."""


class Selection(NamedTuple):
    """Which samples are taken, and what each must have."""

    tags: Sequence[str] = ()
    limit: int | None = None
    declared: Mapping[str, Sequence[str]] = {}
    """Variables that every sample must have, by grader."""
    allow_empty: bool = False
    recorded: Callable[[str], list[Any]] = lambda _sample_id: []
    """The inputs with which a sample was recorded."""
    rubrics: Mapping[str, Callable[[str | None], Set[str]]] = {}
    """The names in each grader's rubric, or in the rubric of a sample."""
    strict: bool = False
    """Whether a sample must have every name that a rubric uses; otherwise a missing one is a warning."""
    lacking: str = "it stays as it is"
    """What happens to a name that a sample lacks."""
    by_truth: Sequence[str] = ()
    """The graders that give a sample without a ground truth the score 0."""
    warn: Callable[[Place, str], None] = lambda _place, _message: None
    """Called after the last sample with likely mistakes in the suite."""


class _Mistakes:
    """The mistakes of a file, each with its row."""

    def __init__(self, file: str) -> None:
        self.row: DatasetRow | None = None
        """The row being read."""
        self._file, self._found = file, FirstProblems(file)

    @property
    def count(self) -> int:
        return self._found.count

    def report(self, field: str, message: str) -> None:
        self._found.add(self._problem(field, message))

    def _problem(self, field: str, message: str) -> Problem:
        if self.row is None:
            return Problem(self._file, message)
        where = f"line {self.row.line}, row {self.row.number}: " + (f"{field}: " if field else "")
        return Problem(self._file, where + message, self.row.line, field)

    def refuse(self) -> None:
        """Raise InputError if there are any."""
        self._found.refuse()


class Samples:
    """The samples of one file as cases; reads the file again each time."""

    def __init__(self, path: Path, folder: Path, selection: Selection, boundary: Boundary | None = None) -> None:
        self._path, self._folder, self._selection = path, folder, selection
        self._boundary = boundary or Boundary(folder)
        self._shown = str(seen_from_here(path))
        if path.suffix.lower() not in (".jsonl", ".csv"):
            raise InputError(
                Problem(self._shown, f"expected a dataset that ends in .jsonl or .csv, found {as_written(path.suffix)}")
            )

    def __iter__(self) -> Iterator[ForeignCase]:
        mistakes, ids = _Mistakes(self._shown), Repeats()
        taken = total = unsaid = 0
        lacking: Counter[tuple[str, str]] = Counter()
        for row in rows_of(self._path, self._shown):
            total += 1
            mistakes.row = row
            case = self._case(row, mistakes)
            if (name := _name(row) if case is None else case.id) is not None:
                ids.add(name)
            if case is None:
                continue
            if self._is_wanted(case) and (not self._selection.limit or taken < self._selection.limit):
                taken += 1
                self._check(case, mistakes.report, lacking)
                unsaid += not case.extra.get("ground_truth")
                if not mistakes.count:
                    yield case
        if repeated := ids.hashes():
            self._report_repeated(repeated, mistakes)
        mistakes.row = None
        if not total and not mistakes.count and not self._selection.allow_empty:
            mistakes.report("", _EMPTY)
        mistakes.refuse()
        self._warn(taken, unsaid)
        for (grader, name), count in lacking.items():
            message = (
                f"the rubric uses {{{name}}}, which {count:,} of {taken:,} samples lack: {self._selection.lacking}"
            )
            self._selection.warn(("graders", grader), message)

    def _report_repeated(self, hashes: set[int], mistakes: _Mistakes) -> None:
        """Report ids that occur twice, found by reading the file once more, which only a file with a mistake costs."""
        lines: dict[str, int] = {}
        for row in rows_of(self._path, self._shown):
            name = _name(row)
            if name is not None and hash(name) in hashes:
                if name in lines:
                    mistakes.row = row
                    mistakes.report("id", f"duplicate id {name!r}, first on line {lines[name]}")
                lines.setdefault(name, row.line)

    def why_empty(self) -> Problem:
        """Why no sample is taken."""
        total = sum(1 for _ in rows_of(self._path, self._shown))
        wanted = f"none of the {total:,} samples has all of sample_tags: {', '.join(self._selection.tags)}"
        return Problem(self._shown, wanted if total else _EMPTY)

    def _warn(self, taken: int, unsaid: int) -> None:
        warn, graders = self._selection.warn, self._selection.by_truth
        if unsaid and graders:
            named = ", ".join(map(repr, graders))
            warn(("dataset",), f"{unsaid:,} of {taken:,} samples have no ground truth, without which {named} scores 0")

    def _is_wanted(self, case: ForeignCase) -> bool:
        return all(tag in case.tags for tag in self._selection.tags)

    def _check(self, case: ForeignCase, report: ReportProblem, lacking: Counter[tuple[str, str]]) -> None:
        """Check what a sample needs to be run; count what it may lack."""
        variables = case.extra.get("rubric_vars") or {}
        for grader, names in self._selection.declared.items():
            if missing := [name for name in names if name not in variables]:
                report("rubric_vars", f"sample {case.id}: grader {grader!r} needs {', '.join(missing)}")
        for grader, names_in in self._selection.rubrics.items():
            unknown = sorted(names_in(case.extra.get("rubric")) - variables.keys() - {*RESERVED})
            if not self._selection.strict:
                lacking.update((grader, name) for name in unknown)
            elif unknown:
                report("rubric_vars", f"sample {case.id}: the rubric of {grader!r} has unknown {', '.join(unknown)}")
        for name in RESERVED:
            if name in variables:
                report("rubric_vars", f"sample {case.id}: the name {name!r} is reserved")
        for recorded in self._selection.recorded(case.id):
            if recorded != case.input:
                report("input", f"sample {case.id} was recorded with {recorded!r}, the dataset has {case.input!r}")

    def _case(self, row: DatasetRow, mistakes: _Mistakes) -> ForeignCase | None:
        before, report = mistakes.count, mistakes.report
        for field, message in row.mistakes:
            report(field, message)
        if row.fields is None:
            return None
        fields = row.fields
        question, name = _input(fields, report), _id(fields, row.number, report)
        metadata = _object(fields.get("metadata"), "metadata", report) or {}
        extra: dict[str, Any] = {"id": name}
        if (truth := fields.get("ground_truth")) is not None:
            extra["ground_truth"] = _ground_truth(truth, question, report)
        for key in VARIABLES:
            settings = _object(fields.get(key), key, report)
            if not settings and key in metadata:
                settings = _object(metadata[key], key, report) or settings
            if settings is not None:
                extra[key] = settings
        if (rubric := self._rubric(fields, report)) is not None:
            extra["rubric"] = rubric
        tags = _tags(fields.get("tags"), report)
        if mistakes.count > before:
            return None
        if not fields.keys() <= SAMPLE_KEYS:
            extra["unknown"] = {key: fields[key] for key in fields.keys() - SAMPLE_KEYS}
        return ForeignCase(id=str(name), input=question, expected=_NOTHING, tags=tags, metadata=metadata, extra=extra)

    def _rubric(self, fields: dict[str, Any], report: ReportProblem) -> str | None:
        text, named = fields.get("rubric"), fields.get("rubric_path")
        if text is not None and named is not None:
            report("rubric", "both 'rubric' and 'rubric_path' are given, expected one of them")
        elif named is not None:
            return self._rubric_at(named, report)
        elif text is not None and not isinstance(text, str):
            report("rubric", f"expected text, found {kind_in_sample(text)}")
        return text if isinstance(text, str) else None

    def _rubric_at(self, named: Any, report: ReportProblem) -> str | None:
        for folder in (self._folder, self._path.parent):
            if isinstance(named, str) and os.path.isfile(folder / named):
                try:
                    return self._boundary.read(folder / named).decode()
                except (OutsideError, OSError, UnicodeDecodeError) as error:
                    report("rubric_path", str(error))
                    return None
        report("rubric_path", f"there is no file {named!r}")
        return None


def _input(fields: dict[str, Any], report: ReportProblem) -> Any:
    question = fields.get("input")
    if question in (None, "") and fields.get("prompt") is not None:
        question = fields["prompt"]
    if question is None:
        report("input", "'input' is missing")
    elif isinstance(question, list):
        if not question or not all(isinstance(item, str) for item in question):
            kind = kind_in_sample(question) if question else "an empty list"
            report("input", f"expected text or a list of texts with at least one, found {kind}")
    elif not isinstance(question, str):
        report("input", f"expected text or a list of texts, found {kind_in_sample(question)}")
    return question


def _ground_truth(truth: Any, question: Any, report: ReportProblem) -> Any:
    if isinstance(truth, str):
        return truth
    if not isinstance(truth, list) or not all(isinstance(item, str) for item in truth):
        report("ground_truth", f"expected text or a list of texts, found {kind_in_sample(truth)}")
    elif not isinstance(question, list):
        report("ground_truth", "a list of texts needs an 'input' that is a list too, found text")
    elif len(truth) != len(question):
        report("ground_truth", f"expected one for each of the {len(question)} messages of 'input', found {len(truth)}")
    return truth


def _object(value: Any, name: str, report: ReportProblem) -> dict[str, Any] | None:
    if value is not None and not isinstance(value, dict):
        report(name, f"expected an object, found {kind_in_sample(value)}")
        return None
    return value


def _tags(value: Any, report: ReportProblem) -> list[str]:
    if value is None:
        return []
    if not isinstance(value, list) or not all(isinstance(tag, str) for tag in value):
        report("tags", f"expected a list of texts, found {kind_in_sample(value)}")
        return []
    return value


def _id(fields: dict[str, Any], number: int, report: ReportProblem) -> int | str:
    key = "sample_id" if fields.get("sample_id") is not None else "id"
    value = fields.get(key)
    if value is None:
        return number
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, bool) or not isinstance(value, (int, str)):
        report(key, f"expected an integer or text, found {kind_in_sample(value)}")
        return number
    return value


def _name(row: DatasetRow) -> str | None:
    """The id of a row as text, if it has a readable one."""
    if row.fields is None:
        return None
    wrong: list[str] = []
    name = _id(row.fields, row.number, lambda _field, message: wrong.append(message))
    return None if wrong else str(name)
