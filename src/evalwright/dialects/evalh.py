"""The native format: `eval.yaml` (specification evalh, b.4), read unchanged, with a few additions of ours."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from evalwright.dialects.environment import Expansion
from evalwright.dialects.evalh_file import EvalFile, problems_of
from evalwright.errors import InputError, Problem
from evalwright.files import yaml
from evalwright.files.paths import named_in
from evalwright.model.case import EvalCase
from evalwright.model.plan import EvaluatorSpec, PassCriteria, RetryRule, RunSettings, Variant
from evalwright.model.suite import Suite
from evalwright.registry import load, names

__all__ = ["Evalh", "plan_of_foreign"]

_OWN_SYSTEM_KEYS = {"name", "adapter", "metadata", "enrich_trace_from", "pool", "isolation", "trials"}
_OWN_DATASET_KEYS = {"type", "path"}


class Evalh:
    """Reads `eval.yaml`."""

    def detects(self, path: Path, head: Mapping[str, Any]) -> bool:
        return "eval" in head or {"dataset", "systems"} <= head.keys()

    def load(self, path: Path, variables: Mapping[str, str], *, to_run: bool = True) -> Suite:
        document = yaml.load(path, "native")
        return _Reading(path, document, {**os.environ, **variables}).suite(to_run)


def plan_of_foreign(config: Path) -> Suite:
    """The suite in the `config.yaml` of a run that upstream evalh wrote, to read or judge it, not to run it."""
    return _Reading(config, yaml.load(config, "native"), None).suite(to_run=False)


class _Reading:
    """One reading of one file, gathering its problems."""

    def __init__(self, path: Path, document: yaml.Document, environment: Mapping[str, str] | None) -> None:
        self._path, self._document = path, document
        self._problems: list[Problem] = []
        self._expansion = Expansion(environment)

    def _problem(self, place: tuple[str | int, ...], message: str, key: str | None = None) -> None:
        dotted = ".".join(map(str, place)) if key is None else key
        self._problems.append(Problem(str(self._path), message, self._document.line(place), dotted))

    def _refuse(self) -> None:
        if self._problems:
            raise InputError(self._problems, f"Invalid config {self._path}")

    def suite(self, to_run: bool = True) -> Suite:
        file = self._file()
        self._check_names(file)
        variants = self._variants(file, to_run)
        evaluators = self._evaluators(file)
        cases = self._cases(file, to_run)
        self._refuse()
        document = file.model_dump(mode="json", by_alias=True)
        return Suite(
            name=file.eval.name,
            dialect="evalh",
            source=self._path,
            cases=cases,
            variants=variants,
            evaluators=evaluators,
            pass_criteria=PassCriteria(**file.pass_criteria.model_dump()),
            run=_settings(file),
            out=Path(str(file.output[0].path)),
            document=document,
            secrets=self._expansion.secrets(document),
            metadata=file.metadata,
        )

    def _file(self) -> EvalFile:
        """The file's shape checked; every problem of shape and environment is told at once."""
        raw = self._document.value
        if raw is None:
            self._problem((), "the file is empty, expected a mapping with eval, dataset, systems, evaluators, output")
            self._refuse()
        if not isinstance(raw, dict):
            self._problem((), f"expected a mapping, found {type(raw).__name__}")
            self._refuse()
        expanded = self._expansion.expanded(raw)
        for place, message, key in self._expansion.problems:
            self._problem(place, message, key)
        if isinstance(expanded.get("output"), dict):
            expanded["output"] = [expanded["output"]]
        try:
            file = EvalFile.model_validate(expanded)
        except ValidationError as error:
            for place, message in problems_of(error, expanded):
                self._problem(place, message)
            file = None
        self._refuse()
        assert file is not None
        return file

    def _check_names(self, file: EvalFile) -> None:
        for section, named in (
            ("systems", [s.name for s in file.systems]),
            ("evaluators", [e.name for e in file.evaluators]),
        ):
            for i, name in enumerate(named):
                if name in named[:i]:
                    self._problem((section, i, "name"), f"duplicate name {name!r}")
        known = [e.name for e in file.evaluators]
        for label in ("all_required", "any_required"):
            for i, name in enumerate(getattr(file.pass_criteria, label)):
                if name not in known:
                    self._problem(
                        ("pass_criteria", label, i), f"unknown evaluator {name!r} (there are: {_listed(known)})"
                    )
        systems = [s.name for s in file.systems]
        baseline = file.run.baseline_variant
        if baseline is not None and baseline not in systems:
            self._problem(("run", "baseline_variant"), f"unknown system {baseline!r} (there are: {_listed(systems)})")
        for i, store in enumerate(file.output):
            if store.type not in names("stores"):
                self._unknown(("output", i, "type"), "stores", store.type)
        if file.output and file.output[0].path is None:
            self._problem(("output", 0), "the first store needs 'path'")
        executor = file.run.executor.type
        if executor != "local":
            self._problem(
                ("run", "executor", "type"),
                f"run.executor.type: unknown executor {executor!r} (registered: local)",
            )

    def _unknown(self, place: tuple[str | int, ...], kind: str, name: str) -> bool:
        """Whether a name is not registered, told as a problem."""
        if name in names(kind):
            return False
        try:
            load(kind, name)
        except InputError as error:
            self._problem(place, error.headline)
        return True

    def _variants(self, file: EvalFile, to_run: bool) -> list[Variant]:
        from evalwright.targets.build import build_target

        variants = []
        for i, system in enumerate(file.systems):
            config = {k: v for k, v in system.model_dump().items() if k not in _OWN_SYSTEM_KEYS and v is not None}
            variant = Variant(
                system.name,
                system.adapter,
                config,
                system.metadata,
                system.timeout_seconds,
                system.concurrency,
                system.isolation,
                system.trials,
            )
            variants.append(variant)
            if to_run and not self._unknown(("systems", i, "adapter"), "targets", system.adapter):
                self._take(("systems", i), lambda v=variant: build_target(v, self._import_paths()))
        return variants

    def _import_paths(self) -> list[str]:
        return [str(Path.cwd()), str(self._path.resolve().parent)]

    def _evaluators(self, file: EvalFile) -> list[EvaluatorSpec]:
        from evalwright.evaluators.build import build_evaluator

        for i, spec in enumerate(file.evaluators):
            if not self._unknown(("evaluators", i, "type"), "evaluators", spec.type):
                self._take(("evaluators", i, "config"), lambda s=spec: build_evaluator(s.type, s.config))
        return [EvaluatorSpec(spec.name, spec.type, spec.config) for spec in file.evaluators]

    def _take(self, place: tuple[str | int, ...], build: Any) -> None:
        """Build something; its problems become problems of this file at `place`."""
        try:
            build()
        except InputError as error:
            for problem in error.problems or [Problem("", error.headline)]:
                steps = tuple(
                    int(s) if s.isdigit() else s for s in problem.key.replace("[", ".").replace("]", "").split(".") if s
                )
                self._problem((*place, *steps), problem.message)

    def _cases(self, file: EvalFile, needed: bool) -> Any:
        dataset = file.dataset
        if self._unknown(("dataset", "type"), "datasets", dataset.type):
            return []
        config = {k: v for k, v in dataset.model_dump().items() if k not in _OWN_DATASET_KEYS}
        path = named_in(self._path, str(dataset.path)) if dataset.path is not None else None
        if path is None or not path.is_file():
            message = f"there is no dataset file {dataset.path!r}" if path else "'path' is missing"
            if not needed:
                return _Missing(
                    Problem(str(self._path), message, self._document.line(("dataset", "path")), "dataset.path")
                )
            self._problem(("dataset", "path"), message)
            return []
        return load("datasets", dataset.type)(path, file.eval.name, config)


class _Missing:
    """The cases of a dataset that is not there, told when somebody asks for them."""

    def __init__(self, problem: Problem) -> None:
        self._problem = problem

    def __iter__(self) -> Iterator[EvalCase]:
        raise InputError(self._problem)


def _settings(file: EvalFile) -> RunSettings:
    run = file.run
    return RunSettings(
        max_concurrency=run.max_concurrency,
        per_variant_concurrency=run.per_variant_concurrency,
        trials=run.trials,
        retry=RetryRule(**run.retry.model_dump()),
        baseline_variant=run.baseline_variant,
        evaluator_timeout_seconds=run.evaluator_timeout_seconds,
    )


def _listed(known: list[str]) -> str:
    return ", ".join(known)
