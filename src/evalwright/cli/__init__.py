"""The `evalwright` command: a table of commands, each a module of its own that is loaded when it is called."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib import import_module
from typing import NoReturn

import click

from evalwright import __version__

__all__ = ["COMMANDS", "main", "start"]

COMMANDS: dict[str, tuple[str, str]] = {
    "run": ("evalwright.cli.run:command", "Run a suite: every case with every variant."),
    "resume": ("evalwright.cli.resume:command", "Go on with a run that was interrupted."),
    "retry": ("evalwright.cli.retry:command", "Run the cells of a run again that had an error."),
    "re-evaluate": ("evalwright.cli.re_evaluate:command", "Judge stored traces again without calling the system."),
    "compare": ("evalwright.cli.compare:command", "Compare two runs: what got better, what got worse, how sure."),
    "promote": ("evalwright.cli.promote:command", "Make a run the baseline that later ones are held against."),
    "drift": ("evalwright.cli.drift:command", "Compare a run with the promoted baseline of its eval."),
    "calibrate": ("evalwright.cli.calibrate:command", "Measure the judges of a run by what people say."),
    "cache": ("evalwright.cli.cache:command", "Show or clear the replies of judges that are kept."),
    "inspect": ("evalwright.cli.inspect:command", "Show the traces of a run and what the evaluators said."),
    "report": ("evalwright.cli.report:command", "Write a report of a run: Markdown or JSON."),
    "validate": ("evalwright.cli.validate:command", "Check a suite and its dataset without running anything."),
    "list": ("evalwright.cli.list:command", "List evaluators, targets, formats, ... or stored runs."),
    "import": ("evalwright.cli.import_:command", "Make a suite of recorded conversations."),
    "convert": ("evalwright.cli.convert:command", "Write a suite anew in another format."),
    "pixie": ("evalwright.cli.pixie:command", "Run, make and check datasets of instrumented applications."),
    "demo": ("evalwright.cli.demo:command", "Write the built-in example to a folder and run it."),
    "init": ("evalwright.cli.init:command", "Write a small suite to start from."),
}


class _Commands(click.Group):
    """Knows every command by name and one line; imports a command's module when it is called."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return [*COMMANDS]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        module, _, attribute = COMMANDS[cmd_name][0].partition(":")
        loaded: click.Command = getattr(import_module(module), attribute)
        return loaded

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        name = args[0]
        if name not in COMMANDS and not name.startswith("-"):
            from evalwright.errors import did_you_mean

            ctx.fail(f"no command {name!r}{did_you_mean(name, COMMANDS)} (evalwright --help lists them)")
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, line) for name, (_, line) in COMMANDS.items()])


@click.group(
    cls=_Commands,
    epilog="`evalwright COMMAND --help` explains a command. Start with `evalwright demo`.",
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.version_option(__version__, prog_name="evalwright", message="%(prog)s %(version)s")
def _evalwright() -> None:
    """Run evaluations of LLM agents, keep every trace, judge again at any time.

    \b
    Exit codes: 0 every cell passed or was skipped, 1 some did not pass, 2 usage or input,
    3 some cell has no verdict because of errors, 4 internal error, 5 storage, 130 interrupted.
    """


def main(arguments: Sequence[str] | None = None) -> NoReturn:
    """Run the command line and exit with its code."""
    start(_evalwright, "evalwright", arguments)


def start(
    command: click.Command, program: str, arguments: Sequence[str] | None = None, *, refused: int = 2
) -> NoReturn:
    """Run a command line and exit with its code, with `refused` for input that cannot be used."""
    from evalwright.cli.exits import exit_code_of

    for stream in (sys.stdout, sys.stderr):
        if reconfigure := getattr(stream, "reconfigure", None):
            reconfigure(errors="backslashreplace")
    given = sys.argv[1:] if arguments is None else [*arguments]  # `list` is a module here, once it is loaded
    sys.exit(exit_code_of(command, given, program, refused))
