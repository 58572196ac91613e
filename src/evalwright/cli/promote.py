"""`evalwright promote`."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import click

from evalwright.cli.stored_runs import run_argument, store_options
from evalwright.cli.usage import Command, PathParam
from evalwright.errors import InputError, counted

__all__ = ["command"]


@click.command("promote", cls=Command)
@run_argument()
@store_options
@click.option("--as-baseline", is_flag=True, expose_value=False, help="Accepted for evalh: promote always does this.")
@click.option("--eval-name", metavar="NAME", help="Name of the suite (default: the one in RUN).")
@click.option(
    "--runs-root", type=PathParam(), metavar="DIR", help="Folder that contains `baselines` (default: that of RUN)."
)
def command(run: Path, eval_name: str | None, runs_root: Path | None) -> int:
    """Make RUN the baseline of its suite; `evalwright drift` compares later runs with it.

    If records of RUN cannot be read, it is promoted and the exit code is 3.
    """
    from evalwright.cli.screen import print_damage, print_out, warn
    from evalwright.reports.text import harmless
    from evalwright.run.baselines import promote
    from evalwright.run.outcomes import folded_summary
    from evalwright.run.stored_run import open_run

    reader, plan = open_run(run)
    with closing(reader):
        if plan.shard is not None:
            raise InputError(f"{run} is {plan.shard}: `evalwright merge` makes the run that can be promoted")
        summary = folded_summary(reader, plan)
        link = promote(Path(reader.location), eval_name or plan.name, runs_root)
        damaged = print_damage(reader)
    if unjudged := summary.cells_missing + sum(variant.cells.get("error", 0) for variant in summary.variants):
        of = f"{unjudged:,} of {counted(summary.cells_total + summary.cells_missing, 'cell')} without a verdict"
        warn([f"{plan.run_id} has {of}: later runs are not compared with these"])
    print_out([harmless(f"promoted {plan.run_id}: {link}")])
    return damaged
