"""Suites: read from files, or made of the cases, systems and evaluators that a program passes."""

from __future__ import annotations

import hashlib
import os
import random
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import Any

import msgspec

from evalwright.api.cases import CasesLike, given_cases
from evalwright.api.evaluators import implied_evaluators, specs_of
from evalwright.api.options import Settings
from evalwright.api.places import Passed
from evalwright.api.problems import masked_problems, refused
from evalwright.api.systems import SystemLike, variants_of
from evalwright.errors import InputError, Problem, did_you_mean
from evalwright.evaluators.build import needed_keys
from evalwright.files.masker import Masker
from evalwright.files.paths import seen_from_here
from evalwright.formats.shared.environment import literal_secrets
from evalwright.formats.shared.findings import empty_text_expected, passes_always
from evalwright.llm.choices import ModelChoices
from evalwright.model.case import EvalCase
from evalwright.model.plan import EvaluatorSpec, PassCriteria, RetryRule, RunSettings, Variant
from evalwright.model.snapshot import Case, snapshot
from evalwright.model.suite import Suite
from evalwright.registry import NATIVE, names
from evalwright.run.options import RunOptions
from evalwright.session.process import working_directory

__all__ = ["Preparation", "Systems", "judged_by", "load", "prepared"]

Systems = SystemLike | Mapping[str, SystemLike] | Sequence[SystemLike] | None

_OUT = "runs"
_CONCURRENCY, _BACKOFF = 8, 1.0


@dataclass(frozen=True, slots=True)
class Preparation:
    """What is to be run: a suite, the choices for this run, and the functions that were passed, by their places."""

    suite: Suite
    options: RunOptions
    objects: Mapping[str, Any]
    unfinished: Path | None = None
    """A stored run that is to be continued instead."""

    @property
    def masker(self) -> Masker:
        """Masks what is stored and shown of the run."""
        return Masker.of(self.suite.secrets, os.environ)


def load(
    path: str | os.PathLike[str],
    *,
    format: str | None = None,
    variables: Mapping[str, str] | None = None,
    **options: Any,
) -> Suite:
    """Read a suite file in any format.

    Args:
        path: The file; for some formats a folder.
        format: One of `evalwright list formats`; None: detected from the file's keys.
        variables: Values for `${NAME}` in the file, before those of the environment.
        options: Options of the format, named as on the command line with `_` for `-`.

    Returns:
        The suite, which can be changed or run.

    Raises:
        InputError: every problem of the file, with its line.
    """
    from evalwright.formats.loading import format_at, load_suite

    if not isinstance(path, str | os.PathLike):
        raise InputError(refused("path", f"expected a file, found {path!r}"))
    if format is not None and format not in names("formats"):
        format_names = names("formats")
        message = f"unknown format {format!r}{did_you_mean(format, format_names)} (known: {', '.join(format_names)})"
        raise InputError(refused("format", message))
    # absolute, as the working directory may be another one by the time the cases are read
    absolute = Path(working_directory(), path)
    with masked_problems(variables):
        try:
            if absolute.is_dir():
                from evalwright.formats.discovery import stood_for

                absolute = next(stood_for(absolute, format), absolute)
            if options:
                from evalwright.api.format_options import checked_options

                options = checked_options(format_at(absolute, format), options)
            suite = load_suite(absolute, format, variables, options=options)
        except InputError as error:
            headline = error.headline.replace(str(absolute), str(path))
            raise InputError(_seen_from_here(error.problems), headline) from error
        suite.warnings = _seen_from_here(suite.warnings)
        return suite


def _seen_from_here(problems: Iterable[Problem]) -> list[Problem]:
    return [replace(one, file=str(seen_from_here(Path(one.file)))) if one.file else one for one in problems]


