"""Datasets of Letta suites, JSONL and CSV, streamed; all mistakes of a file are reported together."""

from __future__ import annotations

import csv
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from pathlib import Path
from typing import Any, NamedTuple

from evalwright.errors import InputError, Problem, did_you_mean
from evalwright.files.boundary import Boundary, OutsideError
from evalwright.files.bulk import Repeats
from evalwright.files.jsonl import advice_on, decoded, lines_of
from evalwright.files.key_paths import Place
from evalwright.files.paths import seen_from_here
from evalwright.formats.shared.findings import kind_found
from evalwright.model.case import ExpectedBehavior, ForeignCase

__all__ = ["RESERVED", "SAMPLE_KEYS", "SAMPLE_OBJECTS", "Samples", "Selection"]

RESERVED = ("input", "ground_truth", "submission")
"""Names in rubrics that a sample's own variables must not take."""
_MOST_PROBLEMS = 100
_EMPTY = "the dataset is empty: no samples"
_NOTHING = ExpectedBehavior()
_VARIABLES = ("agent_args", "rubric_vars", "extra_vars")
SAMPLE_OBJECTS = (*_VARIABLES, "metadata")
SAMPLE_KEYS = {"id", "sample_id", "input", "prompt", "ground_truth", "tags", "rubric", "rubric_path", *SAMPLE_OBJECTS}
_CSV_LIMIT = 1 << 30
"""Bytes of one cell; the standard library's own limit is 128 KiB."""

Tell = Callable[[str, str], None]
"""Reports a mistake: the field and the message."""


class Selection(NamedTuple):
    """Which samples are taken, and what they must bring."""

    tags: Sequence[str] = ()
    limit: int | None = None
    declared: Mapping[str, Sequence[str]] = {}
    """Variables that every sample must have, by grader."""
    allow_empty: bool = False
    recorded: Callable[[str], list[Any]] = lambda _sample_id: []
    """The inputs with which a sample was recorded."""
    rubrics: Mapping[str, Callable[[str | None], Set[str]]] = {}
    """By grader, the names in its rubric or in a sample's own."""
    strict: bool = False
    """Whether a sample must have every name that a rubric uses; else one that lacks some is told of."""
    lacking: str = "it stays as it is"
    """What becomes of a name that a sample lacks."""
    by_truth: Sequence[str] = ()
    """The graders that score a sample without a ground truth 0."""
    warn: Callable[[Place, str], None] = lambda _place, _message: None
    """Called, after the last sample, with what in the suite is most likely not meant."""


class _Row(NamedTuple):
    number: int
    """From 0, counted over the whole file."""
    line: int
    fields: dict[str, Any] | None
    """None where the line is no sample at all."""
    mistakes: Sequence[tuple[str, str]] = ()
    """Fields and messages of what could not be read: such a field counts as absent, an input as text."""


class _Mistakes:
    """Counts the mistakes of a file and keeps the first of them."""

    def __init__(self, file: str) -> None:
        self.count = 0
        self.row: _Row | None = None
        """The row that is looked at."""
        self._file = file
        self._kept: list[Problem] = []

    def tell(self, field: str, message: str) -> None:
        self.count += 1
        if len(self._kept) < _MOST_PROBLEMS:
            self._kept.append(self._problem(field, message))

    def _problem(self, field: str, message: str) -> Problem:
        if self.row is None:
            return Problem(self._file, message)
        where = f"line {self.row.line}, row {self.row.number}: " + (f"{field}: " if field else "")
        return Problem(self._file, where + message, self.row.line, field)

    def refuse(self) -> None:
        """Raise InputError if there are any."""
        if self.count:
            noun = "problem" if self.count == 1 else "problems"
            shown = f", the first {_MOST_PROBLEMS}:" if self.count > _MOST_PROBLEMS else ":"
            raise InputError(self._kept, f"{self.count} {noun} in {self._file}{shown}")


