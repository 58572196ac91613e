"""The datasets of `eval.yaml`: `yaml`, `jsonl` and `fixture`.

A dataset can be gone through any number of times; each pass checks every case and reports all mistakes at its end.
"""

from __future__ import annotations

import random
from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import partial
from glob import has_magic
from itertools import islice
from pathlib import Path, PurePath
from typing import Any

import msgspec
from pydantic import ValidationError
from pydantic_core import from_json

from evalwright import registry
from evalwright.errors import InputError, Problem, counted
from evalwright.files import yaml as yaml_files
from evalwright.files.bulk import Repeats
from evalwright.files.jsonl import advice_on, lines_of
from evalwright.files.key_paths import Place, bracketed
from evalwright.formats.native.case_lines import Given, case_in
from evalwright.formats.native.cases import (
    FileCase,
    Tell,
    checked,
    make_plain,
    may_hold_no_json,
    take_recording,
    unknown_case_keys,
)
from evalwright.formats.native.filters import fits, why_none_fits
from evalwright.formats.shared.findings import empty_text_expected
from evalwright.model.case import EvalCase
from evalwright.model.snapshot import Case

__all__ = [
    "ENDINGS",
    "KEYS_OF_ROWS",
    "KEYS_ON_DISK",
    "PACKINGS",
    "Dataset",
    "ReadCase",
    "brought_by",
    "file_type",
    "fixture",
    "is_of_rows",
    "jsonl",
    "yaml",
]

_MOST_PROBLEMS = 100
_MOST_ASKED = 1000
"""Cases that can say what a filter could have matched."""

_INCLUDED = "answer_should_include"
_OF_ROWS = ("csv", "huggingface", "json", "parquet", "tsv")
ENDINGS = {**{kind: kind for kind in (*_OF_ROWS, "jsonl") if kind != "huggingface"}, "ndjson": "jsonl"}
"""Types of datasets by the endings that stand for them, but of YAML, which has two."""
PACKINGS = (".gz", ".zst")
KEYS_OF_ROWS = ("delimiter", "encoding", "map", "records", "source", "types")
"""Keys of `dataset` that rows have."""
KEYS_ON_DISK = ("name", "split", "subset")
"""Those that say which dataset of Hugging Face is meant."""
_PACKED = (".gz", ".zst")

ReadCase = tuple[FileCase | Case | None, list[Problem], Tell]
"""A case or its problems, and how to tell another problem of it."""


def is_of_rows(kind: str, path: str | Sequence[str], config: Mapping[str, Any]) -> bool:
    """Whether a dataset is read as rows: JSON Lines of cases in one plain file are not."""
    if kind != "jsonl":
        return kind in _OF_ROWS
    return not isinstance(path, str) or "map" in config or path.endswith(_PACKED) or has_magic(path)


def brought_by(kind: str | None, path: str | Sequence[str] | None) -> Mapping[str, Any]:
    """What a type of datasets brings to a suite that says nothing of it, by the name of the field."""
    if kind is None or not registry.knows("datasets", kind) or is_of_rows(kind, path or "", {}):
        return {}
    brought: Mapping[str, Any] = getattr(registry.load("datasets", kind), "completes", {})
    return brought


def file_type(path: str | Sequence[str]) -> str | None:
    """The type of dataset that the name of the first file stands for."""
    first = path if isinstance(path, str) else next(iter(path), "")
    for packing in PACKINGS:
        first = first.removesuffix(packing)
    return ENDINGS.get(PurePath(first).suffix.lower()[1:])


