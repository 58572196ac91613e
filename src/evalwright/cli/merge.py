"""`evalwright merge`."""

from __future__ import annotations

from pathlib import Path

import click

from evalwright.cli.options import as_json, quiet
from evalwright.cli.stored_runs import store_choice, store_options
from evalwright.cli.usage import Command, PathParam, WholeRange

__all__ = ["command"]


@click.command("merge", cls=Command)
@click.argument("runs", nargs=-1, required=True, type=PathParam(str), metavar="RUN...")
@store_options
@click.option(
    "--out", type=PathParam(), metavar="DIR", help="Folder in which the run folder is created (default: runs)."
)
@click.option("--partial", is_flag=True, help="Merge what is there; `resume` runs the cells that are missing.")
@click.option(
    "--watch",
    is_flag=True,
    help="Wait until all shards are finished; RUN may be a folder in which they will appear.",
)
@click.option(
    "--of",
    type=WholeRange(min=1),
    metavar="N",
    help="With --watch: how many shards there are.",
)
@as_json
@quiet
def command(
    runs: tuple[str, ...], out: Path | None, partial: bool, watch: bool, of: int | None, as_json: bool, quiet: bool
) -> int:
    """Merge the shards RUN of `evalwright run --shard` into one run and decide its gate.

    A RUN is a run folder, a glob of them ('out/*'), a run in SQLite or PostgreSQL. The last line of the output is the
    merged run's folder, and the exit code is that of its gate, as for a run on one machine.
    """
    if partial and watch:
        raise click.UsageError("--partial merges what is there, and --watch waits for the rest: choose one")
    if of is not None and not watch:
        raise click.UsageError("--of says how many shards --watch waits for: add --watch")
    from evalwright.cli.outcome import present
    from evalwright.run.merge import merge
    from evalwright.run.named_runs import named_runs

    if watch:
        from evalwright.run.shard_watch import finished_shards

        print_out = (lambda text: None) if quiet else (lambda text: click.echo(text, err=True))
        runs = tuple(map(str, finished_shards(runs, of, report=print_out)))
    places = named_runs(runs, **store_choice(click.get_current_context()))
    outcome = merge(places, out, partial=partial)
    return present(outcome, as_json=as_json, quiet=quiet)
