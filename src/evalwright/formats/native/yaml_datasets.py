"""Cases in YAML files: the datasets `yaml` and `fixture`."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

from evalwright.errors import InputError, Problem
from evalwright.files import yaml as yaml_files
from evalwright.files.key_paths import Place, as_written, bracketed
from evalwright.formats.native.cases import FileCase, ReportProblem, checked, make_plain, take_recording
from evalwright.formats.native.datasets import Dataset, ReadCase

__all__ = ["fixture", "yaml"]


class Yaml(Dataset):
    """A YAML file with `cases: [...]`."""

    versioned = True
    records_traces = False

    def records(self) -> Iterator[tuple[Any, ReportProblem]]:
        document = yaml_files.load(self._path, "yaml11")
        for i, raw in enumerate(self._cases_of(document)):
            yield raw, partial(self._problem, document, i)

    def _problem(self, document: yaml_files.Document, index: int, steps: Place, message: str) -> Problem:
        place = ("cases", index, *steps)
        return Problem(str(self._path), message, document.line(place), bracketed(place))

    def found(self) -> Iterator[ReadCase]:
        for raw, report in self.records():
            case, problems = checked(raw, report)
            if case is not None:
                make_plain(case)
                problems = self._with_recording(case, report)
            yield (None if problems else case), problems, report

    def _with_recording(self, case: FileCase, report: ReportProblem) -> list[Problem]:
        if not (self.records_traces and self._recordings_needed):
            case.embedded_trace = case.recorded = None
            return []
        return take_recording(case, report, needed=True)

    def _cases_of(self, document: yaml_files.Document) -> list[Any]:
        value, cases = document.value, None
        if isinstance(value, dict):
            cases, version = value.get("cases"), value.get("schema_version", "1.0")
            if self.versioned and not isinstance(version, str):
                raise self._schema_error(document, "schema_version", f"must be a string, found {as_written(version)}")
            if self.versioned and not version.startswith("1."):
                raise self._schema_error(document, "schema_version", f"must be 1.x, found {as_written(version)}")
        if isinstance(cases, list):
            return cases
        if isinstance(value, dict):
            found = f"found {as_written(cases)}" if "cases" in value else "it is missing"
            raise self._schema_error(document, "cases", f"'cases' must be a list, {found}")
        found = "the file is empty" if value is None else f"found {as_written(value)}"
        raise InputError(Problem(str(self._path), f"{found}, expected a mapping with 'cases'"))

    def _schema_error(self, document: yaml_files.Document, key: str, message: str) -> InputError:
        return InputError(Problem(str(self._path), message, document.line((key,)), key))


class Fixture(Yaml):
    """Like `yaml` without the version check; with `embed_full_trace` every case carries a recorded trace."""

    versioned = False
    records_traces = True


yaml: type[Yaml] = Yaml
fixture: type[Fixture] = Fixture
