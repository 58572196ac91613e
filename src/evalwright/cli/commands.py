"""The table of commands; the module of each is imported when it is called."""

from __future__ import annotations

import codecs
import os
import sys
from collections.abc import Sequence
from contextlib import suppress
from typing import Any, NoReturn

import click

from evalwright import __version__

__all__ = ["COMMANDS", "commands", "end_with_command", "exit_code_of"]

_ORIGINALS = "Commands of originals"
_SECTIONS: dict[str, dict[str, tuple[str, str]]] = {
    "Run suites": {
        "run": ("evalwright.cli.run:command", "Run every case on every variant and evaluate the answers."),
        "resume": ("evalwright.cli.resume:command", "Resume an interrupted run."),
        "retry": ("evalwright.cli.retry:command", "Run again the cells that ended in an error."),
        "re-evaluate": ("evalwright.cli.re_evaluate:command", "Re-evaluate stored traces; the system is not called."),
        "merge": ("evalwright.cli.merge:command", "Merge the shards of a run into one run."),
        "cache": ("evalwright.cli.cache:command", "Show or clear cached judge replies."),
    },
    "Look at runs": {
        "inspect": ("evalwright.cli.inspect:command", "Show traces and evaluator results of a run."),
        "view": ("evalwright.cli.view:command", "Look at runs in a browser."),
        "report": ("evalwright.cli.report:command", "Write a report of a run (Markdown, HTML, JSON, JUnit, …)."),
        "export": ("evalwright.cli.export:command", "Write a run as the result files of its original program."),
        "list": ("evalwright.cli.list:command", "List evaluators, targets, formats, … or stored runs."),
        "index": ("evalwright.cli.index:command", "Build the index that speeds up commands on a large run."),
    },
    "Compare and decide": {
        "compare": ("evalwright.cli.compare:command", "Compare two runs case by case, with confidence intervals."),
        "decide": (
            "evalwright.cli.decide:command",
            "Decide whether run B may replace run A.",
        ),
        "plan": (
            "evalwright.cli.plan:command",
            "Print how many cases it takes to show a difference.",
        ),
        "promote": ("evalwright.cli.promote:command", "Make a run the baseline for later comparisons."),
        "drift": ("evalwright.cli.drift:command", "Compare a run with the promoted baseline of its suite."),
        "audit": ("evalwright.cli.audit:command", "Measure which wrong answers a run's evaluators notice."),
        "calibrate": ("evalwright.cli.calibrate:command", "Measure how well a run's judges agree with human labels."),
    },
    "Write suites": {
        "init": ("evalwright.cli.init:command", "Create a small suite to start from."),
        "demo": ("evalwright.cli.demo:command", "Create the built-in example and run it."),
        "validate": ("evalwright.cli.validate:command", "Check suites and their datasets; run nothing."),
        "dataset": ("evalwright.cli.dataset:command", "Check cases as data: duplicates, leaks, balance."),
        "import": ("evalwright.cli.import_:command", "Import recorded conversations as a suite."),
        "convert": ("evalwright.cli.convert:command", "Convert a suite to another format."),
        "schema": ("evalwright.cli.schema:command", "Print the JSON Schema of a file, for editors."),
        "completion": ("evalwright.cli.completion:command", "Print the completion script of a shell."),
    },
    _ORIGINALS: {
        "install-commands": (
            "evalwright.cli.install_commands:command",
            "Install the originals' commands under their own names.",
        ),
    },
}
"""The commands under the headings of `--help`: where the code of each is, and one line about it."""

_OTHER_NAMES = {"retry-failed": "retry"}
"""Names of originals for commands of ours, which take the same arguments; `--help` does not list them."""

COMMANDS: dict[str, tuple[str, str]] = {name: row for section in _SECTIONS.values() for name, row in section.items()}


def commands() -> dict[str, str]:
    """Our commands with one line each, in the order of `--help`."""
    return {name: line for lines in _sections().values() for name, line in lines.items()}


def _sections() -> dict[str, dict[str, str]]:
    """The commands under each heading with one line each, the command lines of formats included.

    Those of plug-in formats are found by name only: to list them, all installed packages would have to be searched.
    """
    from evalwright import registry

    sections = {heading: {name: line for name, (_, line) in rows.items()} for heading, rows in _SECTIONS.items()}
    of_formats = {name: f"The command line of {program}." for name, program in registry.WITH_COMMAND.items()}
    return sections | {_ORIGINALS: of_formats | sections[_ORIGINALS]}


