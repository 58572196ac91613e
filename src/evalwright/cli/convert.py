"""`evalwright convert`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from evalwright.cli.options import SuiteCommand, dialect, suite_argument
from evalwright.registry import formats

__all__ = ["command"]


@click.command("convert", cls=SuiteCommand, short_help="Write a suite anew in another format.")
@suite_argument()
@click.option(
    "--to",
    type=click.Choice([one.name for one in formats() if one.write is not None]),
    help="The format to write; without it native, or the other form of files that have two.",
)
@click.option("--out", type=click.Path(path_type=Path), metavar="PATH", help="The new file, or the folder for several.")
@click.option("--allow-loss", is_flag=True, help="Write it even if it does not say all that PATH says.")
@dialect
def command(
    path: Path,
    to: str | None,
    out: Path | None,
    allow_loss: bool,
    dialect: str | None,
    **of_format: Any,
) -> int:
    """Write the suite at PATH anew in another format, or AgentEvals cases as JSON Lines or YAML.

    What the new files would not say is listed, one line each, and then nothing is written without --allow-loss; keys
    without effect are listed and left out.
    No file is ever written over.
    """
    from evalwright.cli.screen import say, tell
    from evalwright.convert.conversion import convert
    from evalwright.reports.text import harmless

    done = convert(path, to, out, dialect=dialect, allow_loss=allow_loss, options=of_format)
    tell(f"lost: {loss}" for loss in done.losses)
    tell(f"left out: {key}" for key in done.left_out)
    tell(f"note: {note}" for note in done.notes)
    say(f"wrote {harmless(str(file))}" for file in done.files)
    return 0
