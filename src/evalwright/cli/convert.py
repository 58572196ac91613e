"""`evalwright convert`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from evalwright.cli.options import SuiteCommand, dialect, suite_argument
from evalwright.cli.usage import PathParam
from evalwright.registry import formats

__all__ = ["command"]


@click.command("convert", cls=SuiteCommand)
@suite_argument()
@click.option(
    "--to",
    type=click.Choice([suite_format.name for suite_format in formats() if suite_format.write is not None]),
    help="The format to write (default: native, or the other form of files that have two).",
)
@click.option("--out", type=PathParam(), metavar="PATH", help="The new file, or the folder for several.")
@click.option("--allow-loss", is_flag=True, help="Convert even if some settings cannot be expressed.")
@dialect
def command(
    path: Path,
    to: str | None,
    out: Path | None,
    allow_loss: bool,
    dialect: str | None,
    **of_format: Any,
) -> int:
    """Convert the suite at PATH to another format, or AgentV cases to JSON Lines or YAML.

    Settings that cannot be expressed are listed; without --allow-loss nothing is written then. Keys without effect are
    listed and left out. Existing files are never overwritten.
    """
    from evalwright.cli.screen import print_err, print_out
    from evalwright.convert.conversion import convert
    from evalwright.reports.text import harmless
    from evalwright.session.imports import nothing_imported

    with nothing_imported():
        done = convert(path, to, out, dialect=dialect, allow_loss=allow_loss, options=of_format)
    print_err(f"lost: {loss}" for loss in done.losses)
    print_err(f"left out: {key}" for key in done.left_out)
    print_err(f"note: {note}" for note in done.notes)
    print_out(f"wrote {harmless(str(file))}" for file in done.files)
    return 0