class Dataset:
    """Cases of one file, filtered and sampled."""

    def __init__(self, path: Path, name: str, config: Mapping[str, Any]) -> None:
        self._path = path
        self._filter: Mapping[str, Any] = config.get("filter") or {}
        self._sample: int | None = config.get("sample")
        seed = config.get("seed")
        self._seed = name if seed is None else seed
        self._read_of_expected: Collection[str] | None = config.get("read_of_expected")
        self._needed: Mapping[str, Collection[str]] = config.get("needed") or {}
        self._recordings_needed = bool(config.get("embed_full_trace"))
        self._hollow: tuple[Tell | None, int] = (None, 0)
        """Of the last pass: the first case that expects the empty text, and how many do."""

    def records(self) -> Iterator[tuple[Any, Tell]]:
        """Each case as plain data, and how to tell a problem of it."""
        raise NotImplementedError

    def found(self) -> Iterator[ReadCase]:
        raise NotImplementedError

    def __iter__(self) -> Iterator[EvalCase | Case]:
        for case, _ in self.placed():
            yield case

    def placed(self) -> Iterator[tuple[EvalCase | Case, Tell]]:
        """The cases, each with how to tell a problem of it."""
        if self._sample is None:
            yield from self._fitting()
            return
        total = sum(1 for _ in self._fitting())
        chosen = set(range(total))
        if self._sample < total:
            chosen = set(random.Random(self._seed).sample(range(total), self._sample))
        for i, case in enumerate(self._fitting()):
            if i in chosen:
                yield case

    def why_empty(self) -> Problem:
        """Why no case is left: the filter matches none, or there is none."""
        empty = next(self.found(), None) is None
        if empty or not self._filter:
            return Problem(str(self._path), "has no cases" if empty else "no case is selected: sample is 0")
        cases = [case for case, _, _ in islice(self.found(), _MOST_ASKED) if case is not None]
        return Problem(str(self._path), why_none_fits(cases, self._filter))

    def unknown_keys(self) -> Iterator[Problem]:
        """Keys of the cases that nothing reads, and evaluators for which none of the cases has anything."""
        idle, empty = dict(self._needed), True
        for raw, tell in self.records():
            empty = False
            yield from unknown_case_keys(raw, tell, self._read_of_expected)
            expected = raw.get("expected") if idle and isinstance(raw, dict) else None
            if isinstance(expected, dict):
                idle = {name: keys for name, keys in idle.items() if not any(expected.get(key) for key in keys)}
        for name, keys in () if empty else idle.items():
            none = f"no case has {' or '.join(f'expected.{key}' for key in sorted(keys))}"
            yield Problem(str(self._path), f"{none}: the evaluator {name!r} passes whatever the answer is")
        yield from self._empty_texts()

    def _empty_texts(self) -> Iterator[Problem]:
        tell, number = self._hollow
        if tell is not None and (self._read_of_expected is None or _INCLUDED in self._read_of_expected):
            yield tell(("expected", _INCLUDED), empty_text_expected(number))

    def _fitting(self) -> Iterator[tuple[EvalCase | Case, Tell]]:
        problems: list[Problem] = []
        count, ids = 0, Repeats()
        self._hollow = (None, 0)
        for case, wrong, tell in self.found():
            if wrong:
                count += len(wrong)
                problems += wrong[: _MOST_PROBLEMS - len(problems)]
            if case is None:
                continue
            ids.add(_identity(case))
            if not problems and (not self._filter or fits(case, self._filter)):
                if "" in case.expected.answer_should_include:
                    self._hollow = self._hollow[0] or tell, self._hollow[1] + 1
                yield case, tell
        if repeated := ids.hashes():
            duplicates = list(self._duplicates(repeated))
            count += len(duplicates)
            problems += duplicates
        if problems:
            shown = f", the first {_MOST_PROBLEMS}:" if count > _MOST_PROBLEMS else ":"
            raise InputError(problems[:_MOST_PROBLEMS], f"{counted(count, 'problem')} in {self._path}{shown}")

    def _duplicates(self, hashes: set[int]) -> Iterator[Problem]:
        """Ids that come again, found by reading the file once more: only a file with a mistake pays for it."""
        seen: set[str] = set()
        for case, _, tell in self.found():
            if case is not None and hash(_identity(case)) in hashes:
                if _identity(case) in seen:
                    yield tell((), f"duplicate case id {case.id!r}")
                seen.add(_identity(case))


def _identity(case: FileCase | Case) -> str:
    """The id, with the number of a case that shares it."""
    number = getattr(case, "occurrence", msgspec.UNSET)
    return case.id if number is msgspec.UNSET else f"{case.id}\0{number}"


