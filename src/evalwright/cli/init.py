"""`evalwright init`."""

from __future__ import annotations

from pathlib import Path

import click

from evalwright.cli.values import PathParam

__all__ = ["command"]

_FILES = ("eval.yaml", "cases.yaml", "agent.py")


@click.command("init")
@click.argument("folder", type=PathParam(file_okay=False), metavar="[DIR]", default=Path())
def command(folder: Path) -> int:
    """Create eval.yaml, cases.yaml and agent.py in DIR (default: here), with comments and ready to run."""
    import shlex
    from contextlib import suppress
    from importlib.resources import files

    from evalwright.cli.screen import say
    from evalwright.errors import InputError, Problem, StorageError
    from evalwright.files.durable import replace_file, storage_error
    from evalwright.reports.text import harmless

    # All are checked before the first is written: the next attempt would be rejected because of half a suite.
    present = [Problem(str(folder / name), "already exists") for name in _FILES if (folder / name).exists()]
    if present:
        raise InputError(present, "existing files are never overwritten; choose another folder")
    is_new = not folder.exists()
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise storage_error("create", folder, error) from error
    starter, written = files("evalwright.cli") / "starter", list[Path]()
    try:
        for name in _FILES:
            replace_file(folder / name, (starter / name).read_bytes())
            written.append(folder / name)
    except StorageError:
        for path in written:
            path.unlink()
        with suppress(OSError):
            if is_new:
                folder.rmdir()
        raise
    say([f"wrote {harmless(str(path))}" for path in written])
    say(["", f"Next: evalwright run {harmless(shlex.quote(str(folder / _FILES[0])))}"])
    return 0
