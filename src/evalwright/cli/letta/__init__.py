"""`evalwright letta`: the command line of letta-evals for its suites."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from evalwright import __version__
from evalwright.cli.exits import OriginalCommands
from evalwright.cli.options import format_option
from evalwright.cli.usage import PathParam, WholeRange
from evalwright.errors import InputError
from evalwright.formats.letta import FORMAT
from evalwright.registry import names

if TYPE_CHECKING:
    from evalwright.run.outcomes import Outcome

__all__ = ["command"]

_DISPLAYS = ("rich", "simple", "none")
_FOLDER = PathParam()
_OF_READING = ("--strict", "--strict-rubric", "--allow-empty", "--allow-outside")
"""Options of the format that the original's command does not have; they decide what is rejected."""

F = TypeVar("F", bound=Callable[..., Any])


@click.group(FORMAT.name, cls=OriginalCommands)
@click.version_option(__version__, message="%(prog)s %(version)s")
def command() -> None:
    """Run and check suites of Letta Evals as `letta-evals` does; `evalwright run` has more options for them.

    Exit codes: 0 the gate passed, 1 it did not or the suite cannot be used, 2 wrong usage, 3 it was not measured or
    samples had errors, 130 interrupted.
    """


def _ours(*flags: str) -> Callable[[F], F]:
    """The options of the format with these flags."""

    def added(function: F) -> F:
        for option in FORMAT.options:
            if option.flags[0] in flags:
                function = format_option(option)(function)
        return function

    return added


def _ignored_option(name: str) -> Callable[[Callable[..., int]], Callable[..., int]]:
    return click.option(name, expose_value=False, help="Accepted and ignored: no Letta server is used.")


@command.command("run")
@click.argument("suite", type=_FOLDER)
@click.option("--output", "-o", type=_FOLDER, metavar="DIR", help="Folder for the result files.")
@click.option("--quiet", "-q", is_flag=True, help="Print the verdict only.")
@click.option("--display", default="rich", metavar="STYLE", help=f"One of {', '.join(_DISPLAYS)}.")
@click.option(
    "--max-concurrent",
    type=WholeRange(min=1),
    metavar="N",
    help="At most N samples at the same time (default: the suite's, else 15).",
)
@click.option("--cached", "-c", type=_FOLDER, metavar="DIR", help="Replay recorded results.")
@click.option(
    "--num-runs", type=WholeRange(min=1), metavar="N", help="Run the suite N times (default: the suite's, else 1)."
)
@click.option("--model-handle", metavar="MODEL", help="Use this model instead of those of the suite.")
@_ours("--target", "--max-error-rate", *_OF_READING)
@_ignored_option("--api-key")
@_ignored_option("--base-url")
@_ignored_option("--project-id")
def _run(
    suite: Path,
    output: Path | None,
    quiet: bool,
    display: str,
    max_concurrent: int | None,
    cached: Path | None,
    num_runs: int | None,
    model_handle: str | None,
    **ours: Any,
) -> int:
    """Run SUITE and report whether its gate passed."""
    from evalwright.cli.outcome import present, watch_of
    from evalwright.cli.screen import print_out
    from evalwright.formats.loading import load_suite
    from evalwright.run.options import RunOptions
    from evalwright.run.start import run_suite

    if display not in _DISPLAYS:
        raise InputError(f"--display: expected one of {', '.join(_DISPLAYS)}, found {display!r}")
    options = {"output": output, "cached": cached, "trials": num_runs, "model_handle": model_handle, **ours}
    loaded = load_suite(suite, FORMAT.name, options=options)
    silent = quiet or display == "none"
    watch = watch_of(silent)
    how = RunOptions(trials=num_runs, concurrency=max_concurrent, allow_empty=ours["allow_empty"])
    outcome = run_suite(loaded, how, watch)
    if not silent:
        present(outcome, as_json=False, quiet=False)
    if display != "none" or quiet:
        print_out([_verdict(outcome)])
    return outcome.exit_code


def _verdict(outcome: Outcome) -> str:
    """The original's words; it has none for a run that was interrupted, or in which nothing was measured."""
    if outcome.interrupted:
        return "! INTERRUPTED"
    gate = outcome.summary.gate
    if gate is not None and gate.undecided:
        return "! NOT MEASURED"
    if outcome.exit_code == 3:
        return "! PASSED, WITH ERRORS"
    return "✓ PASSED" if outcome.exit_code == 0 else "✗ FAILED"


@command.command("validate")
@click.argument("suite", type=_FOLDER)
@_ours(*_OF_READING)
def _validate(suite: Path, **ours: Any) -> int:
    """Check SUITE and its dataset without running anything."""
    from evalwright.cli.screen import print_out, warn
    from evalwright.cli.validate import loaded_to_check
    from evalwright.session.imports import nothing_imported

    with nothing_imported():
        loaded, absent = loaded_to_check(suite, FORMAT.name, options=ours)
        samples = sum(1 for _ in loaded.cases)
    warn([*absent, *loaded.warnings])
    shown = loaded.document
    graders = shown.get("graders") or {"default": shown.get("grader", {})}
    named = ", ".join(f"{raw.get('display_name') or key}: {raw.get('kind')}" for key, raw in graders.items())
    rule = shown.get("gate") or shown.get("reward") or {}
    print_out(
        [
            f"{loaded.name}: valid",
            f"  dataset  {shown['dataset']}, {samples:,} samples",
            f"  target   {shown['target'].get('kind')}",
            f"  graders  {named}",
            f"  {'gate' if 'gate' in shown else 'reward':8} {', '.join(f'{k} {v}' for k, v in rule.items())}",
        ]
    )
    return 0


@command.command("list-extractors")
def _list_extractors() -> int:
    """List the extractors."""
    from evalwright.cli.screen import print_out

    print_out(name for name in names("extractors") if name != "python_extractor")
    return 0


@command.command("list-graders")
def _list_graders() -> int:
    """List the functions that graders of kind `tool` can use."""
    from evalwright.cli.screen import print_out
    from evalwright.formats.letta.graders import TOOL_GRADERS

    print_out(TOOL_GRADERS)
    return 0
