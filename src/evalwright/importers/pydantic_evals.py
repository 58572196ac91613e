"""Datasets and reports of pydantic_evals, as YAML or JSON: cases, and those evaluators that ours can replace."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import count
from pathlib import Path
from typing import Any, ClassVar

from evalwright.files.key_paths import Place, bracketed
from evalwright.files.yaml import Document, parse
from evalwright.importers.imported_records import Imported, ImportFindings, Read
from evalwright.importers.pydantic_evaluators import EvaluatorReading, expected_field
from evalwright.importers.pydantic_reports import input_of, is_report, metadata_of, report_cases
from evalwright.importers.record_values import described
from evalwright.importers.sources import document
from evalwright.importers.traces import TraceImporter
from evalwright.importers.written_suite import ANSWERED

__all__ = ["PydanticEvals"]


_OF_DATASET = ("$schema", "name", "cases", "evaluators", "report_evaluators")
_OF_CASE = ("name", "inputs", "metadata", "expected_output", "evaluators")


def read(files: Sequence[Path], reading: ImportFindings) -> Iterator[Imported]:
    """The cases of the files."""
    numbers = count(1)
    for file in files:
        parsed: Document = parse(document(file), str(file), "true_false")
        if is_report(parsed.value):
            yield from report_cases(file, parsed, reading)
        else:
            yield from _Dataset(file, parsed, reading).cases(numbers)


class _Dataset:
    """One file."""

    def __init__(self, file: Path, parsed: Document, findings: ImportFindings) -> None:
        self._file, self._document, self._findings = file, parsed, findings

    def cases(self, numbers: Iterator[int]) -> Iterator[Imported]:
        findings, dataset = self._findings, self._document.value
        listed = dataset.get("cases") if isinstance(dataset, dict) else None
        if not isinstance(listed, list):
            self._report(("cases",), f"expected a list of cases, found {described(listed)}")
            return
        if isinstance(dataset.get("name"), str):
            findings.name = dataset["name"]
        reports = dataset.get("report_evaluators")
        for _ in reports if isinstance(reports, list) else ():
            findings.lose_check("evaluators of whole reports")
        findings.notes.lose_keys(dataset, _OF_DATASET, "the dataset")
        shared = self._shared_evaluators(dataset)
        for position, case in enumerate(listed):
            number = next(numbers)
            if not isinstance(case, dict) or "inputs" not in case:
                self._report(("cases", position), "expected a case with inputs")
                continue
            yield self._record(case, number, ("cases", position), shared)

    def _report(self, place: Place, message: str) -> None:
        self._findings.mistakes.add(self._file, message, self._document.line(place), bracketed(place))

    def _shared_evaluators(self, dataset: dict[str, Any]) -> list[dict[str, Any]]:
        """The dataset's evaluators, which become some of the suite's, each under a unique name."""
        known = self._findings.evaluators
        evaluators: list[dict[str, Any]] = []
        for evaluator in self._evaluators(dataset, ()):
            same = [
                other
                for other in known
                if other not in evaluators and {**other, "name": evaluator["name"]} == evaluator
            ]
            named = same[0] if same else _with_own_name(evaluator, known)
            evaluators.append(named)
            if not same:
                known.append(named)
        return evaluators

    def _evaluators(self, of: dict[str, Any], place: Place) -> Iterator[dict[str, Any]]:
        listed = of.get("evaluators") or []
        if not isinstance(listed, list):
            self._report((*place, "evaluators"), f"expected a list of evaluators, found {described(listed)}")
            return iter(())

        def report(position: int, message: str) -> None:
            self._report((*place, "evaluators", position), message)

        return EvaluatorReading(self._findings.lose_check, self._findings.notes.add_text).read(listed, report)

    def _record(self, case: dict[str, Any], number: int, place: Place, shared: list[dict[str, Any]]) -> Imported:
        self._findings.notes.lose_keys(case, _OF_CASE, "cases")
        expected, name = case.get("expected_output"), case.get("name")
        return Imported(
            self._file,
            str(name) if name else f"case-{number}",
            input_of(case),
            expected={"facts": {} if expected is None else {"expected_output": expected}},
            metadata=metadata_of(case),
            record=case,
            key=bracketed(place),
            authored=True,
            evaluators=self._evaluators_of_case(case, expected, place, shared),
        )

    def _evaluators_of_case(
        self, case: dict[str, Any], expected: Any, place: Place, shared: list[dict[str, Any]]
    ) -> list[Any]:
        """The evaluators of a case: names of the dataset's, with the part of an answer that can equal the expectation,
        and the case's own."""
        field = expected_field("" if expected is None else expected)
        judging: list[Any] = []
        for evaluator in shared:
            other = _compares(evaluator) and field != expected_field("")
            judging.append({"name": evaluator["name"], "config": {"field": field}} if other else evaluator["name"])
        named = [*shared]
        for evaluator in self._evaluators(case, place):
            own = _with_own_name(evaluator, named)
            named.append(own)
            judging.append({**own, "config": {**own["config"], "field": field}} if _compares(own) else own)
        if field == expected_field(0) and any(map(_compares, named)):
            self._findings.notes.add_text(
                f"expected outputs that are neither text nor a mapping are compared with {field}"
            )
        if not named and ANSWERED not in self._findings.evaluators:
            self._findings.evaluators.append(ANSWERED)
        return judging or [ANSWERED["name"]]


def _compares(evaluator: dict[str, Any]) -> bool:
    """Whether it compares the answer with the case's expectation."""
    return "expected_from" in evaluator.get("config", ())


def _with_own_name(evaluator: dict[str, Any], others: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """The evaluator under a name that no other has."""
    names_taken = {one["name"] for one in others}
    name = evaluator["name"]
    names = (name if number == 1 else f"{name}-{number}" for number in count(1))
    return {**evaluator, "name": next(free_name for free_name in names if free_name not in names_taken)}


class PydanticEvals(TraceImporter):
    """Datasets of pydantic_evals, as YAML or JSON, and its reports."""

    read: ClassVar[Read] = staticmethod(read)
