"""What is tested: functions, `module:callable`, registered targets, and systems with a name and settings of their
own."""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeAlias

import msgspec

from evalwright.api.places import Passed, name_of
from evalwright.api.problems import no_text, refused, too_small
from evalwright.errors import InputError, Problem, did_you_mean
from evalwright.model.plan import Variant
from evalwright.model.trace import Answer
from evalwright.registry import knows, names
from evalwright.session.named_objects import named_object
from evalwright.targets.build import build_target, default_timeout, unread_of

__all__ = ["Returned", "System", "SystemLike", "variants_of"]

Returned: TypeAlias = str | Mapping[str, Any] | Answer | None
"""What a system returns. None is an error."""

_FromFunction: TypeAlias = Returned | Awaitable[Returned] | Iterator[str] | AsyncIterator[str]

_EXPECTED = "a function, a System, 'module:callable' or the name of a target"
_METHODS = ("invoke", "run", "chat")
"""By which agents of other libraries, such as a graph of LangGraph, are called."""


class Function(Protocol):
    """A function that is a system.

    Type checkers see `Callable[..., …]` with a first parameter, which gives the parameter of a lambda a type.
    """

    def __call__(self, first: Any, /, *others: Any, **by_name: Any) -> _FromFunction: ...


@dataclass(frozen=True, slots=True)
class System:
    """A system under test with a name, settings and limits of its own; a plain function needs none of these.

    Examples:
        `System(answer, name="warm", settings={"temperature": 0.9}, timeout=30)`

        `System("http", settings={"endpoint": "http://localhost:8000/ask", "provider": "simple"})`
    """

    call: Function | str
    """The function, `"module:callable"`, or the name of a registered target (`"http"`, `"cli"`, `"chat"`, ...)."""
    name: str | None = None
    """The variant's name in results; None: the function's or the target's."""
    settings: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """What the function gets as `variant.config`, or the keys of the target; plain data, stored with the run, except
    values of keys that name a credential (`api_key`, `token`, ...)."""
    timeout: float | None = None
    """Seconds for one call; None: the run's."""
    concurrency: int | None = None
    """Calls of this system at once; None: the run's."""


SystemLike: TypeAlias = System | Function | str
"""A function, a System, `"module:callable"`, the name of a target, or, for a suite, of one of its variants."""


def variants_of(
    systems: SystemLike | Mapping[str, SystemLike] | Sequence[SystemLike],
    timeout: float | None,
    places: Passed,
    problems: list[Problem],
) -> list[Variant]:
    """A variant for each system; without a `timeout`, its target's applies. Functions are added to `places`, problems
    to `problems`."""
    named: list[tuple[str, str | None, Any]]
    if isinstance(systems, Mapping):
        named = [(f"system[{name!r}]", str(name), system) for name, system in systems.items()]
    elif isinstance(systems, Sequence) and not isinstance(systems, str):
        named = [(f"system[{i}]", None, system) for i, system in enumerate(systems)]
    else:
        named = [("system", None, systems)]
    variants = [
        variant
        for place, name, system in named
        if (variant := _variant(place, name, system, timeout, places, problems)) is not None
    ]
    if not named:
        problems.append(refused("system", "expected at least one system, found none"))
    for name, number in Counter(variant.name for variant in variants).items():
        if number > 1:
            problems.append(refused("system", f"two systems are named {name!r}: pass a mapping from name to system"))
    return variants


def _variant(
    place: str, name: str | None, one: Any, timeout: float | None, places: Passed, problems: list[Problem]
) -> Variant | None:
    system = one if isinstance(one, System) else System(one)
    call = system.call
    if not isinstance(call, str) and not callable(call):
        method = next((name for name in _METHODS if callable(getattr(call, name, None))), None)
        instead = f"; give a function that calls its `{method}`" if method else ""
        problems.append(refused(place, f"expected {_EXPECTED}, found {type(call).__name__}{instead}"))
        return None
    problems += no_text(f"{place}.name", system.name)
    problems += too_small(f"{place}.timeout", system.timeout, 0.001, whole=False)
    problems += too_small(f"{place}.concurrency", system.concurrency, 1, whole=True)
    try:
        settings = msgspec.to_builtins(dict(system.settings))
    except (TypeError, ValueError, RecursionError) as error:
        problems.append(refused(f"{place}.settings", f"expected plain data: {error}"))
        return None
    named = name or system.name
    if isinstance(call, str) and ":" not in call:
        variant = _variant_of_target(place, Variant(named or call, call, settings), problems)
    else:
        variant = _variant_of_function(place, named, call, settings, places, problems)
    return variant and msgspec.structs.replace(
        variant,
        timeout_seconds=system.timeout or timeout or default_timeout(variant.adapter, settings),
        concurrency=system.concurrency,
    )


def _variant_of_function(
    place: str, name: str | None, call: Any, settings: dict[str, Any], places: Passed, problems: list[Problem]
) -> Variant:
    if "target" in settings:
        problems.append(refused(f"{place}.settings", "the key 'target' names the function itself: take another one"))
    try:
        from evalwright.targets.python_function import arguments_for

        # Also for names: a run that finds out would leave a folder without cells behind.
        arguments_for(named_object(call) if isinstance(call, str) else call)
    except InputError as error:
        problems.extend(refused(place, problem.message) for problem in error.listed)
    return Variant(
        name or (call.rpartition(":")[2] if isinstance(call, str) else name_of(call)),
        "python_function",
        {**settings, "target": call if isinstance(call, str) else places.add(call)},
        any_mapping=True,
    )


def _variant_of_target(place: str, variant: Variant, problems: list[Problem]) -> Variant | None:
    """The variant, if there is such a target; what its settings lack is among the problems."""
    if not knows("targets", variant.adapter):
        near = did_you_mean(variant.adapter, names("targets"))
        problems.append(refused(place, f"expected {_EXPECTED}, found {variant.adapter!r}{near}"))
        return None
    keys = list(unread_of(variant.adapter, variant.config))
    try:
        build_target(variant, [])
    except InputError as error:
        keys += [(problem.key, problem.message) for problem in error.listed]
    problems += [refused(f"{place}.settings.{key}".rstrip("."), message) for key, message in keys]
    return variant
