"""`evalwright index`."""

from __future__ import annotations

from pathlib import Path

import click

from evalwright.cli.stored_runs import run_argument, store_options
from evalwright.cli.usage import Command
from evalwright.errors import InputError, counted

__all__ = ["command"]


@click.command("index", cls=Command)
@run_argument()
@store_options
def command(run: Path) -> int:
    """Build or update the index of RUN and print its size.

    Commands that read a large run build it themselves. An index is derived from the records: deleting `index.sqlite` is
    safe at any time. It is in the run folder, beside a SQLite file, or in the user's cache.
    """
    import time
    from contextlib import closing

    from evalwright.cli.screen import print_out
    from evalwright.run.stored_run import open_run
    from evalwright.stores.local_files.reader import LocalReader
    from evalwright.stores.tables.run import TableReader

    reader, _ = open_run(run)
    with closing(reader):
        if not isinstance(reader, (LocalReader, TableReader)):
            raise InputError(f"{reader.location}: a store of another package, whose runs have no index")
        started = time.monotonic()
        index = reader.index("to_keep")
        if index is None:
            raise InputError(
                f"no index of {reader.location} can be built now: another process builds it, lines cannot be read, "
                "or records contradict each other; `evalwright inspect` reads the records, and lists unreadable lines"
            )
        with closing(index):
            cells, path = len(index), index.path
        took = time.monotonic() - started
        where = "nowhere that can be written" if path is None else f"{path}, {path.stat().st_size / 1e6:,.1f} MB"
        print_out([f"{counted(cells, 'cell')} in {took:.1f} s: {where}"])
    return 0
