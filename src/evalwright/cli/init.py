"""`evalwright init`."""

from __future__ import annotations

from pathlib import Path

import click

from evalwright.cli.usage import Command, PathParam
from evalwright.errors import InputError, Problem

__all__ = ["command"]

_FILES = ("eval.yaml", "cases.yaml", "agent.py")


@click.command("init", cls=Command)
@click.argument("folder", type=PathParam(file_okay=False), metavar="[DIR]", default=Path())
def command(folder: Path) -> int:
    """Create eval.yaml, cases.yaml and agent.py in DIR (default: here), with comments and ready to run."""
    import shlex
    from importlib.resources import files

    from evalwright.cli.new_files import in_the_way, write_together
    from evalwright.cli.screen import print_out
    from evalwright.reports.text import harmless

    starter = files("evalwright.cli") / "starter"
    contents = {name: (starter / name).read_bytes() for name in _FILES}
    present = [Problem(str(folder / name), "already exists") for name in in_the_way(folder, contents)]
    if present:
        raise InputError(present, "existing files are never overwritten; choose another folder")
    written = write_together(folder, contents)
    print_out([f"wrote {harmless(str(path))}" for path in written])
    print_out(["", f"Next: evalwright run {harmless(shlex.quote(str(folder / _FILES[0])))}"])
    return 0
