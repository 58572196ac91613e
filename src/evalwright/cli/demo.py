"""`evalwright demo`."""

from __future__ import annotations

from pathlib import Path

import click

from evalwright.cli.usage import Command, PathParam
from evalwright.errors import InputError

__all__ = ["command", "write_example"]


@click.command("demo", cls=Command)
@click.option(
    "--out",
    type=PathParam(file_okay=False),
    metavar="DIR",
    default=Path("evalwright-demo"),
    show_default=True,
    help="Folder for the example.",
)
def command(out: Path) -> int:
    """Create a small suite with a simulated agent in DIR and run it; nothing leaves this machine."""
    from contextlib import chdir

    from evalwright.cli.outcome import present, watch_of
    from evalwright.cli.screen import print_out
    from evalwright.formats.loading import load_suite
    from evalwright.reports.text import harmless
    from evalwright.run.options import RunOptions
    from evalwright.run.start import run_suite

    path = write_example(out)
    print_out([f"The example is in {harmless(str(path.parent))}. This is the output of `evalwright run`:", ""])
    with chdir(path.parent):  # files of the same names in the working directory would take precedence
        here = Path.cwd()
        outcome = run_suite(load_suite(here / path.name), RunOptions(out=here / "runs"), watch_of(False))
    present(outcome, as_json=False, quiet=False)
    return 0  # the demo shows failing cells on purpose; `evalwright run` exits with 1 for them


def write_example(folder: Path) -> Path:
    """Copy the example into a folder and return its `eval.yaml`; an example that is there stays as it is.

    Raises StorageError if it cannot be written, and InputError if the folder has files of the user's with these names:
    the command would run those, and call them the example.
    """
    from evalwright.cli.new_files import in_the_way, write_together
    from evalwright.demo import contents

    example = contents()
    obstacle = in_the_way(folder, example)
    if obstacle and len(obstacle) < len(example):
        raise InputError(f"{folder} has {', '.join(obstacle)} already: choose another folder with --out DIR")
    if not obstacle:
        write_together(folder, example)
    return folder / "eval.yaml"
