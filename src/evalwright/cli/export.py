"""`evalwright export`."""

from __future__ import annotations

from pathlib import Path

import click

from evalwright.cli.stored_runs import run_argument, store_options
from evalwright.cli.usage import Command, PathParam
from evalwright.registry import formats

__all__ = ["command"]


@click.command("export", cls=Command)
@run_argument()
@store_options
@click.option(
    "--format",
    "form",
    type=click.Choice([suite_format.name for suite_format in formats() if suite_format.exports]),
    help="The program whose result files to write (default: that of the run's suite).",
)
@click.option(
    "--out", type=PathParam(), metavar="DIR", help="New folder for the files (default: a folder FORMAT in RUN)."
)
def command(run: Path, form: str | None, out: Path | None) -> int:
    """Write the run in folder RUN as the result files of the program that its suite was written for.

    Runs of any suite can be written for agentv and promptfoo; the other programs' files are for runs of their own
    suites. The run folder of an eval.yaml is what evalh writes and needs no export. Nothing is overwritten, and a
    warning names what a file cannot hold. The last line of the output is the folder. The exit code is 3 if records
    cannot be read.
    """
    from evalwright.cli.screen import print_err, print_out, screen_masker, warn
    from evalwright.reports.text import harmless
    from evalwright.run.export import export_run

    done = export_run(run, form, out, screen_masker().mask_text)
    warn(done.warnings)
    print_err(done.damage)
    print_out([harmless(str(done.folder))])
    return 0 if done.complete else 3
