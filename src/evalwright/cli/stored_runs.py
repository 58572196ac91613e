"""Arguments that name stored runs, and the options that say where they are kept and what of them to trust."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from evalwright.cli.usage import PathParam

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

    from evalwright.run.origin import Trust

__all__ = [
    "RunPath",
    "resume_options",
    "run_argument",
    "store_choice",
    "store_options",
    "suite_option",
    "trust_all",
    "trust_choice",
]

F = TypeVar("F", bound=Callable[..., Any])


def run_argument(name: str = "run") -> Callable[[F], F]:
    """A run folder; that it is one is checked where it is opened. Needs `store_options` on the command."""
    return click.argument(name, type=RunPath(), metavar=name.upper())


class RunPath(PathParam):
    """The path of a run. One that only leads to its store becomes a Place, if the user says where that is."""

    def get_missing_message(self, param: click.Parameter, ctx: click.Context | None) -> str:
        return (
            "Expected a run folder, which `evalwright run` prints last; `evalwright list runs` lists those below runs/."
        )

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        from evalwright.cli.completion import run_paths

        return run_paths(incomplete)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        path: Path = super().convert(value, param, ctx)
        trusted = {} if ctx is None else store_choice(ctx)
        if not trusted:
            return path
        from evalwright.run.locations import NOTE, find_run, is_on_a_server

        return find_run(path, **trusted) if is_on_a_server(path) or (path / NOTE).is_file() else path


_STORE, _SUITE = "evalwright.store", "evalwright.suite"


def store_choice(ctx: click.Context) -> dict[str, Any]:
    """`--suite` and `--trust-run` as keywords of `find_run`; empty without them."""
    chosen: dict[str, Any] = ctx.meta.get(_STORE, {})
    return chosen


def store_options(command: F) -> F:
    """Options that say which store address to trust; they are read before the arguments."""
    for option in reversed(_STORE_OPTIONS):
        command = option(command)
    return command


def _note_suite(ctx: click.Context, param: click.Parameter, value: Path | None) -> Path | None:
    if value is not None:
        from evalwright.formats.loading import load_suite
        from evalwright.session.imports import nothing_imported

        with nothing_imported():
            suite = ctx.meta[_SUITE] = load_suite(value, to_run=False)
        ctx.meta.setdefault(_STORE, {})["named"] = suite.store
    return value


def _note_trust(ctx: click.Context, param: click.Parameter, value: bool) -> None:
    if value:
        ctx.meta.setdefault(_STORE, {})["trusted"] = True


def suite_option(
    *, expose: bool = False, help: str = "For a run in a database: the suite that names its store."
) -> Callable[[F], F]:
    """`--suite FILE`: the suite whose store holds the run, if the run folder does not."""
    return click.option(
        "--suite",
        "suite_file",
        type=PathParam(),
        metavar="FILE",
        is_eager=True,
        callback=_note_suite,
        expose_value=expose,
        help=help,
    )


def _trust_option(help: str) -> Callable[[F], F]:
    return click.option("--trust-run", is_flag=True, is_eager=True, callback=_note_trust, expose_value=False, help=help)


trust_all: Callable[[F], F] = _trust_option(
    "Use the code, addresses and variables that the run names, even if you did not make it."
)
_RESUME_OPTIONS = (suite_option(help="The suite that RUN was made with; its systems are called."), trust_all)
_STORE_OPTIONS = (suite_option(), _trust_option("Use the store address noted in the run folder."))


def resume_options(command: F) -> F:
    """Options of commands that call systems again: what to trust in a run that the user did not make."""
    for option in reversed(_RESUME_OPTIONS):
        command = option(command)
    return command


def trust_choice() -> Trust:
    """What `--suite` and `--trust-run` say about a run that is to be continued."""
    from evalwright.run.origin import Trust

    ctx = click.get_current_context()
    return Trust(ctx.meta.get(_SUITE), store_choice(ctx).get("trusted", False))