@masked_problems()
def prepared(cases: CasesLike | Suite, system: Systems, settings: Settings) -> Preparation:
    """Check everything that was passed. Raises InputError that lists every problem."""
    problems = settings.problems()
    places = Passed()
    if isinstance(cases, Suite):
        suite, target = _suite_with_settings(cases, system, settings, places, problems)
    else:
        suite, target = _suite_of_cases(cases, system, settings, places, problems), None
    names = [variant.name for variant in suite.variants]
    if isinstance(settings.baseline, str) and settings.baseline not in names and not (target and ":" not in target):
        near = did_you_mean(settings.baseline, names)
        problems.append(refused("baseline", f"no system {settings.baseline!r}{near} (there are: {', '.join(names)})"))
    if settings.resume and settings.out is None:
        problems.append(refused("resume", "expected a folder in 'out', found None"))
    if problems:
        raise InputError(problems)
    suite, limit = _sampled_suite(suite, settings)
    out = None if settings.out in (None, _OUT) else Path(os.fspath(settings.out or ""))
    options = RunOptions(
        out=out,
        tags=list(settings.tags),
        allow_empty=None,
        limit=limit,
        trials=settings.trials,
        concurrency=settings.concurrency,
        executor=settings.executor,
        target=target,
        models=ModelChoices(budget_usd=settings.budget_usd),
    )
    return Preparation(suite, options, places.objects)


def _suite_of_cases(
    cases: CasesLike, system: Systems, settings: Settings, places: Passed, problems: list[Problem]
) -> Suite:
    try:
        read_cases = given_cases(_first(cases, settings))
    except InputError as error:
        problems.extend(error.listed)
        read_cases = []
    variants: list[Variant] = []
    if system is None:
        hint = "; evaluate(load(FILE)) runs a file's own" if isinstance(cases, str | os.PathLike) else ""
        problems.append(refused("system", f"expected a function, a System or 'module:callable', found None{hint}"))
    else:
        variants = variants_of(system, settings.timeout, places, problems)
    evaluators = _evaluators(read_cases, settings, places, problems)
    # Equal errors stop the run through `stop_after_equal_errors`, which `Run.stopped` reports.
    run = _run_settings(RunSettings(max_concurrency=_CONCURRENCY, stop_after_errors=0), settings)
    name = settings.name or (variants[0].name if len(variants) == 1 else "evaluation")
    document = {
        "name": name,
        "cases": {"number": len(read_cases), "sha256": _digest(read_cases)},
        "systems": msgspec.to_builtins(variants),
        "evaluators": msgspec.to_builtins(evaluators),
        "run": msgspec.to_builtins(run),
        "trials": settings.trials or 1,
    }
    return Suite(
        name=name,
        dialect=NATIVE,
        source=_script(),
        cases=read_cases,
        variants=variants,
        evaluators=evaluators,
        pass_criteria=PassCriteria(errored_evaluators="error"),
        run=run,
        document=document,
        secrets=literal_secrets(document),
        warnings=[*_empty_texts(read_cases), *_idle(read_cases, evaluators)],
    )


def _first(cases: CasesLike, settings: Settings) -> CasesLike:
    """Of an iterator, which may be endless, no more than what the limit lets run."""
    limit: object = settings.limit
    if isinstance(cases, Iterator) and isinstance(limit, int) and settings.seed is None and not settings.tags:
        return islice(cases, max(1, limit))
    return cases


def _empty_texts(cases: Sequence[Case]) -> list[Problem]:
    empty = [position for position, case in enumerate(cases) if "" in case.expected.answer_should_include]
    if not empty:
        return []
    return [refused(f"cases[{empty[0]}].expected.answer_should_include", empty_text_expected(len(empty)))]


def _idle(cases: Sequence[Case], evaluators: Sequence[EvaluatorSpec]) -> list[Problem]:
    """Evaluators that have nothing to check, as no case expects anything that they read."""
    return [
        refused("evaluators", passes_always(name, keys))
        for name, keys in needed_keys(evaluators).items()
        if not any(getattr(case.expected, key) for key in keys for case in cases)
    ]


