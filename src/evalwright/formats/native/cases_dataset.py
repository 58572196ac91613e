"""The dataset type `cases`: JSON Lines with everything that a case of any format can say, as `convert` writes it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import msgspec

from evalwright.errors import InputError, Problem, did_you_mean
from evalwright.files.jsonl import lines_of
from evalwright.files.key_paths import Place, as_written, bracketed, steps_of
from evalwright.formats.native.cases import ReportProblem, readable_version, usable_id
from evalwright.formats.native.datasets import Dataset, ReadCase
from evalwright.formats.shared.environment import at_home
from evalwright.model.plan import EvaluatorSpec
from evalwright.model.snapshot import Case

__all__ = ["WholeCases"]


class _Evaluator(EvaluatorSpec, frozen=True, forbid_unknown_fields=True):
    """An evaluator of one case; without a type it is the suite's of this name with some keys changed."""

    type: str = ""


class _Line(Case, forbid_unknown_fields=True):
    """A case as written in a line: its evaluators are names from the suite, or its own."""

    evaluators: list[str | _Evaluator] | None = None  # type: ignore[assignment]


_decode = msgspec.json.Decoder(_Line).decode


class WholeCases(Dataset):
    """JSON Lines whose cases bring their evaluators.

    With `own_evaluators` each is judged by its `evaluators` alone; without any, by the suite's. References to variables
    are expanded in evaluators of a case as they are in `eval.yaml`.
    """

    def __init__(self, path: Path, name: str, config: Mapping[str, Any]) -> None:
        super().__init__(path, name, config)
        self._own: bool = config.get("own_evaluators", False)
        self._expanded: Callable[[Any], Any] = config.get("expanded", lambda value: value)
        self._folder: str = config.get("folder", ".")
        self._to_run: bool = config.get("to_run", True)
        self._shared: dict[str, EvaluatorSpec] = {spec.name: spec for spec in config.get("evaluators", ())}

    def unknown_keys(self) -> Iterator[Problem]:
        """Only finds empty texts in what cases expect: unknown keys are rejected anyway."""
        return self._empty_texts()

    def found(self) -> Iterator[ReadCase]:
        for number, line in lines_of(self._path):
            report = partial(self._problem, number)
            try:
                read = _decode(line)
            except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
                message, _, inside = str(error).partition(" - at `$")
                yield None, [report(steps_of(inside.rstrip("`").partition("[...")[0]), message)], report
                continue
            problems = list(self._finish(read, report))
            yield (None if problems else read), problems, report

    def _problem(self, number: int, steps: Place, message: str) -> Problem:
        return Problem(str(self._path), message, number, bracketed(steps))

    def _finish(self, case: _Line, report: ReportProblem) -> Iterator[Problem]:
        """Replace names of evaluators with the evaluators, and make relative paths absolute."""
        try:
            readable_version(case.schema_version)
        except ValueError as error:
            yield report(("schema_version",), f"{error}, found {as_written(case.schema_version)}")
        try:
            if case.occurrence is msgspec.UNSET:  # other formats number cases without an id
                usable_id(case.id)
        except ValueError as error:
            yield report(("id",), f"{error}, found {as_written(case.id)}")
        case.extra = at_home(case.extra, self._folder)
        if case.evaluators is None:
            case.evaluators = [*self._shared.values()] if self._own else None  # type: ignore[list-item]
            return
        if not self._own:
            yield report(("evaluators",), "needs own_evaluators: true in the dataset section of eval.yaml")
        specs: list[EvaluatorSpec] = []
        for i, evaluator in enumerate(case.evaluators):
            spec = self._spec(_Evaluator(evaluator) if isinstance(evaluator, str) else evaluator)
            if spec is None:
                name = evaluator if isinstance(evaluator, str) else evaluator.name
                yield report(("evaluators", i), f"unknown evaluator {name!r}{did_you_mean(name, self._shared)}")
                continue
            if any(other.name == spec.name for other in specs):
                yield report(("evaluators", i), f"duplicate name {spec.name!r}")
            if spec is not self._shared.get(spec.name):
                yield from self._wrong(spec, i, report)
            specs.append(spec)
        case.evaluators = specs  # type: ignore[assignment]

    def _spec(self, evaluator: _Evaluator) -> EvaluatorSpec | None:
        """The evaluator itself; None when the suite has none of this name."""
        config = self._expanded(evaluator.config)
        if evaluator.type:
            return msgspec.convert({**msgspec.to_builtins(evaluator), "config": config}, EvaluatorSpec)
        base = self._shared.get(evaluator.name)
        return base if base is None or not config else msgspec.structs.replace(base, config={**base.config, **config})

    def _wrong(self, spec: EvaluatorSpec, position: int, report: ReportProblem) -> Iterator[Problem]:
        from evalwright.evaluators.build import build, declared

        try:
            if self._to_run or not declared("evaluators", spec.type).imports_code:
                build(spec)
        except InputError as error:
            for problem in error.listed:
                yield report(("evaluators", position, "config", *steps_of(problem.key)), problem.message)
