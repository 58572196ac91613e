"""Options of a run from Python, besides its cases and systems."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, fields
from inspect import Parameter, Signature, iscoroutinefunction
from typing import TYPE_CHECKING, Any, Literal, TypedDict

from evalwright.api.problems import refused, too_small
from evalwright.errors import Problem, did_you_mean

if TYPE_CHECKING:
    from evalwright.api.cells import Cell
    from evalwright.api.evaluators import EvaluatorLike

__all__ = ["Options", "Settings", "signature"]


class Options(TypedDict, total=False):
    """Keyword arguments of `evaluate`, `aevaluate` and `stream`; their docstrings say what each does."""

    evaluators: EvaluatorLike | Sequence[EvaluatorLike] | None
    name: str | None
    trials: int | None
    concurrency: int | None
    timeout: float | None
    retries: int | None
    limit: int | None
    tags: Sequence[str]
    baseline: str | None
    budget_usd: float | None
    stop_after_equal_errors: int | None
    seed: int | None
    out: str | os.PathLike[str] | None
    on_cell: Callable[[Cell], None] | None
    progress: bool | None
    resume: bool
    executor: Literal["local", "ray"] | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """The same with defaults. None for a number means 1 trial, 8 cells at once, the target's seconds, no retry, or the
    suite's value."""

    evaluators: EvaluatorLike | Sequence[EvaluatorLike] | None = None
    name: str | None = None
    trials: int | None = None
    concurrency: int | None = None
    timeout: float | None = None
    retries: int | None = None
    limit: int | None = None
    tags: Sequence[str] = ()
    baseline: str | None = None
    budget_usd: float | None = None
    stop_after_equal_errors: int | None = 20
    seed: int | None = None
    out: str | os.PathLike[str] | None = "runs"
    on_cell: Callable[[Cell], None] | None = None
    progress: bool | None = None
    resume: bool = False
    executor: Literal["local", "ray"] | None = None

    @classmethod
    def of_call(cls, function: str, options: Options) -> Settings:
        """The settings of a call of `function`. Raises TypeError that names `function` for an unknown keyword."""
        known = Options.__annotations__
        if unknown := next((name for name in options if name not in known), None):
            near = did_you_mean(unknown, known)
            raise TypeError(f"{function}() got an unexpected keyword argument {unknown!r}{near}")
        return cls(**options)

    def problems(self) -> list[Problem]:
        """Problems of single values."""
        problems = list[Problem]()
        for key, least in _LEAST.items():
            problems += too_small(key, getattr(self, key), least, whole=key not in ("timeout", "budget_usd"))
        tags: Any = self.tags
        if isinstance(tags, str):  # a string is a sequence, too: of its letters
            problems.append(refused("tags", f"expected a list of tags, found the text {tags!r}"))
        elif not (isinstance(tags, Collection) and all(isinstance(tag, str) for tag in tags)):
            problems.append(refused("tags", f"expected a list of tags, found {tags!r}"))
        for key, (kinds, expected) in _KINDS.items():
            value = getattr(self, key)
            if not (value is None or isinstance(value, kinds)) or (isinstance(value, bool) and bool not in kinds):
                problems.append(refused(key, f"expected {expected}, found {value!r}"))
        if self.executor not in (None, *_EXECUTORS):
            problems.append(refused("executor", f"expected {' or '.join(_EXECUTORS)}, found {self.executor!r}"))
        name: object = self.name
        if name is not None and not (isinstance(name, str) and name.strip()):
            problems.append(refused("name", f"expected text, found {self.name!r}"))
        on_cell: object = self.on_cell
        if not (on_cell is None or callable(on_cell)):
            problems.append(refused("on_cell", f"expected a function, found {type(on_cell).__name__}"))
        elif iscoroutinefunction(on_cell) or iscoroutinefunction(getattr(on_cell, "__call__", None)):  # noqa: B004
            problems.append(refused("on_cell", "expected a function that is not async: nothing awaits what it returns"))
        return problems


_LEAST: Mapping[str, float] = {
    "trials": 1,
    "concurrency": 1,
    "timeout": 0.001,
    "retries": 0,
    "limit": 1,
    "budget_usd": 0.0,
    "stop_after_equal_errors": 1,
}

_EXECUTORS = ("local", "ray")

_KINDS: Mapping[str, tuple[tuple[type, ...], str]] = {
    "seed": ((int,), "a whole number"),
    "baseline": ((str,), "the name of a system"),
    "out": ((str, os.PathLike), "a folder"),
    "progress": ((bool,), "True or False"),
    "resume": ((bool,), "True or False"),
}


def signature(function: Callable[..., Any]) -> Signature:
    """The signature that `help()` and notebooks show: the function's, with each option as a parameter."""
    shown = Signature.from_callable(function)
    own = [p for p in shown.parameters.values() if p.kind is not Parameter.VAR_KEYWORD]
    more = [Parameter(f.name, Parameter.KEYWORD_ONLY, default=f.default, annotation=f.type) for f in fields(Settings)]
    return shown.replace(parameters=[*own, *more])
