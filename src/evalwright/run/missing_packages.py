"""What the models, outputs and executor of a suite lack here: packages of extras, each with the command that installs
it, and functions that are models."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.util import find_spec
from typing import TYPE_CHECKING

import msgspec

from evalwright.errors import InputError, Problem
from evalwright.evaluators.build import requests_of
from evalwright.llm.endpoints import nameless
from evalwright.llm.packages import needed_package
from evalwright.llm.routes import Route, route_of
from evalwright.model.chat import ChatRequest
from evalwright.model.plan import EvaluatorSpec, Variant
from evalwright.model.snapshot import Case
from evalwright.session import environment
from evalwright.session.named_objects import named_object
from evalwright.targets.build import build_target, target_calls_models, target_traits

if TYPE_CHECKING:
    from evalwright.model.suite import Suite

__all__ = ["missing_functions", "missing_packages"]

_OF_OUTPUTS = {"postgres": "psycopg", "otel": "opentelemetry"}
_ANY_CASE = Case("", {})


def missing_packages(suite: Suite) -> list[Problem]:
    """Warnings about packages that its judges, systems, outputs and executor need. No code of the suite is imported.

    What single cases need is left to the run.
    """
    packages = dict.fromkeys([*_packages_of_models(suite), *_packages_of_parts(suite)])
    return [Problem(str(suite.source), message, key=key, absent=True) for key, message in packages]


def missing_functions(suite: Suite) -> list[Problem]:
    """Mistakes in the names of models (`python:module:function`) that its judges and systems call.

    The functions are looked up as `named_object` does now: without executing code where nothing is imported. Those of
    judges that work elsewhere are left to the run.
    """
    if suite.run.places_judges:
        return []
    return list(dict.fromkeys(_without_function(suite)))


def _without_function(suite: Suite) -> Iterator[Problem]:
    for name, route in _routes(suite):
        if route.is_function:
            try:
                named_object(route.base_url, "model")
            except InputError as error:
                (problem,) = error.problems
                yield Problem(str(suite.source), problem.message, key=name, absent=problem.absent)


def _packages_of_models(suite: Suite) -> Iterator[tuple[str, str]]:
    for name, route in _routes(suite):
        if (message := needed_package(route)) is not None:
            yield name, message


def _routes(suite: Suite) -> Iterator[tuple[str, Route]]:
    """The models of judges and systems, each under the user's name for who calls it."""
    variables = environment()
    for name, requests in [*map(_calls_of_judge, suite.evaluators), *map(_calls_of_system, suite.variants)]:
        for request in requests:
            if nameless(request.model) is None:
                yield name, route_of(request, variables)


def _calls_of_judge(spec: EvaluatorSpec) -> tuple[str, list[ChatRequest]]:
    requests = requests_of(spec)
    return spec.name, [] if requests is None else list(requests(_ANY_CASE))


def _calls_of_system(variant: Variant) -> tuple[str, list[ChatRequest]]:
    """The models of a system; if its code must not be imported now, they are left to the run."""
    if not target_calls_models(variant.adapter):
        return variant.name, []
    try:
        asks = target_traits(build_target(variant, ())).asks
        return variant.name, list(asks(_ANY_CASE)) if asks is not None else []
    except InputError:
        return variant.name, []


def _packages_of_parts(suite: Suite) -> Iterator[tuple[str, str]]:
    for output in (suite.store, *suite.mirrors):
        package = _OF_OUTPUTS.get(output.type)
        if package is not None and find_spec(package) is None:
            yield "output", f"{output.type!r} needs the package {package}: pip install 'evalwright[{output.type}]'"
    if suite.run.executor is not msgspec.UNSET and find_spec("ray") is None:
        yield "run.executor", "the executor ray needs Ray: pip install 'evalwright[ray]'"
