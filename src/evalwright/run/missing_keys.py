"""What models need, checked and reported together before anything runs: keys, prices and packages."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import NamedTuple

from evalwright.errors import InputError, Problem
from evalwright.evaluators.build import declared, requests_of
from evalwright.files.paths import seen_from_here
from evalwright.llm.choices import ModelChoices
from evalwright.llm.endpoints import nameless
from evalwright.llm.packages import needed_package
from evalwright.llm.prices import built_in_price, price_in
from evalwright.llm.routes import BATCHED, Route, load_library, route_of
from evalwright.model.chat import ChatRequest
from evalwright.model.plan import EvaluatorSpec, Plan
from evalwright.model.protocols import RunReader
from evalwright.model.snapshot import Case
from evalwright.model.suite import Suite
from evalwright.run.options import RunOptions
from evalwright.run.plan import may_call_models, plan_of
from evalwright.run.selection import chosen_cases
from evalwright.session import Session, environment
from evalwright.session.named_objects import named_object
from evalwright.targets.build import build_target, target_calls_models, target_traits

__all__ = ["check_models", "must_have_keys", "with_keys"]


_BUDGET = "the budget"


class _Caller(NamedTuple):
    """A target or an evaluator that calls models, under the user's name for it."""

    name: str
    asks: Callable[[Case], Iterable[ChatRequest]]
    judges: bool


def with_keys(plan: Plan, cases: Iterable[Case], models: ModelChoices | None) -> Iterator[Case]:
    """The cases; after the last one, InputError names each model without a key, or without a price that it needs.

    Other models without a price become a warning of the plan.
    """
    return _checked_cases(plan, cases, models or ModelChoices(), _targets(plan), plan.evaluators, plan.config_path)


def check_models(suite: Suite, options: RunOptions) -> None:
    """Raise InputError as `with_keys` does, for a run that another process will make."""
    plan = plan_of(suite, options)
    if may_call_models(plan):
        with Session(environment=suite.environment, stdout="keep") as here:
            here.import_paths(plan.import_paths)
            for _ in with_keys(plan, chosen_cases(suite, options), options.models):
                pass


def must_have_keys(
    plan: Plan,
    reader: RunReader,
    models: ModelChoices | None,
    *,
    judging: str | None = None,
    suite: Suite | None = None,
) -> None:
    """Raise InputError as `with_keys` does, for a stored run.

    With `judging`, only its evaluators will call models: the one of this name, or all of them for "". The cache may
    then have replies to their calls from the run itself. The message names `suite` if they are evaluators of it.
    """
    targets = _targets(plan) if judging is None else []
    specs = [spec for spec in plan.evaluators if not judging or spec.name == judging]
    if not (targets or plan.evaluators_by_case or any(map(_asks, specs))):
        return
    if judging is None or not _holds_replies(models or ModelChoices()):
        source = plan.config_path if suite is None else str(suite.source)
        for _ in _checked_cases(plan, reader.cases(), models or ModelChoices(), targets, specs, source):
            pass


def _checked_cases(
    plan: Plan,
    cases: Iterable[Case],
    models: ModelChoices,
    targets: Sequence[_Caller],
    specs: Sequence[EvaluatorSpec],
    source: str,
) -> Iterator[Case]:
    """Messages name the suite file `source`.

    Recordings need no key, and a cache that the user names may have the judges' replies.

    The user's default cache does not count here: if anything had ever been judged with such a model, a run could begin
    without a key that it needs. The message names that cache instead.
    """
    if models.replay is not None or models.no_network:
        yield from cases
        return
    judged, unpriced = models.cache is None or not _holds_replies(models), _UnpricedModels(plan, models, source)
    asking = [*targets, *(_evaluators(specs) if judged else ())]
    missing: dict[tuple[str, bool, str, str], None] = {}
    packages: dict[tuple[str, str], None] = {}
    alone: dict[tuple[str, str], None] = {}
    nowhere: dict[tuple[str, str], None] = {}
    interfaces, variables, functions = set(), environment(), False
    for case in cases:
        own = _evaluators(case.evaluators or ()) if plan.evaluators_by_case and judged else ()
        for name, asks, judges in (*asking, *own):
            for request in asks(case):
                if (wrong := nameless(request.model)) is not None:
                    nowhere[name, wrong] = None
                    continue
                route = route_of(request, variables)
                if models.batch is not None and judges and route.interface not in BATCHED:
                    alone[name, request.model] = None
                if route.missing_key is not None:
                    missing[name, judges, route.without_key, route.address_variable] = None
                if (needed := needed_package(route)) is not None:
                    packages[name, needed] = None
                unpriced.look_at(name, request.model, route, judges)
                if route.is_function and not plan.run.places_judges and (wrong := _not_found(route)):
                    nowhere[name, wrong] = None
                functions |= judges and route.is_function
                if not judges:
                    interfaces.add(route.interface)
        yield case
    problems = unpriced.problems()
    batches = [(name, f"{model!r} does not support batches: leave out --batch") for name, model in alone]
    problems += [_problem(source, name, message) for name, message in (*nowhere, *packages, *batches)]
    problems += _beyond_budget(plan, targets, models, source)
    if missing or problems:
        raise InputError([*_lacking_keys(source, missing, models), *problems])
    unpriced.warn()
    if plan.run.places_judges and judged and not functions:
        message = "run.executor.judges has no effect: no judge's model is a Python function (python:module:attribute)"
        plan.warnings = [*plan.warnings, message]
    for interface in interfaces:  # imports must not use up the time limit of the first cells
        load_library(interface)


