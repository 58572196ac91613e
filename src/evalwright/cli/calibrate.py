"""`evalwright calibrate`."""

from __future__ import annotations

from pathlib import Path

import click

from evalwright.cli.options import as_json, color
from evalwright.cli.stored_runs import run_argument, store_options
from evalwright.cli.usage import Command, PathParam

__all__ = ["command"]


@click.command("calibrate", cls=Command)
@run_argument()
@store_options
@click.option(
    "--labels",
    type=PathParam(dir_okay=False),
    metavar="FILE",
    help="CSV or JSON Lines with case_id, evaluator, verdict or score, and optionally variant and trial (default: the "
    "labels given in the viewer).",
)
@as_json
@color
def command(run: Path, labels: Path | None, as_json: bool) -> int:
    """Compare the evaluators of RUN with human labels: error rates, agreement, and corrected pass rates.

    The result is stored in the run folder; reports then show it beside the evaluator.
    """
    import msgspec

    from evalwright.cli.screen import print_out, screen_paint
    from evalwright.reports.calibration import calibration_lines
    from evalwright.run.calibration import calibrate_run

    report = calibrate_run(run, labels)
    if as_json:
        print_out([msgspec.json.encode(report).decode()])
    else:
        print_out(calibration_lines(report, screen_paint()))
    return 0
