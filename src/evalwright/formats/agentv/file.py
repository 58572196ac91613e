"""The file around the cases: YAML, or JSON Lines with a sidecar."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from evalwright.errors import InputError, Problem, did_you_mean
from evalwright.files import yaml
from evalwright.files.jsonl import exact, lines_of
from evalwright.files.key_paths import as_written
from evalwright.files.numbers import is_number
from evalwright.formats.agentv.case_files import CasePlace, cases_in_files, names_cases
from evalwright.formats.agentv.notes import OF_FILE
from evalwright.formats.shared.isolation import OF_PROGRAMS, isolating, refusal

__all__ = [
    "CASE_LISTS",
    "EXECUTION",
    "HEAD",
    "MOST_WORKERS",
    "OF_NEXT",
    "TRIALS",
    "EvalFile",
    "above_zero",
    "first_target",
    "read_file",
    "share_in",
    "texts_in",
]

HEAD = {
    "name", "version", "description", "metadata", "execution", "dataset", "target", "evaluator", "$schema", "assert",
    "assertions", "tags", "author", "license", "category", "input", "input_files", "suite", "requires", "governance",
    "workspace",
}  # fmt: skip
EXECUTION = (
    "target", "targets", "timeout_seconds", "assertions", "assert", "evaluators", "trials", "workers", "threshold",
    "budget_usd",
)  # fmt: skip
TRIALS = ("count", "strategy")
OF_NEXT = ("prompts", "providers", "default_test", "defaultTest", "scenarios")
"""Keys of AgentV 5, whose files have another form."""
MOST_WORKERS = 50
_OPTIONS = {"conversation_id": "conversation", "description": "description"}
CASE_LISTS = ("evalcases", "eval_cases", "cases", "tests")


@dataclass
class EvalFile:
    """What a file contains besides its cases, and its cases as plain data."""

    path: Path
    cases: list[Any]
    head: dict[str, Any]
    """The top level of the YAML file or of the sidecar, without the cases."""
    line_of: Callable[[int, str], int | None]
    """The line of a key path inside a case."""
    head_path: Path
    head_line: Callable[[str], int | None]
    """The line of a key of the head."""
    key: str = "evalcases"
    places: list[CasePlace] | None = None
    """Where each case is, if some are in other files."""
    document: dict[str, Any] = field(default_factory=dict)
    put_into: Callable[[Any], Any] = field(default=lambda value: value)
    """Puts variables of the environment into data of the suite, if it is a newer file."""

    @property
    def name(self) -> str:
        named = self.head.get("name") or self.head.get("dataset")
        stem = self.path.name
        for suffix in (".yaml", ".yml", ".jsonl"):
            stem = stem.removesuffix(suffix)
        return named if isinstance(named, str) and named else stem

    @property
    def is_of_standard(self) -> bool:
        """Whether this is a file as AgentEvals 1.0 defines it: in YAML, with `evalcases`."""
        return self.key == CASE_LISTS[0] and self.path == self.head_path

    @property
    def execution(self) -> dict[str, Any]:
        execution = self.head.get("execution")
        return execution if isinstance(execution, dict) else {}

    @property
    def default_target(self) -> str | None:
        named = first_target(self.execution) or self.execution.get("target", self.head.get("target"))
        return named if isinstance(named, str) else None

    @property
    def workers(self) -> int | None:
        workers = self.execution.get("workers")
        return workers if type(workers) is int and 1 <= workers <= MOST_WORKERS else None

    @property
    def timeout_seconds(self) -> float | None:
        return above_zero(self.execution.get("timeout_seconds"))

    @property
    def threshold(self) -> float | None:
        return share_in(self.execution.get("threshold"))

    @property
    def budget_usd(self) -> float | None:
        """The limit on the cost of the system's calls, US dollars."""
        return above_zero(self.execution.get("budget_usd"))

    @property
    def trials(self) -> int | None:
        """How often each case runs."""
        trials = self.execution.get("trials")
        count = trials.get("count") if isinstance(trials, dict) else None
        return count if type(count) is int and count > 0 else None

    @property
    def metadata(self) -> dict[str, Any]:
        metadata = self.head.get("metadata")
        return metadata if isinstance(metadata, dict) else {}

    @property
    def shared_metadata(self) -> dict[str, Any]:
        """What is added to the metadata of every case: the file's statements on governance."""
        governance = self.head.get("governance", self.metadata.get("governance"))
        return {"governance": governance} if isinstance(governance, dict) else {}

    @property
    def tags(self) -> list[str]:
        return texts_in(self.metadata.get("tags", self.head.get("tags")))

    def keep(self, key: str, glob: str) -> None:
        """Leave out the cases whose text under a key does not match. Raises InputError if none is left."""
        fits = [isinstance(case, dict) and fnmatchcase(str(case.get(key) or ""), glob) for case in self.cases]
        if not any(fits):
            known = dict.fromkeys(str(case[key]) for case in self.cases if isinstance(case, dict) and case.get(key))
            found = f" (there are: {', '.join([*known][:10])})" if known else f" (no case has a {key})"
            raise InputError(Problem(str(self.path), f"no case matches --{_OPTIONS[key]} {glob}{found}"))
        kept = [index for index, fit in enumerate(fits) if fit]
        self.cases, places, line_of = [self.cases[index] for index in kept], self.places, self.line_of
        self.places = None if places is None else [places[index] for index in kept]
        self.line_of = lambda index, inside: line_of(kept[index], inside)

    def refuse(self) -> None:
        """Raise InputError for keys of the top level that isolate or limit but are not supported, and for values that
        are no valid limit, threshold or number of trials."""
        problems = [
            *isolating(self.head, HEAD),
            *(f"execution.{key}" for key in isolating(self.execution, EXECUTION, OF_PROGRAMS)),
        ]
        messages = [(key, refusal(key.rpartition(".")[2])) for key in problems]
        values = {
            "budget_usd": (self.budget_usd, "a number above 0"),
            "threshold": (self.threshold, "a number from 0 to 1"),
            "timeout_seconds": (self.timeout_seconds, "a number above 0"),
            "trials": (self.trials, "{count: a number of at least 1}"),
        }
        messages += [
            (f"execution.{key}", f"{key}: expected {expected}, found {as_written(self.execution[key])}")
            for key, (used, expected) in values.items()
            if self.execution.get(key) is not None and used is None
        ]
        if self.head.get("execution") is not None and not isinstance(self.head["execution"], dict):
            messages.append(("execution", f"execution: expected a mapping, found {as_written(self.head['execution'])}"))
        if messages:
            places = [Problem(str(self.head_path), message, self.head_line(key), key) for key, message in messages]
            raise InputError(map(_with_line, places))

    def about_target(self, problem: Problem) -> Problem:
        """A mistake in the default target: at the name that this file gives, unless it has a place in its own file."""
        if problem.key or self.default_target is None:
            return problem
        places = {"execution.targets": self.execution, "execution.target": self.execution, "target": self.head}
        key = next(place for place, section in places.items() if section.get(place.rpartition(".")[2]) is not None)
        return Problem(str(self.head_path), f"{problem.message} in {problem.file}", self.head_line(key), key)

    def problem(self, index: int, case_id: str, path: str, message: str) -> Problem:
        """A mistake in a case: its place in the file, its id and the path inside it.

        One in what all cases share (`OF_FILE`) is placed at the top of the file, whichever case it was found for.
        """
        if OF_FILE in path:
            key = path.replace(OF_FILE, "")
            return Problem(str(self.head_path), message, self.head_line(key), key)
        if self.places is not None:
            place = self.places[index]
            return place.problem(case_id, path, message)
        named = f" ({case_id})" if case_id else ""
        key = f"{self.key}[{index}]" + (f".{path}" if path else "")
        return Problem(str(self.path), f"{self.key}[{index}]{named}: {message}", self.line_of(index, path), key)


