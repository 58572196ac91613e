"""What all datasets of `eval.yaml` have in common, and the most common one: a case a line.

A dataset can be gone through any number of times; each pass checks every case and reports all mistakes at its end.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace
from functools import partial
from itertools import islice
from operator import itemgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any, Union

import msgspec
from msgspec import UNSET, UnsetType

from evalwright.errors import FirstProblems, Problem, with_others
from evalwright.files.bulk import Repeats
from evalwright.files.jsonl import has_each_key_once, lines_of
from evalwright.files.key_paths import Place, bracketed
from evalwright.formats.shared.findings import NOT_READ, empty_text_expected, passes_always
from evalwright.model.snapshot import Case, Expected

if TYPE_CHECKING:
    from evalwright.formats.native.cases import FileCase, ReportProblem
    from evalwright.model.case import EvalCase

__all__ = ["Dataset", "ReadCase", "jsonl"]

_MOST_ASKED = 1000
"""Cases that can say what a filter could have matched."""

_INCLUDED = "answer_should_include"
_DEEPEST = 200
"""Brackets in a line whose values may be nested deeper than pydantic reads."""
_NO_RECORDING = msgspec.Raw(b"null")

ReadCase = tuple[Union["FileCase", Case, None], list[Problem], "ReportProblem"]
"""A case or its problems, and a function that reports another one."""


_case_of = itemgetter(0)


class Dataset:
    """Cases of one file, filtered and sampled."""

    def __init__(self, path: Path, name: str, config: Mapping[str, Any]) -> None:
        self._path = path
        self._filter: Mapping[str, Any] = {}
        if condition := config.get("filter"):
            from evalwright.formats.native.cases import as_json_holds

            self._filter = as_json_holds(condition)
        self._sample: int | None = config.get("sample")
        seed = config.get("seed")
        self._seed = name if seed is None else seed
        self._read_of_expected: Collection[str] | None = config.get("read_of_expected")
        self._needed: Mapping[str, Collection[str]] = config.get("needed") or {}
        self._recordings_needed = bool(config.get("embed_full_trace"))
        self._hollow: tuple[ReportProblem | None, int] = (None, 0)
        """In the last pass: the first case that expects the empty text, and how many do."""

    def records(self) -> Iterator[tuple[Any, ReportProblem]]:
        """Each case as plain data, with a function that reports a problem with it. Those that cannot be read at all are
        left out, and all of them where `found` rejects unknown keys."""
        return iter(())

    def found(self) -> Iterator[ReadCase]:
        raise NotImplementedError

    def __iter__(self) -> Iterator[EvalCase | Case]:
        return map(_case_of, self.placed())

    def placed(self) -> Iterator[tuple[EvalCase | Case, ReportProblem]]:
        """The cases, each with a function that reports a problem with it."""
        return self._fitting() if self._sample is None else self._sampled_cases()

    def _sampled_cases(self) -> Iterator[tuple[EvalCase | Case, ReportProblem]]:
        total = sum(1 for _ in self._fitting())
        chosen = set(range(total))
        if self._sample is not None and self._sample < total:
            import random

            chosen = set(random.Random(self._seed).sample(range(total), self._sample))
        for i, case in enumerate(self._fitting()):
            if i in chosen:
                yield case

    def why_empty(self) -> Problem:
        """Why no case is left: either the filter matches none, or the dataset is empty."""
        empty = next(self.found(), None) is None
        if empty or not self._filter:
            return Problem(str(self._path), "has no cases" if empty else "no case is selected: sample is 0")
        from evalwright.formats.shared.filters import why_none_fits

        cases = [case for case, _, _ in islice(self.found(), _MOST_ASKED) if case is not None]
        return Problem(str(self._path), why_none_fits(cases, self._filter))

    def unknown_keys(self) -> Iterator[Problem]:
        """Keys of the cases that nothing reads, and evaluators that no case has anything for."""
        from evalwright.formats.native.cases import unknown_case_keys
        from evalwright.model.case import ExpectedBehavior

        parts: dict[str, tuple[ReportProblem, int]] = {}
        empty = True
        for raw, report in self.records():
            empty = False
            yield from unknown_case_keys(raw, report)
            expected = raw.get("expected") if isinstance(raw, dict) else None
            for key, value in expected.items() if isinstance(expected, dict) else ():
                if value:
                    first, number = parts.get(key, (report, 0))
                    parts[key] = first, number + 1
        read = self._read_of_expected
        unread = () if read is None else parts.keys() & ExpectedBehavior.model_fields.keys() - set(read)
        for key in sorted(unread):
            first, number = parts[key]
            yield replace(first(("expected", key), NOT_READ), more=number - 1)
        if not empty:
            yield from self._idle(parts)
        yield from self._empty_texts()

    def _idle(self, parts: Collection[str]) -> Iterator[Problem]:
        """Evaluators that need parts of `expected` that no case has; `parts` are those that some case has."""
        for name, keys in self._needed.items():
            if not any(key in parts for key in keys):
                yield Problem(str(self._path), passes_always(name, keys))

    def _empty_texts(self) -> Iterator[Problem]:
        report, number = self._hollow
        if report is not None and (self._read_of_expected is None or _INCLUDED in self._read_of_expected):
            yield report(("expected", _INCLUDED), empty_text_expected(number))

    def _fitting(self) -> Iterator[tuple[EvalCase | Case, ReportProblem]]:
        problems, ids = FirstProblems(str(self._path)), Repeats()
        self._hollow = (None, 0)
        for case, wrong, report in self.found():
            problems.add(*wrong)
            if case is None:
                continue
            ids.add(case.id if getattr(case, "occurrence", UNSET) is UNSET else _identity(case))
            if not problems.count and (not self._filter or self._fits(case)):
                if "" in case.expected.answer_should_include:
                    self._hollow = self._hollow[0] or report, self._hollow[1] + 1
                yield case, report
        if repeated := ids.hashes():
            problems.add(*self._duplicates(repeated))
        if problems.count:
            every = FirstProblems(str(self._path))
            for problem in with_others([*problems], self._strangers()):
                every.add(problem)
            every.refuse()

    def _strangers(self) -> Iterator[Problem]:
        """Keys of the cases that nothing reads, found by reading the file once more as `_duplicates` are."""
        from evalwright.formats.native.cases import unknown_case_keys

        for raw, report in self.records():
            yield from unknown_case_keys(raw, report)

    def _fits(self, case: FileCase | Case) -> bool:
        from evalwright.formats.shared.filters import matches_filter

        return matches_filter(case, self._filter)

    def _duplicates(self, hashes: set[int]) -> Iterator[Problem]:
        """Repeated ids, found by reading the file once more: only a file with a mistake pays for it."""
        seen: set[str] = set()
        for case, _, report in self.found():
            if case is not None and hash(_identity(case)) in hashes:
                if _identity(case) in seen:
                    yield report((), f"duplicate case id {case.id!r}")
                seen.add(_identity(case))


def _identity(case: FileCase | Case) -> str:
    """The id, with the number of a case that shares it."""
    number = getattr(case, "occurrence", UNSET)
    return case.id if number is UNSET else f"{case.id}\0{number}"


class _Expected(msgspec.Struct, forbid_unknown_fields=True, gc=False):
    must_call_tools: list[str] | UnsetType = UNSET
    answer_should_include: list[str] | UnsetType = UNSET
    answer_should_not_include: list[str] | UnsetType = UNSET
    facts: dict[str, Any] | UnsetType = UNSET
    must_modify_files: list[str] | UnsetType = UNSET
    must_not_modify_files: list[str] | UnsetType = UNSET


class _Line(msgspec.Struct, forbid_unknown_fields=True, gc=False):
    """A case as a line has it: keys that it has not are not written either when it is encoded again."""

    id: str
    input: dict[str, Any]
    expected: _Expected | UnsetType = UNSET
    metadata: dict[str, Any] | UnsetType = UNSET
    tags: list[str] | UnsetType = UNSET
    group: str | UnsetType | None = UNSET
    schema_version: str | UnsetType = UNSET


_decode = msgspec.json.Decoder(_Line).decode
_NOTHING = _Expected()


class ExpectationCounts:
    """How many cases of a dataset have each part of `expected`, so that checking its keys needs no second reading."""

    def __init__(self) -> None:
        self.cases: int = 0
        self.parts: Counter[str] = Counter()

    def add(self, expected: Expected) -> None:
        self.cases += 1
        parts = self.parts
        if expected.answer_should_include:
            parts["answer_should_include"] += 1
        if expected.facts:
            parts["facts"] += 1
        if expected.must_call_tools:
            parts["must_call_tools"] += 1
        if expected.answer_should_not_include:
            parts["answer_should_not_include"] += 1
        if expected.must_modify_files:
            parts["must_modify_files"] += 1
        if expected.must_not_modify_files:
            parts["must_not_modify_files"] += 1


def case_in(line: bytes) -> Case | None:
    """The case in a line, none of whose objects has a key twice; None if it needs the slow reader."""
    try:
        read = _decode(line)
        if not has_each_key_once(line, read):
            return None
    except (ValueError, RecursionError):
        return None
    version = "1.0" if read.schema_version is UNSET else read.schema_version
    if not read.id.strip() or (version != "1.0" and not version.startswith("1.")):
        return None
    if line.count(b"[") + line.count(b"{") > _DEEPEST:
        return None
    expectations = read.expected or _NOTHING
    expected = Expected(
        expectations.must_call_tools or [],
        expectations.answer_should_include or [],
        expectations.answer_should_not_include or [],
        expectations.facts or {},
        expectations.must_modify_files or [],
        expectations.must_not_modify_files or [],
        None,
    )
    return Case(
        read.id,
        read.input,
        expected,
        read.metadata or {},
        read.tags or [],
        _NO_RECORDING,
        None if read.group is UNSET else read.group,
        schema_version=version,
    )


class Jsonl(Dataset):
    """JSON Lines, one case a line.

    A line may embed a recorded trace, even if the dataset does not say so. A line in which anything is doubtful (a key
    that nothing reads, null, a recording, numbers that JSON has not) is no mistake yet: pydantic reads it, and says
    what is wrong with it if anything is.
    """

    _given: ExpectationCounts | None = None
    """What the last pass through all lines found in them; None if some of them may have keys that nothing reads."""

    def records(self) -> Iterator[tuple[Any, ReportProblem]]:
        from pydantic_core import from_json

        for number, line in lines_of(self._path):
            try:
                raw = from_json(line)
            except ValueError:
                continue  # a mistake that is reported as such
            yield raw, partial(self._problem, number)

    def _problem(self, number: int, steps: Place, message: str) -> Problem:
        return Problem(str(self._path), message, number, bracketed(steps))

    @property
    def without_repeats(self) -> Path | None:
        """The file, if the last pass has shown that no object in it has a key twice."""
        return None if self._given is None else self._path

    def unknown_keys(self) -> Iterator[Problem]:
        if self._given is None:
            yield from super().unknown_keys()
            return
        yield from self._unread(self._given)
        if self._given.cases:
            yield from self._idle(self._given.parts)
        yield from self._empty_texts()

    def _unread(self, keys: ExpectationCounts) -> Iterator[Problem]:
        """The first case with each part of `expected` that no evaluator reads."""
        read = self._read_of_expected
        left = {} if read is None else {key: n for key, n in sorted(keys.parts.items()) if key not in read}
        if not left:
            return
        for number, line in lines_of(self._path):
            if (case := case_in(line)) is None:  # another file is there by now
                continue
            for key in [key for key in left if getattr(case.expected, key)]:
                yield replace(self._problem(number, ("expected", key), NOT_READ), more=left.pop(key) - 1)
            if not left:
                return

    def found(self) -> Iterator[ReadCase]:
        keys, plain = ExpectationCounts(), not self._recordings_needed
        self._given = None
        for number, line in lines_of(self._path):
            report = partial(self._problem, number)
            if not self._recordings_needed and (read := case_in(line)) is not None:
                keys.add(read.expected)
                yield read, [], report
                continue
            from evalwright.formats.native.cases import case_of_line

            plain = False
            case, problems = case_of_line(line, report, recording_needed=self._recordings_needed)
            line = b""
            yield (None if problems else case), problems, report
        self._given = keys if plain else None


jsonl: type[Jsonl] = Jsonl
