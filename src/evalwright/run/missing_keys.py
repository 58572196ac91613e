"""What models need, checked before anything runs: keys, all reported at once, and the packages of their interfaces."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import NamedTuple

from evalwright.errors import InputError, Problem
from evalwright.evaluators.build import build_evaluator, declared
from evalwright.files.paths import seen_from_here
from evalwright.llm.cache import Cache, default_path
from evalwright.llm.choices import ModelChoices
from evalwright.llm.routes import load_library, route_of
from evalwright.model.chat import ChatRequest
from evalwright.model.plan import EvaluatorSpec, Plan
from evalwright.model.protocols import RunReader
from evalwright.model.snapshot import Case
from evalwright.registry import load
from evalwright.session import environment
from evalwright.targets.build import build_target, target_traits

__all__ = ["must_have_keys", "with_keys"]


class _Asking(NamedTuple):
    """A target or an evaluator that calls models, by the name that the user gave it."""

    name: str
    asks: Callable[[Case], Iterable[ChatRequest]]
    judges: bool


def with_keys(plan: Plan, cases: Iterable[Case], models: ModelChoices | None) -> Iterator[Case]:
    """The cases; behind the last one, InputError names every model that would be called without a key."""
    return _checked(plan, cases, models or ModelChoices(), _targets(plan), plan.evaluators)


def must_have_keys(plan: Plan, reader: RunReader, models: ModelChoices | None, *, judging: str | None = None) -> None:
    """Raise InputError as `with_keys` does, for a stored run.

    With `judging` only its evaluators are going to ask: that of this name, or all of them for "". Replies to what they
    ask may then be in the cache from the run itself.
    """
    if judging is not None and _holds_replies(models or ModelChoices()):
        return
    targets = _targets(plan) if judging is None else []
    specs = [spec for spec in plan.evaluators if not judging or spec.name == judging]
    if targets or plan.evaluators_by_case or any(map(_asks, specs)):
        for _ in _checked(plan, reader.cases(), models or ModelChoices(), targets, specs):
            pass


def _checked(
    plan: Plan, cases: Iterable[Case], models: ModelChoices, targets: Sequence[_Asking], specs: Sequence[EvaluatorSpec]
) -> Iterator[Case]:
    """Recordings need no key, and a cache that the user names may hold the judges' replies.

    The user's own cache does not count here: it would let a run begin without a key that it needs, if only anything
    was ever judged with one. The message names it instead.
    """
    if models.replay is not None or models.no_network:
        yield from cases
        return
    judged = models.cache is None or not _holds_replies(models)
    asking = [*targets, *(_evaluators(specs) if judged else ())]
    missing: dict[tuple[str, bool, str, str], None] = {}
    interfaces, variables = set(), environment()
    for case in cases:
        own = _evaluators(case.evaluators or ()) if plan.evaluators_by_case and judged else ()
        for name, asks, judges in (*asking, *own):
            for request in asks(case):
                route = route_of(request, variables)
                if (variable := route.missing_key) is not None:
                    missing[name, judges, variable, request.model] = None
                if not judges:
                    interfaces.add(route.interface)
        yield case
    if missing:
        cached = f", or --cache {default_path() if _holds_replies(models) else 'FILE'} with its replies"
        raise InputError(
            [
                _problem(plan, name, f"{variable} is not set: {model!r} needs a key{cached if judges else ''}")
                for name, judges, variable, model in missing
            ]
        )
    for interface in interfaces:  # the time limit of the first cells is not for imports
        load_library(interface)


def _holds_replies(models: ModelChoices) -> bool:
    path = models.cache or default_path()
    if models.no_cache or not path.is_file():
        return False
    try:
        with closing(Cache(path)) as cache:
            return bool(cache.counts())
    except InputError:
        if models.cache is not None:
            raise
        return False


def _problem(plan: Plan, name: str, message: str) -> Problem:
    return Problem(str(seen_from_here(Path(plan.config_path))), message, key=name)


def _targets(plan: Plan) -> list[_Asking]:
    return [
        _Asking(variant.name, asks, judges=False)
        for variant in plan.variants
        if target_traits(load("targets", variant.adapter)).asks is not None
        and (asks := target_traits(build_target(variant, plan.import_paths)).asks) is not None
    ]


def _asks(spec: EvaluatorSpec) -> bool:
    return declared("evaluators", spec.type).asks is not None


def _evaluators(specs: Iterable[EvaluatorSpec]) -> list[_Asking]:
    return [
        _Asking(spec.name, asks, judges=True)
        for spec in specs
        if _asks(spec) and (asks := build_evaluator(spec.type, spec.config).traits.asks) is not None
    ]