class Yaml(Dataset):
    """`cases: [...]` in a YAML file."""

    versioned = True
    records_traces = False

    def records(self) -> Iterator[tuple[Any, Tell]]:
        document = yaml_files.load(self._path, "yaml11")
        for i, raw in enumerate(self._cases_of(document)):
            yield raw, partial(self._problem, document, i)

    def _problem(self, document: yaml_files.Document, index: int, steps: Place, message: str) -> Problem:
        place = ("cases", index, *steps)
        return Problem(str(self._path), message, document.line(place), bracketed(place))

    def found(self) -> Iterator[ReadCase]:
        for raw, tell in self.records():
            case, problems = checked(raw, tell)
            if case is not None:
                make_plain(case)
                problems = self._with_recording(case, tell)
            yield (None if problems else case), problems, tell

    def _with_recording(self, case: FileCase, tell: Tell) -> list[Problem]:
        if not (self.records_traces and self._recordings_needed):
            case.embedded_trace = case.recorded = None
            return []
        if case.embedded_trace is None and case.recorded is None:
            return [tell(("embedded_trace",), "needs an embedded_trace (embed_full_trace is true)")]
        return take_recording(case, tell)

    def _cases_of(self, document: yaml_files.Document) -> list[Any]:
        value, cases = document.value, None
        if isinstance(value, dict):
            cases, version = value.get("cases"), value.get("schema_version", "1.0")
            if self.versioned and not isinstance(version, str):
                raise self._refused(document, "schema_version", f"must be a string, found {version!r}")
            if self.versioned and not version.startswith("1."):
                raise self._refused(document, "schema_version", f"must be 1.x, found {version!r}")
        if isinstance(cases, list):
            return cases
        if isinstance(value, dict):
            raise self._refused(document, "cases", f"'cases' must be a list, found {type(cases).__name__}")
        found = "the file is empty" if value is None else f"found {type(value).__name__}"
        raise InputError(Problem(str(self._path), f"{found}, expected a mapping with 'cases'"))

    def _refused(self, document: yaml_files.Document, key: str, message: str) -> InputError:
        return InputError(Problem(str(self._path), message, document.line((key,)), key))


class Fixture(Yaml):
    """Like `yaml` without the version check; with `embed_full_trace` every case carries a recorded trace."""

    versioned = False
    records_traces = True


class Jsonl(Dataset):
    """One case a line; a line that embeds a recorded trace needs no leave to do so."""

    _given: Given | None = None
    """What the last pass through all lines found in them; None if some of them may have keys that nothing reads."""

    def records(self) -> Iterator[tuple[Any, Tell]]:
        for number, line in lines_of(self._path):
            yield from_json(line), partial(self._problem, number)

    def _problem(self, number: int, steps: Place, message: str) -> Problem:
        return Problem(str(self._path), message, number, bracketed(steps))

    def unknown_keys(self) -> Iterator[Problem]:
        if self._given is None or not self._given.all_read(self._read_of_expected, self._needed):
            yield from super().unknown_keys()
        else:
            yield from self._empty_texts()

    def found(self) -> Iterator[ReadCase]:
        given, plain = Given(), not self._recordings_needed
        self._given = None
        for number, line in lines_of(self._path):
            tell = partial(self._problem, number)
            if not self._recordings_needed and (read := case_in(line)) is not None:
                given.add(read.expected)
                yield read, [], tell
                continue
            plain = False
            case, problems = self._read(line, tell)
            line = b""
            yield (None if problems else case), problems, tell
        self._given = given if plain else None

    def _read(self, line: bytes, tell: Tell) -> tuple[FileCase | None, list[Problem]]:
        problems: list[Problem] = []
        case: FileCase | None
        try:
            case = FileCase.model_validate_json(line)
            if may_hold_no_json(line):
                case, problems = self._read_slowly(line, tell)
        except ValidationError:
            case, problems = self._read_slowly(line, tell)
        if case is not None:
            if case.embedded_trace is not None or case.recorded is not None:
                problems = take_recording(case, tell)
            elif self._recordings_needed:
                problems = [tell(("embedded_trace",), "needs an embedded_trace (embed_full_trace is true)")]
        return case, problems

    def _read_slowly(self, line: bytes, tell: Tell) -> tuple[FileCase | None, list[Problem]]:
        """What is wrong with a line, if anything: nulls that mean empty are right."""
        try:
            raw = from_json(line)
        except ValueError as error:
            reason, _, column = str(error).partition(" at line 1 column ")
            return None, [tell((), f"malformed JSON: {reason} (col {column or 1}){advice_on(line)}")]
        return checked(raw, tell)


yaml: type[Yaml] = Yaml
jsonl: type[Jsonl] = Jsonl
fixture: type[Fixture] = Fixture
