"""`evalwright promote`."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import click

from evalwright.cli.options import run_argument

__all__ = ["command"]


@click.command("promote", short_help="Make a run the baseline that later ones are held against.")
@run_argument()
@click.option("--eval-name", metavar="NAME", help="The name of the eval, instead of the run's own.")
@click.option("--runs-root", type=click.Path(path_type=Path), metavar="DIR", help="The folder that holds `baselines`.")
def command(run: Path, eval_name: str | None, runs_root: Path | None) -> int:
    """Make RUN the baseline of its eval; `evalwright drift` compares other runs with it."""
    from evalwright.cli.screen import say
    from evalwright.reports.text import harmless
    from evalwright.run.baselines import promote
    from evalwright.run.start import open_run

    reader, plan = open_run(run)
    with closing(reader):
        link = promote(Path(reader.location), eval_name or plan.name, runs_root)
    say([harmless(f"promoted {plan.run_id}: {link}")])
    return 0