class Samples:
    """The samples of one file as cases; reads the file again each time."""

    def __init__(self, path: Path, folder: Path, selection: Selection, boundary: Boundary | None = None) -> None:
        self._path, self._folder, self._selection = path, folder, selection
        self._boundary = boundary or Boundary(folder)
        self._shown = str(seen_from_here(path))
        suffix = path.suffix.lower()
        if suffix not in (".jsonl", ".csv"):
            raise InputError(
                Problem(self._shown, f"expected a dataset that ends in .jsonl or .csv, found {path.suffix!r}")
            )
        self._rows = self._csv_rows if suffix == ".csv" else self._jsonl_rows

    def __iter__(self) -> Iterator[ForeignCase]:
        mistakes, ids = _Mistakes(self._shown), Repeats()
        taken = total = unsaid = 0
        lacking: Counter[tuple[str, str]] = Counter()
        for row in self._rows():
            total += 1
            mistakes.row = row
            case = self._case(row, mistakes)
            if (name := _name(row) if case is None else case.id) is not None:
                ids.add(name)
            if case is None:
                continue
            if self._wanted(case) and (not self._selection.limit or taken < self._selection.limit):
                taken += 1
                self._check(case, mistakes.tell, lacking)
                unsaid += not case.extra.get("ground_truth")
                if not mistakes.count:
                    yield case
        if repeated := ids.hashes():
            self._tell_repeated(repeated, mistakes)
        mistakes.row = None
        if not total and not mistakes.count and not self._selection.allow_empty:
            mistakes.tell("", _EMPTY)
        mistakes.refuse()
        self._warn(taken, unsaid)
        for (grader, name), count in lacking.items():
            said = f"the rubric uses {{{name}}}, which {count:,} of {taken:,} samples lack: {self._selection.lacking}"
            self._selection.warn(("graders", grader), said)

    def _tell_repeated(self, hashes: set[int], mistakes: _Mistakes) -> None:
        """Ids that come again, found by reading the file once more: only a file with a mistake pays for it."""
        lines: dict[str, int] = {}
        for row in self._rows():
            name = _name(row)
            if name is not None and hash(name) in hashes:
                if name in lines:
                    mistakes.row = row
                    mistakes.tell("id", f"duplicate id {name!r}, first on line {lines[name]}")
                lines.setdefault(name, row.line)

    def why_empty(self) -> Problem:
        """Why no sample is taken."""
        total = sum(1 for _ in self._rows())
        wanted = f"none of the {total:,} samples has all of sample_tags: {', '.join(self._selection.tags)}"
        return Problem(self._shown, wanted if total else _EMPTY)

    def _warn(self, taken: int, unsaid: int) -> None:
        warn, graders = self._selection.warn, self._selection.by_truth
        if unsaid and graders:
            named = ", ".join(map(repr, graders))
            warn(("dataset",), f"{unsaid:,} of {taken:,} samples have no ground truth, without which {named} scores 0")

    def _wanted(self, case: ForeignCase) -> bool:
        return all(tag in case.tags for tag in self._selection.tags)

    def _check(self, case: ForeignCase, tell: Tell, lacking: Counter[tuple[str, str]]) -> None:
        """What a sample that is to be run must bring; counts what it may lack."""
        variables = case.extra.get("rubric_vars") or {}
        for grader, names in self._selection.declared.items():
            if missing := [name for name in names if name not in variables]:
                tell("rubric_vars", f"sample {case.id}: grader {grader!r} needs {', '.join(missing)}")
        for grader, names_in in self._selection.rubrics.items():
            unknown = sorted(names_in(case.extra.get("rubric")) - variables.keys() - {*RESERVED})
            if not self._selection.strict:
                lacking.update((grader, name) for name in unknown)
            elif unknown:
                tell("rubric_vars", f"sample {case.id}: the rubric of {grader!r} has unknown {', '.join(unknown)}")
        for name in RESERVED:
            if name in variables:
                tell("rubric_vars", f"sample {case.id}: the name {name!r} is reserved")
        for recorded in self._selection.recorded(case.id):
            if recorded != case.input:
                tell("input", f"sample {case.id} was recorded with {recorded!r}, the dataset has {case.input!r}")

    def _case(self, row: _Row, mistakes: _Mistakes) -> ForeignCase | None:
        before, tell = mistakes.count, mistakes.tell
        for field, message in row.mistakes:
            tell(field, message)
        if row.fields is None:
            return None
        fields = row.fields
        asked, name = _input(fields, tell), _id(fields, row.number, tell)
        metadata = _object(fields.get("metadata"), "metadata", tell) or {}
        extra: dict[str, Any] = {"id": name}
        if (truth := fields.get("ground_truth")) is not None:
            extra["ground_truth"] = _ground_truth(truth, asked, tell)
        for key in _VARIABLES:
            given = _object(fields.get(key), key, tell)
            if not given and key in metadata:
                given = _object(metadata[key], key, tell) or given
            if given is not None:
                extra[key] = given
        if (rubric := self._rubric(fields, tell)) is not None:
            extra["rubric"] = rubric
        tags = _tags(fields.get("tags"), tell)
        if mistakes.count > before:
            return None
        if not fields.keys() <= SAMPLE_KEYS:
            extra["unknown"] = {key: fields[key] for key in fields.keys() - SAMPLE_KEYS}
        return ForeignCase(id=str(name), input=asked, expected=_NOTHING, tags=tags, metadata=metadata, extra=extra)

    def _rubric(self, fields: dict[str, Any], tell: Tell) -> str | None:
        text, named = fields.get("rubric"), fields.get("rubric_path")
        if text is not None and named is not None:
            tell("rubric", "both 'rubric' and 'rubric_path' are given, expected one of them")
        elif named is not None:
            return self._rubric_at(named, tell)
        elif text is not None and not isinstance(text, str):
            tell("rubric", f"expected text, found {_kind(text)}")
        return text if isinstance(text, str) else None

    def _rubric_at(self, named: Any, tell: Tell) -> str | None:
        for folder in (self._folder, self._path.parent):
            if isinstance(named, str) and (folder / named).is_file():
                try:
                    return self._boundary.read(folder / named).decode()
                except (OutsideError, OSError, UnicodeDecodeError) as error:
                    tell("rubric_path", str(error))
                    return None
        tell("rubric_path", f"there is no file {named!r}")
        return None

    def _jsonl_rows(self) -> Iterator[_Row]:
        for number, (line, content) in enumerate(lines_of(self._path)):
            try:
                fields = decoded(content)
            except ValueError as error:
                yield _Row(number, line, None, [("", f"malformed JSON: {error}{advice_on(content)}")])
                continue
            if isinstance(fields, dict):
                yield _Row(number, line, fields)
            else:
                yield _Row(number, line, None, [("", f"expected an object, found {_kind(fields)}")])

    def _csv_rows(self) -> Iterator[_Row]:
        csv.field_size_limit(_CSV_LIMIT)
        try:
            with self._path.open(encoding="utf-8-sig", newline="") as file:
                yield from _records(csv.reader(file, strict=True), self._shown)
        except UnicodeDecodeError:
            raise InputError(self._undecodable()) from None
        except OSError as error:
            raise InputError(Problem(self._shown, f"cannot be read: {error.strerror}")) from error

    def _undecodable(self) -> Problem:
        """The first line that is not UTF-8: decoding the file as a whole gives no line."""
        for line, content in lines_of(self._path):
            try:
                content.decode()
            except UnicodeDecodeError as error:
                return Problem(self._shown, f"line {line}: byte {error.start + 1} of it is not UTF-8", line)
        return Problem(self._shown, "cannot be read: it is not UTF-8")


