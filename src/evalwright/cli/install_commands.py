"""`evalwright install-commands`."""

from __future__ import annotations

from pathlib import Path

import click

from evalwright.cli.usage import Command, PathParam
from evalwright.errors import InputError, Problem, did_you_mean

__all__ = ["command"]

_MARK = "# Made by evalwright install-commands"
_SCRIPT = """\
#!{python}
{mark}: `evalwright {format}` under the original's name. `--remove` takes it away again.
import sys

from evalwright.cli import main

sys.argv[1:1] = ["{format}"]
main()
"""


@click.command("install-commands", cls=Command)
@click.argument("names", nargs=-1, metavar="[NAME]...")
@click.option(
    "--into",
    type=PathParam(file_okay=False),
    metavar="DIR",
    help="Folder for the scripts (default: that of the command evalwright).",
)
@click.option("--remove", is_flag=True, help="Remove the scripts that this command made.")
def command(names: tuple[str, ...], into: Path | None, remove: bool) -> int:
    """Install the originals' commands NAME (default: all) as scripts that start ours; no file is overwritten.

    They go beside the command evalwright, or into DIR. Without this, evalwright installs no command but its own.
    """
    import sysconfig

    from evalwright.cli.screen import print_out
    from evalwright.reports.text import harmless

    known = _originals()
    problems = [
        Problem("", f"no command {name!r}{did_you_mean(name, known)} (there are: {', '.join(known)})")
        for name in names
        if name not in known
    ]
    if problems:
        raise InputError(problems)
    folder = into or Path(sysconfig.get_path("scripts"))
    wanted = {name: folder / name for name in names or known}
    if remove:
        for path in wanted.values():
            if _is_ours(path):
                path.unlink()
                print_out([f"removed {harmless(str(path))}"])
        return 0
    foreign = [path for path in wanted.values() if path.exists() and not _is_ours(path)]
    if foreign:
        raise InputError(
            [Problem(str(path), "already exists and was not written by evalwright") for path in foreign],
            "commands of originals are never overwritten; choose another folder with --into DIR",
        )
    for name, path in wanted.items():
        _write(path, known[name])
        print_out([harmless(f"{path}  evalwright {known[name]}{_shadowing_note(name, path)}")])
    return 0


def _originals() -> dict[str, str]:
    """The originals' commands, and the formats whose command lines replace them."""
    from evalwright.registry import WITH_COMMAND, format_of

    return {original: name for name in WITH_COMMAND if (original := format_of(name).stands_for)}


def _is_ours(path: Path) -> bool:
    try:
        return _MARK in path.read_text("utf-8", "replace")[:1000]
    except OSError:
        return False


def _write(path: Path, name: str) -> None:
    import sys

    from evalwright.files.durable import replace_file, storage_error

    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        replace_file(path, _SCRIPT.format(python=sys.executable, mark=_MARK, format=name).encode())
        path.chmod(0o755)
    except OSError as error:
        raise storage_error("create", path, error) from error


def _shadowing_note(name: str, path: Path) -> str:
    """A note if another command of the same name comes first on PATH, else empty."""
    import shutil

    first = shutil.which(name)
    return f"  ({first} comes first on PATH)" if first and Path(first).resolve() != path.resolve() else ""