def _evaluators(
    cases: Sequence[Case], settings: Settings, places: Passed, problems: list[Problem]
) -> list[EvaluatorSpec]:
    if settings.evaluators is None:
        if not cases:
            return []
        try:
            return implied_evaluators(cases)
        except InputError as error:
            problems.extend(error.listed)
            return []
    before = len(problems)
    specs = specs_of(settings.evaluators, places, problems)
    if not specs and len(problems) == before:
        problems.append(refused("evaluators", "nothing would be judged: expected at least one evaluator, found none"))
    return specs


def _suite_with_settings(
    suite: Suite, system: Systems, settings: Settings, places: Passed, problems: list[Problem]
) -> tuple[Suite, str | None]:
    """The suite, with its own parts replaced by those that were passed, and the variant that was chosen."""
    changes: dict[str, Any] = {"run": _run_settings(suite.run, settings)}
    variants, target = suite.variants, None
    if isinstance(system, str):
        target = system
        if ":" not in system and system not in (names := [variant.name for variant in variants]):
            near = did_you_mean(system, names)
            message = f"no system {system!r}{near}: expected 'module:callable' or one of {', '.join(names)}"
            problems.append(refused("system", message))
    elif system is not None:
        variants = variants_of(system, settings.timeout, places, problems)
        changes["secrets"] = {**suite.secrets, **literal_secrets({"systems": msgspec.to_builtins(variants)})}
    if settings.timeout is not None:
        variants = [msgspec.structs.replace(variant, timeout_seconds=settings.timeout) for variant in variants]
    changes["variants"] = variants
    if settings.name is not None:
        changes["name"] = settings.name
    changed = msgspec.structs.replace(suite, **changes)
    if settings.evaluators is not None:
        changed = judged_by(changed, specs_of(settings.evaluators, places, problems))
    if not changed.evaluators and not changed.evaluators_by_case:
        problems.append(refused("evaluators", "nothing would be judged: the suite has no evaluators; pass some"))
    return changed, target


def judged_by(suite: Suite, specs: list[EvaluatorSpec]) -> Suite:
    """The suite judged by these alone: its own criteria and gate name evaluators that it no longer has."""
    return msgspec.structs.replace(
        suite,
        evaluators=specs,
        evaluators_by_case=False,
        pass_criteria=PassCriteria(errored_evaluators="error"),
        gate=None,
        totals=NATIVE,
    )


def _run_settings(run: RunSettings, settings: Settings) -> RunSettings:
    changes: dict[str, Any] = {}
    if isinstance(settings.retries, int):  # anything else is among the problems, which are reported together
        changes["retry"] = RetryRule(settings.retries + 1, backoff_seconds=_BACKOFF)
    if settings.baseline is not None:
        changes["baseline_variant"] = settings.baseline
    return msgspec.structs.replace(run, **changes)


def _sampled_suite(suite: Suite, settings: Settings) -> tuple[Suite, int | None]:
    """With a seed, the cases of a limited run are drawn at random and keep their order."""
    if settings.limit is None or settings.seed is None:
        return suite, settings.limit
    tags = set(settings.tags)
    cases: list[EvalCase | Case] = [case for case in suite.cases if not tags or not tags.isdisjoint(case.tags)]
    drawn = random.Random(settings.seed).sample(range(len(cases)), min(settings.limit, len(cases)))
    return msgspec.structs.replace(suite, cases=[cases[i] for i in sorted(drawn)]), None


def _digest(cases: Sequence[Case]) -> str:
    digest = hashlib.sha256()
    for case in cases:
        digest.update(msgspec.json.encode(snapshot(case)))
        digest.update(b"\n")
    return digest.hexdigest()


def _script() -> Path:
    """Where the run comes from, for messages and imports: the running script, if there is one."""
    file = getattr(sys.modules.get("__main__"), "__file__", None)
    return Path(file) if isinstance(file, str) else Path.cwd() / "<python>"
