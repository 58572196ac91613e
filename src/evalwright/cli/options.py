"""Arguments and options that several commands have."""

from __future__ import annotations

import glob
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from functools import update_wrapper
from pathlib import Path
from typing import Any, ClassVar, TypeVar

import click

from evalwright.cli.usage import Command, NumberRange, PathParam, WholeRange
from evalwright.errors import InputError
from evalwright.model.format import Format, Option
from evalwright.registry import formats, package_of

__all__ = [
    "MODEL_NAMES",
    "RunCommand",
    "SuiteCommand",
    "allow_empty",
    "as_json",
    "color",
    "complete_cases",
    "dialect",
    "exit_zero",
    "format_option",
    "keep_going",
    "lease",
    "model_options",
    "quiet",
    "suite_argument",
    "suites_argument",
    "written_by",
]

F = TypeVar("F", bound=Callable[..., Any])

as_json: Callable[[F], F] = click.option(
    "--json", "as_json", is_flag=True, help="Print one JSON document instead of text."
)


def _note_color(ctx: click.Context, param: click.Parameter, value: str) -> None:
    ctx.color = {"always": True, "never": False}.get(value)


color: Callable[[F], F] = click.option(
    "--color",
    type=click.Choice(["auto", "always", "never"]),
    default="auto",
    expose_value=False,
    callback=_note_color,
    help="Colours: on a terminal unless NO_COLOR is set (auto), always or never.",
)
quiet: Callable[[F], F] = click.option(
    "--quiet", "-q", is_flag=True, help="Print the run folder only, and no progress."
)
allow_empty: Callable[[F], F] = click.option(
    "--allow-empty", is_flag=True, help="Allow a dataset or a selection without cases."
)
dialect: Callable[[F], F] = click.option(
    "--format", "--dialect", "dialect", metavar="NAME", help="Read the suite as this format instead of detecting it."
)
exit_zero: Callable[[F], F] = click.option(
    "--exit-zero", is_flag=True, help="Exit with 0 even if cells failed or errored."
)
keep_going: Callable[[F], F] = click.option(
    "--keep-going", is_flag=True, help="Keep calling systems that only give the same error."
)
lease: Callable[[F], F] = click.option(
    "--lease",
    metavar="DIR|postgres:SCHEMA",
    help="For a shard: share the limits with the others by a ledger there, instead of a fixed part for each.",
)


def model_options(command: F) -> F:
    """Options of commands that may call models: the wrapped command gets them as `models`, and has to check them
    together with its other options."""

    def wrapped(*arguments: Any, **options: Any) -> Any:
        from evalwright.llm.choices import ModelChoices
        from evalwright.session import refuse_network

        models = ModelChoices(**{name: options.pop(name) for name in MODEL_NAMES})
        if models.no_network:
            refuse_network()
        return command(*arguments, **options, models=models)

    decorated = update_wrapper(wrapped, command)
    for option in reversed(_MODEL_OPTIONS):
        decorated = option(decorated)
    return decorated  # type: ignore[return-value]


MODEL_NAMES = (
    "budget_usd", "allow_unpriced", "requests_per_minute", "cache", "no_cache", "record", "replay", "no_network",
)  # fmt: skip
_MODEL_OPTIONS = (
    click.option(
        "--budget",
        "budget_usd",
        type=NumberRange(min=0),
        metavar="USD",
        help="Make no model call that could raise the total cost of model calls above USD.",
    ),
    click.option("--allow-unpriced", is_flag=True, help="Call models without a price even if the cost is limited."),
    click.option(
        "--requests-per-minute",
        type=NumberRange(min=0, min_open=True),
        metavar="N",
        help="Limit model calls per minute.",
    ),
    click.option(
        "--cache",
        type=PathParam(),
        metavar="FILE",
        help="Cache judge replies in FILE (default: the user's cache; none for models on this machine).",
    ),
    click.option("--no-cache", is_flag=True, help="Use no cached judge replies and cache none."),
    click.option("--record", type=PathParam(), metavar="FILE", help="Record every model call to FILE."),
    click.option("--replay", type=PathParam(), metavar="FILE", help="Answer model calls from FILE only."),
    click.option("--no-network", is_flag=True, help="Reject connections to other hosts."),
)


