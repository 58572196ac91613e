"""The terms of a decision between two sides: the tolerable loss, the error rate, and further conditions."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from math import isfinite
from typing import Literal

import msgspec

from evalwright.decisions.measures import MEASURES
from evalwright.decisions.sides import PASS_RATE
from evalwright.errors import InputError, Problem, did_you_mean

__all__ = [
    "DEFAULT_MARGIN",
    "QUANTILES",
    "Errors",
    "Guard",
    "Population",
    "Terms",
    "guard_of",
    "guards_of",
    "margin_of",
]

DEFAULT_MARGIN = 0.02
"""Two points, or two percent of the range of a score."""
QUANTILES = {"latency_p50": 0.5, "latency_p95": 0.95, "latency_p99": 0.99}
_RATIOS = (*MEASURES, *QUANTILES)
_EVALUATOR = "evaluator:"
_NUMBER = r"[+-]?\d+(?:\.\d+)?"
_LIMITS = {True: (f"{_NUMBER}%", "a percentage like +10%"), False: (f"{_NUMBER}pp", "points like -1pp")}
"""The notation of limits: for ratios, and for losses."""

Population = Literal["cases", "suite"]
Errors = Literal["exclude", "fail", "strict"]


class Guard(msgspec.Struct, frozen=True):
    """A limit besides the metric: on a ratio B/A, or on the loss of one evaluator (B - A at least `limit`)."""

    name: str
    limit: float

    @property
    def evaluator(self) -> str | None:
        return self.name.removeprefix(_EVALUATOR) if self.name.startswith(_EVALUATOR) else None


class Terms(msgspec.Struct, frozen=True, kw_only=True):
    """How two sides are decided."""

    metric: str = PASS_RATE
    margin: float | None = None
    """In the units of the metric; None: two percent of its range."""
    alpha: float = 0.05
    better: bool = False
    """Whether B must be better, not only not worse."""
    slices: tuple[str, ...] = ()
    """`tag` or `metadata.KEY`; `*` for all."""
    slice_margin: float | None = None
    """The loss that no slice may show; None if slices decide nothing."""
    guards: tuple[Guard, ...] = ()
    errors: Errors = "exclude"
    group: str | None = None
    """A metadata key in place of the cases' groups; `none` for no groups."""
    keep_changed: bool = False
    """Whether cases that changed are still paired; otherwise they are left out."""
    population: Population = "cases"
    """`suite`: the cases are all there are, and only their trials are a sample."""
    family: int = 1


def margin_of(text: str, name: str = "--margin", metric: str = PASS_RATE) -> float:
    """`2pp` or `0.02`; for a score also a larger number, of its units. Raises InputError for anything else: `2` of a
    rate and `2%` could be read in two ways."""
    match = re.fullmatch(r"\s*(\d+(?:\.\d+)?|\.\d+)\s*(pp)?\s*", text)
    value = None if match is None else float(match[1]) / (100 if match[2] else 1)
    if value is not None and (value < 1 or (metric != PASS_RATE and isfinite(value))):
        return value
    if metric == PASS_RATE:  # which cannot get worse by more than 1
        raise InputError(f"{name}: expected points or a fraction below 1, like 2pp or 0.02, found {text!r}")
    raise InputError(f"{name}: expected points or a number in the units of {metric}, like 2pp or 0.02, found {text!r}")


def guards_of(text: str, evaluators: Iterable[str]) -> tuple[Guard, ...]:
    """`cost=+10%,evaluator:NAME=-1pp`. Raises InputError with all mistakes."""
    known = list(evaluators)
    guards_found = [
        guard_of(name or entry, limit, known)
        for entry in filter(None, map(str.strip, text.split(",")))
        for name, _, limit in [entry.rpartition("=")]
    ]
    guards = [guard for guard in guards_found if isinstance(guard, Guard)]
    wrong = [problem for problem in guards_found if isinstance(problem, str)]
    times = Counter(guard.name for guard in guards)
    wrong += [f"{name}: expected one limit, found {n}" for name, n in times.items() if n > 1]
    if wrong:
        raise InputError([Problem("--guard", problem) for problem in wrong])
    return tuple(guards)


def guard_of(name: str, limit: str, evaluators: Iterable[str]) -> Guard | str:
    """One guard, or the problem with it."""
    known = [*_RATIOS, *(f"{_EVALUATOR}{evaluator}" for evaluator in evaluators)]
    if name not in known:
        return f"no {name!r}{did_you_mean(name, known)} (there are: {', '.join(known)})"
    form, expected = _LIMITS[name in _RATIOS]
    limit = limit.strip()
    if not re.fullmatch(form, limit):
        return f"{name}: expected {expected}, found {limit!r}"
    if name in _RATIOS:
        ratio = 1 + float(limit[:-1]) / 100
        return Guard(name, ratio) if ratio > 0 else f"{name}: expected a limit above -100%, found {limit!r}"
    loss = float(limit[:-2]) / 100
    return Guard(name, loss) if abs(loss) < 1 else f"{name}: expected a limit between -100pp and 100pp, found {limit!r}"
