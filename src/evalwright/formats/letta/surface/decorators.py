"""The decorators of Letta suites. Each marks a function and rejects a wrong signature."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, TypeVar, overload

__all__ = ["ROLE", "agent_factory", "extractor", "grader", "reward_composer", "role_of", "suite_setup"]

F = TypeVar("F", bound=Callable[..., Any])

ROLE = "__evalwright_letta_role__"
_ROLES = ("agent_factory", "extractor", "grader", "reward_composer", "suite_setup")


def role_of(function: object) -> str | None:
    """The name of the decorator that a function carries: one of ours or, if letta-evals is installed, of its own."""
    of_original = (role for role in _ROLES if getattr(function, f"_is_{role}", False))
    return getattr(function, ROLE, None) or next(of_original, None)


@overload
def grader(function: F, /) -> F: ...
@overload
def grader(*, name: str | None = None) -> Callable[[F], F]: ...
def grader(function: F | None = None, /, *, name: str | None = None) -> F | Callable[[F], F]:
    """Mark `(sample, submission) -> GradeResult`, synchronous or not. Raises TypeError for another signature."""

    def mark(found: F) -> F:
        _expect(found, ("sample", "submission"))
        _expect_return(found, ("GradeResult",))
        return _with_mark(found, "grader", name)

    return mark if function is None else mark(function)


@overload
def extractor(function: F, /) -> F: ...
@overload
def extractor(*, name: str | None = None) -> Callable[[F], F]: ...
def extractor(function: F | None = None, /, *, name: str | None = None) -> F | Callable[[F], F]:
    """Mark `(trajectory, config[, agent_state]) -> str`. Raises TypeError for another signature."""

    def mark(found: F) -> F:
        if inspect.iscoroutinefunction(found):
            raise TypeError(f"{_function_name(found)}: an extractor must not be async")
        _expect(found, ("trajectory", "config", "agent_state"), least=2)
        _expect_return(found, ("str",))
        return _with_mark(found, "extractor", name)

    return mark if function is None else mark(function)


def agent_factory(function: F) -> F:
    """Mark `async (client, sample)`, which creates the agent for a sample. Raises TypeError for another signature."""
    if not inspect.iscoroutinefunction(function):
        raise TypeError(f"{_function_name(function)}: an agent factory must be async")
    _expect(function, ("client", "sample"))
    return _with_mark(function, "agent_factory", None)


def suite_setup(function: F) -> F:
    """Mark `()`, `(client)` or `(client, model_name)`, run before any sample. Raises TypeError for others."""
    names = list(inspect.signature(function).parameters)
    if len(names) == 2 and names[1] == "model_handle":
        names[1] = "model_name"
    if names != ["client", "model_name"][: len(names)] or len(names) > 2:
        raise TypeError(
            f"{_function_name(function)}: expected (), (client) or (client, model_name), found ({', '.join(names)})"
        )
    return _with_mark(function, "suite_setup", None)


def reward_composer(function: F) -> F:
    """Mark `(ctx)`, which makes one reward from all grades. Raises TypeError for another signature."""
    _expect(function, ("ctx",))
    return _with_mark(function, "reward_composer", None)


def _expect(function: Callable[..., Any], names: tuple[str, ...], *, least: int | None = None) -> None:
    parameters = list(inspect.signature(function).parameters)
    allowed = range(len(names) if least is None else least, len(names) + 1)
    if len(parameters) not in allowed or parameters != list(names[: len(parameters)]):
        wanted = " or ".join(f"({', '.join(names[:count])})" for count in allowed)
        raise TypeError(f"{_function_name(function)}: expected {wanted}, found ({', '.join(parameters)})")


def _expect_return(function: Callable[..., Any], names: tuple[str, ...]) -> None:
    """Annotations may be strings; only the last part of a dotted name counts."""
    annotated = inspect.signature(function).return_annotation
    if annotated is inspect.Signature.empty:
        return
    annotation = annotated if isinstance(annotated, str) else getattr(annotated, "__name__", str(annotated))
    if annotation.strip("'\"").rpartition(".")[2] not in names:
        raise TypeError(
            f"{_function_name(function)}: expected the return annotation {' or '.join(names)}, found {annotation}"
        )


def _with_mark(function: F, role: str, name: str | None) -> F:
    setattr(function, ROLE, role)
    if name is not None:
        function.__evalwright_letta_name__ = name  # type: ignore[attr-defined]
    return function


def _function_name(function: Callable[..., Any]) -> str:
    return str(getattr(function, "__name__", function))