_LARGEST_SUITE = 2**20
"""Bytes. The same flag may name a result file, which is large and need not be read to see that it is not a suite."""


class SuiteCommand(Command):
    """A command that reads suites: it has the options of every format, those of each under a heading of its own.

    The function gets all of them as keyword arguments named by their `Option.keyword`, given or not; whether a suite's
    format has them is checked where it is loaded. If a plug-in has an option with the name of a different one that is
    there already, a warning names it, and the plug-in's options are left out. What only a run reads is accepted, so
    that the options of a run fit all commands, and is not in the help of the others.
    """

    runs: ClassVar[bool] = False

    def __init__(self, name: str, params: list[click.Parameter], **settings: Any) -> None:
        self._own = params
        self._of_formats: dict[str, list[click.Option]] = {}
        known = {flag: (param, "the command") for param in params for flag in param.opts}
        added: dict[str, click.Option] = {}
        for suite_format in formats():
            options = [
                (option, _click_option(option, hidden=option.is_of_runs and not self.runs))
                for option in suite_format.options
            ]
            if clashes := [clash for option, made in options if (clash := _clash(option, made, known))]:
                _warn(suite_format, clashes[0])
                continue
            self._of_formats[suite_format.title] = [made for _, made in options]
            for option, made in options:
                if known.keys().isdisjoint(option.flags):
                    added[option.keyword] = made
                    known |= dict.fromkeys(option.flags, (made, f"the format {suite_format.name}"))
        super().__init__(name, params=[*params, *added.values()], **settings)

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        flags = {flag: suite_format for suite_format in formats() for flag in suite_format.suite_flags}
        known = {flag for param in self.params for flag in param.opts}
        return super().parse_args(ctx, [*_without_suite_flags(args, flags, known)])

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """General options, those of models, then those of each format."""
        own = [param for param in self._own if isinstance(param, click.Option)]
        sections = {"Options": [option for option in own if option.name not in MODEL_NAMES]}
        sections["Options"] += filter(None, [self.get_help_option(ctx)])
        sections["Model options"] = [option for option in own if option.name in MODEL_NAMES]
        general = {flag for option in own for flag in option.opts}
        for title, options in self._of_formats.items():
            sections[f"{title} options"] = [option for option in options if general.isdisjoint(option.opts)]
        for title, params in sections.items():
            records = [record for param in params if (record := param.get_help_record(ctx)) is not None]
            if records:
                with formatter.section(title):
                    formatter.write_dl(records)


class RunCommand(SuiteCommand):
    """The command that runs suites."""

    runs = True


def _without_suite_flags(args: Sequence[str], flags: Mapping[str, Format], known: Container[str]) -> Iterator[str]:
    """The arguments without flags that only name a suite; everything after `--` is left as it is.

    What follows the first file of a suite whose original joins several becomes the option that does so here.
    """
    rest, named, joining = iter(args), False, ""
    for arg in rest:
        flag, equals, value = arg.partition("=")
        if arg == "--":
            yield arg
            yield from rest
        elif flag in flags:
            suite_format = flags[flag]
            value = value if equals else next(rest, "")
            if value and (flag not in known or _may_be_suite(Path(value), suite_format, further=named)):
                joining = suite_format.joining_flag
                for file in _files_of(value) if joining else [value]:
                    yield f"{joining}={file}" if named and joining else file
                    named = True
            else:
                joining = ""
                yield from [arg] if equals else [arg, *filter(None, [value])]
        elif joining and not arg.startswith("-"):
            yield from (f"{joining}={file}" for file in _files_of(arg))
        else:
            joining = ""
            yield arg