def _near_column(header: Sequence[str]) -> str:
    """What may be wrong with a header that has no column `input`."""
    if len(header) == 1 and any(mark in header[0] for mark in ";\t|"):
        return "; columns are separated by commas"
    return next((f"; should {name!r} be 'input'?" for name in header if did_you_mean(name.strip(), ["input"])), "")


def _records(reader: Any, file: str) -> Iterator[_Row]:
    header = next(reader, None)
    if not header:
        raise InputError(Problem(file, "the dataset is empty: there is no header row"))
    if "input" not in header and "prompt" not in header:
        raise InputError(
            Problem(
                file,
                f"line 1: there is no column 'input'{_near_column(header)} (the columns are: {', '.join(header)})",
                1,
            )
        )
    readers = [_CELLS.get(name) for name in header]
    number = -1
    while True:
        line = reader.line_num + 1
        try:
            cells = next(reader, None)
        except csv.Error as error:
            yield _Row(number + 1, line, None, [("", f"malformed CSV: {error}")])
            return
        if cells is None:
            return
        if not cells:
            continue
        number += 1
        if len(cells) > len(header):
            many = f"found {len(cells)} cells, expected {len(header)}, as many as columns"
            yield _Row(number, line, None, [("", many)])
        else:
            yield _decoded(number, line, zip(header, readers, cells, strict=False))


