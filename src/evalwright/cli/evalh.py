"""`evalwright evalh`: the command line of evalh."""

from __future__ import annotations

import click

from evalwright.cli.commands import COMMANDS
from evalwright.cli.exits import OriginalCommands
from evalwright.formats.native import FORMAT
from evalwright.registry import resolve

__all__ = ["command"]

_OURS = {
    "run": "run",
    "retry-failed": "retry",
    "re-evaluate": "re-evaluate",
    "inspect": "inspect",
    "compare": "compare",
    "promote": "promote",
    "drift": "drift",
}
"""Its commands, and the names of ours that take their arguments."""
_AS_THERE = {
    "run": {"dialect": FORMAT.original, "exit_zero": True},
    "retry-failed": {"exit_zero": True},
    "re-evaluate": {"exit_zero": True},
}
"""Options that make ours do as evalh does, whose commands exit with 0 whatever the verdicts."""


class _Commands(OriginalCommands):
    """Our commands; the module of each is imported when it is called."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return [*_OURS]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        found: click.Command | None = resolve(COMMANDS[_OURS[cmd_name]][0]) if cmd_name in _OURS else None
        return found

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, COMMANDS[ours][1]) for name, ours in _OURS.items()])


@click.group(FORMAT.original, cls=_Commands, context_settings={"default_map": _AS_THERE})
def command() -> None:
    """Run suites by the rules of evalh, with its arguments and exit codes.

    Exit codes: 0 done, whatever the verdicts; 1 a file cannot be used, or a regression where that is asked for; 2 wrong
    usage; 130 interrupted. Damaged records still end a command with the code that it has in evalwright.
    """