def first_target(execution: Mapping[Any, Any]) -> str | None:
    """The name of the first of the `targets` of an `execution`."""
    listed = execution.get("targets")
    first = listed[0] if isinstance(listed, list) and listed else None
    named = first.get("name") if isinstance(first, dict) else first
    return named if isinstance(named, str) else None


def above_zero(value: Any) -> float | None:
    """A finite number above 0; None for anything else."""
    number = is_number(value) and 0 < value <= sys.float_info.max
    return float(value) if number else None


def share_in(value: Any) -> float | None:
    """A number from 0 to 1; None for anything else."""
    number = is_number(value) and 0 <= value <= 1
    return float(value) if number else None


def texts_in(value: Any) -> list[str]:
    """The strings in a list; none if it is not a list."""
    return [item for item in value if isinstance(item, str)] if isinstance(value, list) else []


def read_file(path: Path, allowed: Sequence[Path] = ()) -> EvalFile:
    """The file, whatever it contains. Raises InputError if it is not one, or one for AgentV 5.

    Cases in other files must lie within the boundary of its folder, or in a folder that is `allowed`.
    """
    try:
        file = _json_lines(path) if path.suffix.lower() == ".jsonl" else _yaml(path, allowed)
        if newer := [key for key in OF_NEXT if key in file.head]:
            keys = ", ".join(newer)
            message = f"{keys}: a file for AgentV 5, which is not supported yet; up to 4.42, cases are in `tests`"
            raise InputError(Problem(str(file.head_path), message, file.head_line(newer[0]), newer[0]))
        return file
    except InputError as error:
        raise InputError([_with_line(problem) for problem in error.problems], error.headline) from error


