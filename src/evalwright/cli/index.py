"""`evalwright index`."""

from __future__ import annotations

from pathlib import Path

import click

from evalwright.cli.options import run_argument, store_options

__all__ = ["command"]


@click.command("index")
@run_argument()
@store_options
def command(run: Path) -> int:
    """Build or update the index of RUN and print its size.

    Commands that read a run of 20,000 cells and more do so by themselves. An index is derived from the records:
    deleting `index.sqlite` is safe at any time.
    """
    import time
    from contextlib import closing

    from evalwright.cli.screen import say
    from evalwright.errors import InputError, counted
    from evalwright.run.stored_run import open_run
    from evalwright.stores.index import INDEX
    from evalwright.stores.local_files.run import LocalReader

    reader, _ = open_run(run)
    with closing(reader):
        if not isinstance(reader, LocalReader):
            raise InputError(f"{reader.location}: only runs in folders have an index")
        started = time.monotonic()
        index = reader.index(keep=True)
        if index is None:
            raise InputError(
                f"{reader.location} can have no index now: another process makes it, lines cannot be read, or records "
                "contradict each other; `evalwright inspect` reads the records, and lists lines that it cannot read"
            )
        with closing(index):
            cells = len(index)
        took = time.monotonic() - started
        path = reader.folder / INDEX
        where = f"{path}, {path.stat().st_size / 1e6:,.1f} MB" if path.exists() else "not in the run folder"
        say([f"{counted(cells, 'cell')} in {took:.1f} s: {where}"])
    return 0
