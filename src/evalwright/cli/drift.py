"""`evalwright drift`."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import click

from evalwright.cli.options import RunPath, run_argument, store_options

__all__ = ["command"]


@click.command("drift")
@run_argument()
@store_options
@click.option(
    "--baseline",
    type=RunPath(),
    metavar="RUN",
    help="Compare with RUN instead of the promoted baseline.",
)
@click.option("--runs-root", type=click.Path(path_type=Path), metavar="DIR", help="Folder that contains `baselines`.")
@click.option("--exit-nonzero-on-regression", is_flag=True, help="Exit with 1 if a case regressed.")
def command(run: Path, baseline: Path | None, runs_root: Path | None, exit_nonzero_on_regression: bool) -> int:
    """Compare RUN with its baseline: Markdown on standard output, `drift.yaml` in the run folder."""
    import msgspec

    from evalwright.cli.screen import say
    from evalwright.decisions.drift import drift
    from evalwright.files.durable import replace_file
    from evalwright.files.yaml import dump
    from evalwright.reports.drift import drift_lines
    from evalwright.run.baselines import baseline_of
    from evalwright.run.start import open_run

    reader, plan = open_run(run)
    with closing(reader):
        folder = Path(reader.location)
        against = baseline or baseline_of(folder, plan.name, runs_root)
        if against is None:
            say([f"no baseline for {plan.name!r}: promote a run first, or pass --baseline RUN"])
            return 0
        before, plan_before = open_run(against)
        with closing(before):
            found = drift(before, plan_before, reader, plan)
    if folder.is_dir():
        replace_file(folder / "drift.yaml", dump(msgspec.to_builtins(found.report)).encode())
    say(drift_lines(found, plan.run_id))
    return 1 if exit_nonzero_on_regression and found.report.regressions_count else 0