def _with_line(problem: Problem) -> Problem:
    """The problem with its line in the message as well, for readers that see nothing else."""
    if problem.line is None or f"line {problem.line}" in problem.message:
        return problem
    return Problem(problem.file, f"line {problem.line}: {problem.message}", problem.line, problem.key)


def _yaml(path: Path, allowed: Sequence[Path]) -> EvalFile:
    document = yaml.load(path, "yaml12")
    if not isinstance(document.value, dict):
        found = "the file is empty" if document.value is None else f"found {as_written(document.value)}"
        raise InputError(Problem(str(path), f"{found}, expected a mapping with 'evalcases'"))
    if not any(key in document.value for key in CASE_LISTS) and any(key in document.value for key in OF_NEXT):
        return EvalFile(
            path, [], dict(document.value), lambda i, _: None, path, lambda name: document.line(_steps(name))
        )
    LISTS = [key for key in CASE_LISTS if document.value.get(key) or (key == CASE_LISTS[0] and key in document.value)]
    if len(LISTS) > 1:
        raise InputError(Problem(str(path), f"{' and '.join(LISTS)}: expected only one of them"))
    key = LISTS[0] if LISTS else "evalcases"
    cases = document.value.get(key)
    if (key == "tests" and isinstance(cases, str)) or (isinstance(cases, list) and any(map(names_cases, cases))):
        head = {str(name): value for name, value in document.value.items() if name != key}
        cases, places = cases_in_files(path, document, key, allowed)
        return EvalFile(
            path, cases, head, lambda i, _: None, path, lambda name: document.line(_steps(name)), key, places,
            document.value,
        )  # fmt: skip
    if not isinstance(cases, list):
        found = f"found {as_written(cases)}" if key in document.value else _similar_key(document.value)
        named = key if key == CASE_LISTS[0] else f"{CASE_LISTS[0]} (here {key})"
        raise InputError(Problem(str(path), f"{named}: expected a list, {found}", document.line((key,)), key))
    head = {str(name): value for name, value in document.value.items() if name != key}

    def line_of(index: int, inside: str) -> int | None:
        return document.line((key, index, *_steps(inside)))

    return EvalFile(
        path, cases, head, line_of, path, lambda name: document.line(_steps(name)), key, document=document.value
    )


def _similar_key(document: Mapping[Any, Any]) -> str:
    """That the list of cases is missing, and which key may be meant to be it."""
    if empty := next((name for name in CASE_LISTS if name in document), None):
        return f"it is missing: {empty} has none"
    alike = ((name, key) for name in document for key in CASE_LISTS if did_you_mean(str(name), [key]))
    return "it is missing" + next((f"; should {name!r} be {key!r}?" for name, key in alike), "")


def _steps(path: str) -> tuple[str | int, ...]:
    words = path.replace("[", ".").replace("]", "").split(".")
    return tuple(int(word) if word.isdecimal() else word for word in words if word)


def _json_lines(path: Path) -> EvalFile:
    cases, lines = [], []
    problems = []
    for number, line in lines_of(path):
        try:
            case = exact(line)
        except (ValueError, RecursionError) as error:
            problems.append(Problem(str(path), f"line {number}: malformed JSON: {error}", number))
            continue
        if not isinstance(case, dict):
            problems.append(Problem(str(path), f"line {number}: expected an object, found {as_written(case)}", number))
        cases.append(case)
        lines.append(number)
    if problems:
        raise InputError(problems)
    sidecar = path.with_suffix(".yaml")
    document = yaml.load(sidecar, "yaml12") if os.path.isfile(sidecar) else yaml.Document(str(sidecar), {})
    head = document.value or {}
    if not isinstance(head, dict):
        raise InputError(Problem(str(sidecar), f"expected a mapping, found {as_written(head)}"))
    return EvalFile(
        path, cases, head, lambda i, _inside: lines[i], sidecar, lambda name: document.line(_steps(name)), document=head
    )