class _Commands(click.Group):
    """The commands by name with one line each; the module of a command is imported when it is called."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return [*commands()]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        from evalwright.registry import WITH_COMMAND, format_of, package_of, resolve

        ref: Any = None
        if (name := _OTHER_NAMES.get(cmd_name, cmd_name)) in COMMANDS:
            ref = COMMANDS[name][0]
        elif name in WITH_COMMAND or package_of("formats", name):
            ref = format_of(name).command
        loaded: click.Command | None = None if ref is None else resolve(ref)
        if loaded is not None and loaded.help is None:  # `python -OO` leaves no docstrings
            loaded.help = commands().get(name)
        return loaded

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        name = args[0]
        if not name.startswith("-") and self.get_command(ctx, name) is None:
            from evalwright.errors import did_you_mean

            ctx.fail(f"no command {name!r}{did_you_mean(name, commands())} (evalwright --help lists them)")
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        sections = _sections()
        widest = max(len(name) for lines in sections.values() for name in lines)
        for heading, lines in sections.items():
            with formatter.section(heading):
                formatter.write_dl([(name.ljust(widest), line) for name, line in lines.items()])


@click.group(
    cls=_Commands,
    epilog="`evalwright COMMAND --help` explains a command. Start with `evalwright demo`.",
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.version_option(__version__, prog_name="evalwright", message="%(prog)s %(version)s")
def _evalwright() -> None:
    """Test LLM agents: run every case, keep every trace, re-evaluate at any time.

    \b
    Exit codes:
      0    every cell passed or was skipped, or the suite's gate passed
      1    some cell did not pass, or the gate did not
      2    wrong usage or input
      3    some cell has no verdict because of errors
      4    internal error
      5    a record could not be stored
      130  interrupted; continue with `resume`
    """
    try:
        os.getcwd()  # noqa: PTH109 - pathlib may not be loaded yet
    except FileNotFoundError:
        from evalwright.errors import InputError

        raise InputError("the working directory no longer exists; change to another folder") from None


def exit_code_of(command: click.Command, arguments: Sequence[str]) -> int:
    """Run a command. The exit code is what it returns, or stands for what it raises."""
    if _is_question(arguments):
        return _exit_code_of(command, arguments)
    from evalwright.session import Session
    from evalwright.session.signals import as_ctrl_c

    # The process is ours until the last message is out; what we print ourselves must not be captured as a suite's.
    with Session(owns_process=True, stdout="keep"), as_ctrl_c():
        return _exit_code_of(command, arguments)


_THAT_READ = ("calibrate", "compare", "decide", "drift", "export", "inspect", "plan", "report")
"""Commands that may be begun again, as they call neither systems nor models."""


def _is_question(arguments: Sequence[str]) -> bool:
    """Whether the arguments ask for help or the version and for nothing else.

    Nothing then needs a session, which takes as long to create as our part of the help. After more than one word,
    `--help` may be the value of an option.
    """
    return not arguments or (len(arguments) <= 2 and arguments[-1] in ("-h", "--help")) or [*arguments] == ["--version"]


def _exit_code_of(command: click.Command, arguments: Sequence[str], *, again: bool = False) -> int:
    try:
        code = command.main([*arguments], prog_name="evalwright", standalone_mode=False)
        return code or 0
    except click.exceptions.Exit as ending:
        return ending.exit_code
    except (Exception, KeyboardInterrupt) as error:
        from evalwright.cli.exits import code_after, is_of_index

        name = arguments[0] if arguments else ""
        if name in _THAT_READ and not again and is_of_index(error):
            return _exit_code_of(command, arguments, again=True)
        return code_after(error, arguments)


_AS_JSON = "evalwright.json"


def _escape_character(error: UnicodeError) -> tuple[str, int]:
    """Characters that the encoding of a stream lacks, as in JSON: Python's own `\\xe9` would make ours invalid."""
    import json

    assert isinstance(error, UnicodeEncodeError)
    return json.dumps(error.object[error.start : error.end])[1:-1], error.end


def end_with_command(arguments: Sequence[str] | None) -> NoReturn:
    """Run the command line, that of the process if None, and exit with its code."""
    if None in (sys.stdin, sys.stdout, sys.stderr):
        from evalwright.session.streams import open_closed_streams

        open_closed_streams()
    codecs.register_error(_AS_JSON, _escape_character)
    for stream in (sys.stdout, sys.stderr):
        if reconfigure := getattr(stream, "reconfigure", None):
            reconfigure(errors=_AS_JSON)
    words = sys.argv[1:] if arguments is None else [*arguments]  # once imported, `list` is a module here
    if arguments is not None:  # the process is the caller's and goes on
        sys.exit(exit_code_of(_evalwright, words))
    if _is_question(words):  # no session
        import gc

        code = exit_code_of(_evalwright, words)
        gc.freeze()  # none of the objects are users': the interpreter need not search for garbage at its end
        sys.exit(code)
    from evalwright.errors import Interrupted
    from evalwright.session.process import end_without_search, only_ours
    from evalwright.session.signals import INTERRUPTED, Ending

    only_ours()
    ending = Ending()
    try:
        ending.code = code = exit_code_of(_evalwright, words)
    except (KeyboardInterrupt, Interrupted):  # raised after the last block that handles signals, before the line above
        code = INTERRUPTED
    except Exception as lost:  # nothing can even be imported to say why, as after users' code that emptied `sys.path`
        print(f"Internal error: {type(lost).__name__}: {lost}", file=sys.stderr)
        code = 4  # not Python's own 1, which would say that some cell did not pass
    with suppress(Exception):  # the same modules; without them the end only takes longer
        end_without_search()
    ending.wait_briefly(code)
    sys.exit(code)
