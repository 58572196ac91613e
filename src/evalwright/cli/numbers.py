"""Numbers as options of commands."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, TypeVar

import click

from evalwright.statistics.levels import LEAST_ALPHA

__all__ = ["NumberRange", "alpha_option"]

F = TypeVar("F", bound=Callable[..., Any])


class NumberRange(click.FloatRange):
    """A finite number within bounds. NaN is never outside by comparison, and infinity is no limit."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        number = super().convert(value, param, ctx)
        if not math.isfinite(number):
            self.fail(f"{value!r} is not a {'' if math.isnan(number) else 'finite '}number.", param, ctx)
        return number


def alpha_option(meaning: str) -> Callable[[F], F]:
    """The option `--alpha`, with what it means for a command."""
    known = NumberRange(LEAST_ALPHA, 1, False, True)
    return click.option("--alpha", type=known, default=0.05, show_default=True, metavar="A", help=meaning)
