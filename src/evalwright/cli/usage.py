"""What command lines may say: values of arguments and options, each option once, and none without effect."""

from __future__ import annotations

import errno
import math
import os
from collections import Counter
from collections.abc import Callable, Container, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeVar

import click
from click.core import ParameterSource

from evalwright.errors import InputError
from evalwright.statistics.levels import LEAST_ALPHA

__all__ = [
    "Command", "NumberRange", "PathParam", "WholeRange", "alpha_option", "points_param", "reject_mistakes",
    "reject_options", "variables",
]  # fmt: skip

F = TypeVar("F", bound=Callable[..., Any])
_NO_PATH = {
    errno.ENAMETOOLONG: "expected a path, found a text that is too long for one",
    errno.ELOOP: "expected a path, found links that lead in a circle",
}


class Command(click.Command):
    """A command that rejects an option given more than once if only the last value would count."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        words = [*args]  # click takes them out of its list
        rest = super().parse_args(ctx, args)
        if len(words) > 2 and not ctx.resilient_parsing:
            _, _, order = self.make_parser(ctx).parse_args(words)
            repeated = [
                param.opts[0]
                for param, count in Counter(order).items()
                if count > 1 and isinstance(param, click.Option) and not (param.multiple or param.is_flag)
            ]
            reject_mistakes([f"{flag} takes one value and was given several" for flag in repeated])
        return rest


def reject_mistakes(mistakes: Sequence[str]) -> None:
    """Raise UsageError for all of the mistakes, each on a line of its own, if there are any."""
    if mistakes:
        raise click.UsageError("\nError: ".join(mistakes))


def reject_options(names: Container[str], why: str) -> None:
    """Raise UsageError if the command line has options of these names, which would have no effect."""
    ctx = click.get_current_context()
    typed = [
        param.opts[0]
        for param in ctx.command.params
        if param.name in names and ctx.get_parameter_source(param.name) == ParameterSource.COMMANDLINE
    ]
    reject_mistakes([f"{', '.join(typed)}: {why}"] if typed else [])


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
    message = " and ".join(filter(None, (low, high)))
    return f" {message}" if message else ""


def points_param(value: str) -> float:
    """A difference of rates, such as `2pp` or `0.02`, as a fraction: the type of an option."""
    from evalwright.decisions.terms import margin_of

    try:
        return margin_of(value, "")
    except InputError as error:
        raise click.BadParameter(str(error).removeprefix(": ")) from None


def alpha_option(meaning: str) -> Callable[[F], F]:
    """The option `--alpha`, with what it means for a command."""
    known = NumberRange(LEAST_ALPHA, 1, False, True)
    return click.option("--alpha", type=known, default=0.05, show_default=True, metavar="A", help=meaning)


def _by_name(ctx: click.Context, param: click.Parameter, words: tuple[str, ...]) -> dict[str, str]:
    pairs = {}
    for word in words:
        name, equals, value = word.partition("=")
        if not (name and equals):
            raise click.BadParameter(f"expected K=V, found {word!r}", param_hint="--var")
        pairs[name] = value
    return pairs


variables: Callable[[F], F] = click.option(
    "--var",
    "variables",
    multiple=True,
    metavar="K=V",
    callback=_by_name,
    help="A value for ${K} in the suite (repeatable).",
)


class PathParam(click.Path):
    """A path, as `pathlib.Path` unless as text; whether something is there is checked where it is used.

    What can be no path is rejected: nothing, which Path takes for the working directory and a shell makes of a variable
    that is not set; names that are too long; and links in a circle.
    """

    def __init__(self, path_type: type[Path | str] = Path, *, file_okay: bool = True, dir_okay: bool = True) -> None:
        super().__init__(path_type=path_type, file_okay=file_okay, dir_okay=dir_okay)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if not os.fspath(value):
            self.fail("expected a path, found nothing", param, ctx)
        try:
            os.stat(value)  # noqa: PTH116 - it may be text, which Path would change
        except OSError as error:
            if wrong := _NO_PATH.get(error.errno or 0):
                self.fail(f"{wrong}: {value!r:.60}", param, ctx)
        return super().convert(value, param, ctx)