def _decoded(number: int, line: int, cells: Iterable[tuple[str, _Cell | None, str]]) -> _Row:
    """Cells are text; those of some columns hold JSON, and blank ones are absent."""
    fields: dict[str, Any] = {}
    mistakes: list[tuple[str, str]] = []
    for name, value_of, cell in cells:
        if text := cell.strip():
            try:
                fields[name] = cell if value_of is None else value_of(text)
            except ValueError as error:
                fields[name] = cell if name in ("input", "prompt") else None
                mistakes.append((name, f"invalid JSON: {error}"))
    if "input" not in fields and "prompt" not in fields:
        fields["input"] = ""
        mistakes.append(("input", "the cell is empty"))
    return _Row(number, line, fields, mistakes)


_Cell = Callable[[str], Any]
"""What a cell of a column says. Raises ValueError where it should be JSON and is not."""


def _text_or_list(text: str) -> Any:
    return decoded(text) if text[0] == "[" and text[-1] == "]" else text


def _number_or_text(text: str) -> int | str:
    return int(text) if text.isascii() and text.isdigit() else text


_CELLS: dict[str, _Cell] = {
    **dict.fromkeys((*SAMPLE_OBJECTS, "tags"), decoded),
    **dict.fromkeys(("input", "prompt", "ground_truth"), _text_or_list),
    **dict.fromkeys(("id", "sample_id"), _number_or_text),
}


def _input(fields: dict[str, Any], tell: Tell) -> Any:
    asked = fields.get("input")
    if asked in (None, "") and fields.get("prompt") is not None:
        asked = fields["prompt"]
    if asked is None:
        tell("input", "'input' is missing")
    elif isinstance(asked, list):
        if not asked or not all(isinstance(item, str) for item in asked):
            found = _kind(asked) if asked else "an empty list"
            tell("input", f"expected text or a list of texts with at least one, found {found}")
    elif not isinstance(asked, str):
        tell("input", f"expected text or a list of texts, found {_kind(asked)}")
    return asked


def _ground_truth(truth: Any, asked: Any, tell: Tell) -> Any:
    if isinstance(truth, str):
        return truth
    if not isinstance(truth, list) or not all(isinstance(item, str) for item in truth):
        tell("ground_truth", f"expected text or a list of texts, found {_kind(truth)}")
    elif not isinstance(asked, list):
        tell("ground_truth", "a list of texts needs an 'input' that is a list too, found text")
    elif len(truth) != len(asked):
        tell("ground_truth", f"expected one for each of the {len(asked)} messages of 'input', found {len(truth)}")
    return truth


def _object(value: Any, name: str, tell: Tell) -> dict[str, Any] | None:
    if value is not None and not isinstance(value, dict):
        tell(name, f"expected an object, found {_kind(value)}")
        return None
    return value


def _tags(value: Any, tell: Tell) -> list[str]:
    if value is None:
        return []
    if not isinstance(value, list) or not all(isinstance(tag, str) for tag in value):
        tell("tags", f"expected a list of texts, found {_kind(value)}")
        return []
    return value


def _id(fields: dict[str, Any], number: int, tell: Tell) -> int | str:
    key = "sample_id" if fields.get("sample_id") is not None else "id"
    value = fields.get(key)
    if value is None:
        return number
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, bool) or not isinstance(value, (int, str)):
        tell(key, f"expected an integer or text, found {_kind(value)}")
        return number
    return value


def _name(row: _Row) -> str | None:
    """The id of a row as text, where it has one that can be read."""
    if row.fields is None:
        return None
    wrong: list[str] = []
    name = _id(row.fields, row.number, lambda _field, message: wrong.append(message))
    return None if wrong else str(name)


def _kind(value: Any) -> str:
    wrong = [item for item in value if not isinstance(item, str)] if isinstance(value, list) else []
    return f"a list with {_kind(wrong[0])}" if wrong else kind_found(value, "an object")