def _not_found(route: Route) -> str:
    """Why there is no such function in this process; empty if there is. One that workers call may be there alone."""
    try:
        named_object(route.base_url, "model")
    except InputError as error:
        return str(error.problems[0].message)
    return ""


def _lacking_keys(source: str, missing: Iterable[tuple[str, bool, str, str]], models: ModelChoices) -> list[Problem]:
    """Who lacks a key, and how to do without: by the cache that holds replies of judges, or by a local server."""
    from evalwright.llm.cache import default_path

    cached = f"or --cache {default_path() if _holds_replies(models) else 'FILE'} with its replies"
    return [
        _problem(source, name, message, ", ".join([*([cached] if judges else ()), *_local_server(variable)]))
        for name, judges, message, variable in missing
    ]


def _local_server(variable: str) -> Iterator[str]:
    """How to ask a server that needs no key: by the variable with its address."""
    if variable:
        yield f"or the address of a local server in {variable}"


def _beyond_budget(plan: Plan, targets: Sequence[_Caller], models: ModelChoices, source: str) -> list[Problem]:
    """The systems whose calls a budget cannot limit, because processes of their own make them."""
    isolated = {variant.name for variant in plan.variants if variant.isolation == "process"}
    names = [] if models.budget_usd is None else [target.name for target in targets if target.name in isolated]
    message = "a budget cannot limit a model that another process calls: leave out isolation: process"
    return [_problem(source, name, message) for name in names]


class _UnpricedModels:
    """Models without a known price: a limit on money could not be enforced for them."""

    def __init__(self, plan: Plan, models: ModelChoices, source: str) -> None:
        self._plan, self._models, self._source = plan, models, source
        self._list_prices = plan.has_list_prices
        limits = {_BUDGET: models.budget_usd, "run.cost_limit_usd": plan.run.cost_limit_usd}
        self._limits = [limit for limit, amount in limits.items() if amount is not None]
        self._refused: dict[tuple[str, str, str], None] = {}
        self._unpriced: dict[str, None] = {}
        self._priced: set[str] = set()

    def look_at(self, name: str, model: str, route: Route, judges: bool) -> None:
        """Note a model that is called by the user's `name`."""
        if model in self._priced or not self._list_prices:
            return
        if price_in(self._plan.prices, model) is not None or built_in_price(model) is not None:
            self._priced.add(model)
            return
        for limit in self._limits:
            if not self._models.allow_unpriced and not (judges and limit != _BUDGET):
                self._refused[name, model, limit] = None
        # What runs here, or is the user's own function, has no price by nature.
        if not route.is_loopback and route.interface != "callable":
            self._unpriced[model] = None

    def problems(self) -> list[Problem]:
        return [
            _problem(
                self._source,
                name,
                f"no price is known for {model!r}, so {limit} cannot be enforced: add it to the price table "
                "(metrics.price_table_path)",
                "or pass --allow-unpriced",
            )
            for name, model, limit in self._refused
        ]

    def warn(self) -> None:
        if self._unpriced:
            message = f"no price is known for {', '.join(self._unpriced)}: what it costs is in no total"
            self._plan.warnings = [*self._plan.warnings, message]
        if self._models.allow_unpriced and not self._limits:
            message = "--allow-unpriced has no effect: neither --budget nor run.cost_limit_usd limits the cost"
            self._plan.warnings = [*self._plan.warnings, message]


def _holds_replies(models: ModelChoices) -> bool:
    from evalwright.llm.cache import Cache, default_path  # imports SQLite, which most runs do not need

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


def _problem(source: str, name: str, message: str, option: str = "") -> Problem:
    return Problem(str(seen_from_here(Path(source))), message, key=name, option=option)


def _targets(plan: Plan) -> list[_Caller]:
    return [
        _Caller(variant.name, asks, judges=False)
        for variant in plan.variants
        if target_calls_models(variant.adapter)
        and (asks := target_traits(build_target(variant, plan.import_paths)).asks) is not None
    ]


def _asks(spec: EvaluatorSpec) -> bool:
    return declared("evaluators", spec.type).asks is not None


def _evaluators(specs: Iterable[EvaluatorSpec]) -> list[_Caller]:
    return [_Caller(spec.name, requests, judges=True) for spec in specs if (requests := requests_of(spec)) is not None]
