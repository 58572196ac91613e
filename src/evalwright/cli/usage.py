"""Command lines that are refused: options that would have no effect, given twice, or without the one they need."""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Sequence

import click
from click.core import ParameterSource

__all__ = ["Command", "reject_mistakes", "reject_options"]


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
