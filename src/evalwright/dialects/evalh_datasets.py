"""The datasets of `eval.yaml`: `yaml`, `jsonl` and `fixture` (specification evalh, b.5 to b.7).

A dataset can be gone through any number of times; each pass checks every case and tells all mistakes at its end.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec
from pydantic import ValidationError, field_validator

from evalwright.errors import InputError, Problem, did_you_mean
from evalwright.files import yaml as yaml_files
from evalwright.files.jsonl import lines_of
from evalwright.files.repeats import Repeats
from evalwright.model.case import EvalCase, ExpectedBehavior
from evalwright.model.trace import Trace

__all__ = ["fixture", "jsonl", "yaml"]

_MOST_PROBLEMS = 100

_Found = tuple[EvalCase | None, list[Problem], str, int | None]
"""A case or its problems, its place in the file, and its line."""


class _FileCase(EvalCase):
    """A case as it stands in a dataset file: the input is a mapping, a recording may be embedded."""

    input: dict[str, Any]
    embedded_trace: Any = None

    @field_validator("expected", "metadata", "tags", mode="before")
    @classmethod
    def _null_is_empty(cls, value: Any, info: Any) -> Any:
        return cls.model_fields[info.field_name].get_default(call_default_factory=True) if value is None else value


class _Dataset:
    """Cases of one file, filtered and sampled."""

    always_embeds = False

    def __init__(self, path: Path, name: str, config: Mapping[str, Any]) -> None:
        self._path = path
        self._filter: Mapping[str, Any] = config.get("filter") or {}
        self._sample: int | None = config.get("sample")
        seed = config.get("seed")
        self._seed = name if seed is None else seed
        self._embedded = bool(config.get("embed_full_trace"))

    def found(self) -> Iterator[_Found]:
        raise NotImplementedError

    def __iter__(self) -> Iterator[EvalCase]:
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

    def _fitting(self) -> Iterator[EvalCase]:
        problems: list[Problem] = []
        ids = Repeats()
        for case, wrong, _, _ in self.found():
            problems += wrong
            if case is None:
                continue
            ids.add(case.id)
            if not problems and all(_fits(case, key, value) for key, value in self._filter.items()):
                yield case
        if repeated := ids.hashes():
            problems += self._duplicates(repeated)
        if problems:
            more = len(problems) - _MOST_PROBLEMS
            headline = f"{len(problems)} problems in {self._path}" + (
                f", the first {_MOST_PROBLEMS}:" if more > 0 else ":"
            )
            raise InputError(problems[:_MOST_PROBLEMS], headline)

    def _duplicates(self, hashes: set[int]) -> Iterator[Problem]:
        """Ids that come again, found by reading the file once more: only a file with a mistake pays for it."""
        seen: set[str] = set()
        for case, _, place, line in self.found():
            if case is not None and hash(case.id) in hashes:
                if case.id in seen:
                    yield Problem(str(self._path), f"duplicate case id {case.id!r}", line, place)
                seen.add(case.id)

    def _checked(self, raw: Any, place: str, line: Any) -> tuple[EvalCase | None, list[Problem]]:
        """A case from plain data."""
        if not isinstance(raw, dict):
            return None, [Problem(str(self._path), f"expected a mapping, found {_kind(raw)}", line(()), place)]
        try:
            case = _FileCase.model_validate(raw)
        except ValidationError as error:
            return None, list(self._problems(error, place, line))
        return self._with_recording(case, place, line)

    def unknown_keys(self) -> Iterator[Problem]:
        """Keys of the cases that nothing reads: they are allowed, but a misspelt one is easily overlooked."""
        for raw, place, line in self.raw_cases():
            if isinstance(raw, dict):
                yield from self._strangers(raw, _FileCase, place, (), line)
                if isinstance(raw.get("expected"), dict):
                    yield from self._strangers(raw["expected"], ExpectedBehavior, place, ("expected",), line)

    def raw_cases(self) -> Iterator[tuple[Any, str, Any]]:
        """Each case as plain data, its place in the file, and where its lines can be asked for."""
        raise NotImplementedError

    def _strangers(
        self,
        raw: dict[Any, Any],
        model: type[EvalCase | ExpectedBehavior],
        place: str,
        steps: tuple[str, ...],
        line: Any,
    ) -> Iterator[Problem]:
        for key in raw:
            if key not in model.model_fields:
                message = f"nothing reads this key{did_you_mean(str(key), model.model_fields)}"
                dotted = ".".join(filter(None, [place, *steps, str(key)]))
                yield Problem(str(self._path), message, line((*steps, key)), dotted)

    def _with_recording(self, case: _FileCase, place: str, line: Any) -> tuple[EvalCase | None, list[Problem]]:
        given, case.embedded_trace = case.embedded_trace, None
        key = f"{place}.embedded_trace".lstrip(".")
        if given is None and self._embedded:
            missing = "needs an embedded_trace (embed_full_trace is true)"
            return None, [Problem(str(self._path), missing, line(()), key)]
        if given is None or not (self._embedded or self.always_embeds):
            return case, []
        try:
            traces = msgspec.convert(given, list[Trace]) if isinstance(given, list) else msgspec.convert(given, Trace)
        except msgspec.ValidationError as error:
            return None, [Problem(str(self._path), f"no trace: {error}", line(("embedded_trace",)), key)]
        case.recorded = msgspec.to_builtins(traces)
        return case, []

    def _problems(self, error: ValidationError, place: str, line: Any) -> Iterator[Problem]:
        for item in error.errors(include_url=False):
            steps = item["loc"]
            key = place + "".join(f"[{s}]" if isinstance(s, int) else f".{s}" for s in steps if s != "[key]")
            message = item["msg"].replace("dictionary", "mapping").replace("valid string", "string")
            if item["type"] == "missing":
                message = f"the required {steps[-1]!r} is missing"
            else:
                message = f"{message[0].lower()}{message[1:]}, found {_kind(item['input'])}"
            yield Problem(str(self._path), message, line(steps), key.lstrip("."))


def _kind(value: Any) -> str:
    if isinstance(value, dict):
        return "a mapping"
    if isinstance(value, list):
        return "a list"
    return "null" if value is None else f"{type(value).__name__} {str(value)[:60]!r}"


class Yaml(_Dataset):
    """`cases: [...]` in a YAML file."""

    versioned = True

    def found(self) -> Iterator[_Found]:
        document = yaml_files.load(self._path, "yaml11")
        cases = self._cases_of(document)
        for i, raw in enumerate(cases):
            place = f"cases[{i}]"

            def line(steps: tuple[str | int, ...], i: int = i) -> int | None:
                return document.line(("cases", i, *steps))

            case, problems = self._checked(raw, place, line)
            yield case, problems, place, line(())

    def raw_cases(self) -> Iterator[tuple[Any, str, Any]]:
        document = yaml_files.load(self._path, "yaml11")
        for i, raw in enumerate(self._cases_of(document)):
            yield raw, f"cases[{i}]", lambda steps, i=i: document.line(("cases", i, *steps))

    def _cases_of(self, document: yaml_files.Document) -> list[Any]:
        value = document.value
        if value is None:
            raise InputError(Problem(str(self._path), "the file is empty, expected a mapping with 'cases'"))
        if not isinstance(value, dict):
            raise InputError(Problem(str(self._path), f"expected a mapping with 'cases', found {_kind(value)}", 1))
        version = value.get("schema_version", "1.0")
        if self.versioned and (not isinstance(version, str) or not version.startswith("1.")):
            what = "must be a string" if not isinstance(version, str) else "must be 1.x"
            raise InputError(
                Problem(
                    str(self._path),
                    f"{what}, found {version!r}",
                    document.line(("schema_version",)),
                    "schema_version",
                )
            )
        cases = value.get("cases")
        if not isinstance(cases, list):
            line = document.line(("cases",))
            raise InputError(Problem(str(self._path), f"'cases' must be a list, found {_kind(cases)}", line, "cases"))
        return cases


class Fixture(Yaml):
    """Like `yaml` without the version check; with `embed_full_trace` every case carries a recorded trace."""

    versioned = False


class Jsonl(_Dataset):
    """One case a line; a line that embeds a recorded trace needs no leave to do so."""

    always_embeds = True

    def found(self) -> Iterator[_Found]:
        validate, has_recording = _FileCase.model_validate_json, b'"embedded_trace"'
        for number, line in lines_of(self._path):
            try:
                case = validate(line)
            except ValidationError:
                yield None, self._diagnosis(line, number), "", number
                continue
            if self._embedded or has_recording in line:
                kept, problems = self._with_recording(case, "", lambda _steps, number=number: number)
                yield kept, problems, "", number
            else:
                yield case, [], "", number

    def raw_cases(self) -> Iterator[tuple[Any, str, Any]]:
        for number, line in lines_of(self._path):
            yield msgspec.json.decode(line), "", lambda _steps, number=number: number

    def _diagnosis(self, line: bytes, number: int) -> list[Problem]:
        try:
            raw = msgspec.json.decode(line)
        except (ValueError, RecursionError):
            return [Problem(str(self._path), f"malformed JSON: {_json_error(line)}", number)]
        return self._checked(raw, "", lambda _steps: number)[1]


def _json_error(line: bytes) -> str:
    import json

    try:
        json.loads(line)
    except json.JSONDecodeError as error:
        return f"{error.msg} (col {error.colno})"
    except (ValueError, RecursionError) as error:
        return f"{error} (col 1)"
    return "not JSON (col 1)"


def _fits(case: EvalCase, path: str, wanted: Any) -> bool:
    value: Any = case
    for step in path.split("."):
        if isinstance(value, dict):
            if step not in value:
                return False
            value = value[step]
        elif hasattr(type(value), "model_fields") and step in type(value).model_fields:
            value = getattr(value, step)
        else:
            return False
    return value in wanted if isinstance(wanted, list) else bool(value == wanted)


yaml, jsonl, fixture = Yaml, Jsonl, Fixture
