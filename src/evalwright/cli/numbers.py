"""Numbers as options of commands."""

from __future__ import annotations

import math
from collections.abc import Callable
from contextlib import suppress
from typing import Any, TypeVar

import click

from evalwright.statistics.levels import LEAST_ALPHA

__all__ = ["NumberRange", "WholeRange", "alpha_option"]

F = TypeVar("F", bound=Callable[..., Any])


class NumberRange(click.FloatRange):
    """A finite number within bounds. NaN is never outside by comparison, and infinity is no limit."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        with suppress(ValueError, click.BadParameter):
            if math.isfinite(number := float(value)):
                return super().convert(number, param, ctx)
        return self.fail(f"expected a number{_within(self)}, found {value!r:.60}", param, ctx)


class WholeRange(click.IntRange):
    """A whole number within bounds."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        with suppress(click.BadParameter):
            return super().convert(value, param, ctx)
        return self.fail(f"expected a whole number{_within(self)}, found {value!r:.60}", param, ctx)


def _within(known: click.FloatRange | click.IntRange) -> str:
    if known.min is not None and known.max is not None and not (known.min_open or known.max_open):
        return f" from {known.min:,.12g} to {known.max:,.12g}"
    low = "" if known.min is None else f"{'above' if known.min_open else 'of at least'} {known.min:,.12g}"
    high = "" if known.max is None else f"{'below' if known.max_open else 'of at most'} {known.max:,.12g}"
    said = " and ".join(filter(None, (low, high)))
    return f" {said}" if said else ""


def alpha_option(meaning: str) -> Callable[[F], F]:
    """The option `--alpha`, with what it means for a command."""
    known = NumberRange(LEAST_ALPHA, 1, False, True)
    return click.option("--alpha", type=known, default=0.05, show_default=True, metavar="A", help=meaning)