def _files_of(pattern: str) -> list[str]:
    """The files that a pattern matches, in the order of their names; the text itself if there are none."""
    return sorted(glob.glob(pattern, recursive=True)) or [pattern]  # noqa: PTH207 - takes absolute patterns too


def _may_be_suite(path: Path, suite_format: Format, *, further: bool) -> bool:
    """Whether it is a file of the format, or none at all: then it is a pattern, or a misspelt name of a suite.

    A `further` file may have a part of a suite only, which no format recognises.
    """
    from evalwright.files.yaml import top_level
    from evalwright.formats.loading import format_at

    try:
        if path.stat().st_size > _LARGEST_SUITE:
            return False
        if further and suite_format.joining_flag and path.suffix in suite_format.suffixes:
            return suite_format.excluded_by.isdisjoint(top_level(path) or ())
        return format_at(path).name == suite_format.name
    except FileNotFoundError:
        return True
    except (InputError, OSError, ValueError):
        return False


def _warn(suite_format: Format, clash: str) -> None:
    from evalwright.cli.screen import print_err

    package = package_of("formats", suite_format.name) or "evalwright"
    print_err([f"warning: the options of the format {suite_format.name!r} of {package} are left out: {clash}"])


def _clash(option: Option, made: click.Option, known: Mapping[str, tuple[click.Parameter, str]]) -> str:
    """Why an option cannot be added to those known by their flags; empty if it can."""
    clashing = next((known[flag] for flag in option.flags if flag in known), None)
    if clashing is None or (_kind(clashing[0]) == _kind(made) and clashing[0].name == option.keyword):
        return ""
    return f"{option.flags[0]} differs from {clashing[0].opts[0]} of {clashing[1]}"


def _click_option(option: Option, *, hidden: bool = False) -> click.Option:
    is_flag = option.type == "flag"
    metavar = None if is_flag or not option.metavar else option.metavar
    type_ = None if is_flag else _type(option)
    return click.Option(
        [*option.flags, option.keyword],
        type=type_,
        is_flag=is_flag or None,  # after False, click takes a value that is missing for one that may be left out
        multiple=option.multiple,
        metavar=metavar,
        help=option.help,
        hidden=hidden,
    )


def format_option(option: Option) -> Callable[[F], F]:
    """An option of a format, for one of that format's own commands."""

    def added(command: F) -> F:
        made: list[click.Parameter] = getattr(command, "__click_params__", [])
        command.__click_params__ = [*made, _click_option(option)]  # type: ignore[attr-defined]
        return command

    return added


def _type(option: Option) -> click.ParamType[Any]:
    if option.type == "choice":
        return click.Choice(option.choices)
    low, high = option.minimum, option.maximum
    if option.type == "int" and low is None and high is None:
        return click.INT
    if option.type == "int":
        return WholeRange(None if low is None else int(low), None if high is None else int(high))
    if option.type == "float":
        return NumberRange(low, high)
    return PathParam() if option.type == "path" else click.STRING


def _kind(param: click.Parameter) -> object:
    """What two options of the same flag must have in common."""
    return param.type.to_info_dict(), param.multiple, getattr(param, "is_flag", False)


def written_by(values: Mapping[str, Any]) -> list[str]:
    """Flags of the given options that name a file or folder to be written, which several suites cannot share."""
    flags = {
        option.keyword: option.flags[0]
        for suite_format in formats()
        for option in suite_format.options
        if option.writes
    }
    return [flags[name] for name, value in values.items() if name in flags and value is not None]


def complete_cases(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
    """Case ids for the shell."""
    from evalwright.cli.completion import case_ids

    return case_ids(ctx, param, incomplete)


def suite_argument() -> Callable[[F], F]:
    """A suite's file (or folder, in formats that have those)."""
    return click.argument("path", type=PathParam())


def suites_argument() -> Callable[[F], F]:
    """Suites' files, folders to search for them, and globs; may be empty if the repository itself lists its suites."""
    return click.argument("paths", type=PathParam(), nargs=-1, metavar="PATH...")
