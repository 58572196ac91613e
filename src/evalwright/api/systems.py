"""What is tested: functions, `module:callable`, and systems with a name and settings of their own."""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeAlias

import msgspec

from evalwright.api.places import Passed, name_of
from evalwright.api.problems import no_text, refused, too_small
from evalwright.errors import InputError, Problem
from evalwright.model.plan import Variant
from evalwright.model.trace import Answer
from evalwright.session.imports import named_object

__all__ = ["Returned", "System", "SystemLike", "variants_of"]

Returned: TypeAlias = str | Mapping[str, Any] | Answer | None
"""What a system returns. None is an error."""

_FromFunction: TypeAlias = Returned | Awaitable[Returned] | Iterator[str] | AsyncIterator[str]


class Function(Protocol):
    """A function that is a system.

    Type checkers see `Callable[..., …]` with a first parameter, which gives the parameter of a lambda a type.
    """

    def __call__(self, first: Any, /, *others: Any, **by_name: Any) -> _FromFunction: ...


@dataclass(frozen=True, slots=True)
class System:
    """A system under test with a name, settings and limits of its own; a plain function needs none of these.

    Example:
        `System(answer, name="warm", settings={"temperature": 0.9}, timeout=30)`
    """

    call: Function | str
    """The function, or `"module:callable"`."""
    name: str | None = None
    """The variant's name in results; None: the function's."""
    settings: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """What the function gets as `variant.config`; plain data, stored with the run, except values of keys that name a
    credential (`api_key`, `token`, ...)."""
    timeout: float | None = None
    """Seconds for one call; None: the run's."""
    concurrency: int | None = None
    """Calls of this system at once; None: the run's."""


SystemLike: TypeAlias = System | Function | str
"""A function, a System, `"module:callable"`, or the name of one of a suite's variants."""


def variants_of(
    given: SystemLike | Mapping[str, SystemLike] | Sequence[SystemLike],
    timeout: float,
    places: Passed,
    problems: list[Problem],
) -> list[Variant]:
    """A variant for each system. Functions are added to `places`, problems to `problems`."""
    named: list[tuple[str, str | None, Any]]
    if isinstance(given, Mapping):
        named = [(f"system[{name!r}]", str(name), one) for name, one in given.items()]
    elif isinstance(given, Sequence) and not isinstance(given, str):
        named = [(f"system[{i}]", None, one) for i, one in enumerate(given)]
    else:
        named = [("system", None, given)]
    found = [
        variant
        for place, name, one in named
        if (variant := _variant(place, name, one, timeout, places, problems)) is not None
    ]
    if not named:
        problems.append(refused("system", "expected at least one system, found none"))
    for name, number in Counter(variant.name for variant in found).items():
        if number > 1:
            problems.append(refused("system", f"two systems are named {name!r}: pass a mapping from name to system"))
    return found


def _variant(
    place: str, name: str | None, one: Any, timeout: float, places: Passed, problems: list[Problem]
) -> Variant | None:
    system = one if isinstance(one, System) else System(one)
    call = system.call
    if isinstance(call, str) and ":" not in call:
        problems.append(refused(place, f"expected 'module:callable', found {call!r}"))
        return None
    if not isinstance(call, str) and not callable(call):
        expected = "a function, a System or 'module:callable'"
        problems.append(refused(place, f"expected {expected}, found {type(call).__name__}"))
        return None
    problems += no_text(f"{place}.name", system.name)
    problems += too_small(f"{place}.timeout", system.timeout, 0.001, whole=False)
    problems += too_small(f"{place}.concurrency", system.concurrency, 1, whole=True)
    try:
        settings = msgspec.to_builtins(dict(system.settings))
    except (TypeError, ValueError, RecursionError) as error:
        problems.append(refused(f"{place}.settings", f"expected plain data: {error}"))
        return None
    if "target" in settings:
        problems.append(refused(f"{place}.settings", "the key 'target' names the function itself: take another one"))
    target = call if isinstance(call, str) else places.add(call)
    try:
        from evalwright.targets.python_function import arguments_for

        # Also for names: a run that finds out would leave a folder without cells behind.
        arguments_for(named_object(call) if isinstance(call, str) else call)
    except InputError as error:
        problems.extend(refused(place, problem.message) for problem in error.listed)
    return Variant(
        name or system.name or (call.rpartition(":")[2] if isinstance(call, str) else name_of(call)),
        "python_function",
        {**settings, "target": target},
        timeout_seconds=system.timeout or timeout,
        concurrency=system.concurrency,
        any_mapping=True,
    )
