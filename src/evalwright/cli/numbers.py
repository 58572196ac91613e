"""Numbers as options of commands."""

from __future__ import annotations

import math
from typing import Any

import click

__all__ = ["NumberRange"]


class NumberRange(click.FloatRange):
    """A finite number within bounds. NaN is never outside by comparison, and infinity is no limit."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        number = super().convert(value, param, ctx)
        if not math.isfinite(number):
            self.fail(f"{value!r} is not a {'' if math.isnan(number) else 'finite '}number.", param, ctx)
        return number
