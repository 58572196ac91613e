"""`evalwright drift`."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import click

from evalwright.cli.stored_runs import RunPath, run_argument, store_options
from evalwright.cli.usage import Command, PathParam, points_param

__all__ = ["command"]


@click.command("drift", cls=Command)
@run_argument()
@store_options
@click.option(
    "--baseline",
    type=RunPath(),
    metavar="RUN",
    help="Compare with RUN instead of the promoted baseline.",
)
@click.option(
    "--runs-root", type=PathParam(), metavar="DIR", help="Folder that contains `baselines` (default: that of RUN)."
)
@click.option(
    "--exit-nonzero-on-regression",
    is_flag=True,
    help="Exit with 1 if any case passed before and does not now, by chance or not (the rule of evalh).",
)
@click.option(
    "--fail-on-regression",
    is_flag=True,
    help="Exit with 1 if RUN is worse beyond noise, with 3 if errors, cells not run or no baseline leave that open.",
)
@click.option(
    "--margin",
    type=points_param,
    metavar="M",
    help="With --fail-on-regression: the largest loss that does not matter, 2pp or 0.02 (default: 0).",
)
@click.option("--allow-changed", is_flag=True, help="Compare cases and evaluators that changed, too.")
def command(
    run: Path,
    baseline: Path | None,
    runs_root: Path | None,
    exit_nonzero_on_regression: bool,
    fail_on_regression: bool,
    margin: float | None,
    allow_changed: bool,
) -> int:
    """Compare RUN with its baseline: Markdown on standard output, `drift.yaml` in the run folder.

    The interval and the p-value are those of `evalwright compare`, over the cases with a verdict in both runs.
    """
    import msgspec

    from evalwright.cli.pairs import opened_pair, regression_code
    from evalwright.cli.screen import print_out, warn
    from evalwright.decisions.clusters import explain
    from evalwright.decisions.comparison import regressions
    from evalwright.decisions.drift import drift
    from evalwright.decisions.terms import Terms
    from evalwright.files.durable import replace_file
    from evalwright.files.yaml import dump
    from evalwright.model.summary import decisions_of
    from evalwright.reports.drift import drift_lines
    from evalwright.run.baselines import baseline_of, why_no_baseline
    from evalwright.run.locations import Place, find_run
    from evalwright.run.stored_run import open_run

    place = find_run(run)
    reader, plan = open_run(place)
    with closing(reader):
        folder = Path(reader.location)
        against: Path | Place | None = baseline or baseline_of(folder, plan.name, runs_root)
    if isinstance(against, Path) and against.parent == folder.parent and not folder.exists():
        against = Place(place.store, against.name, against)  # on the same server, whose address is known only for RUN
    if against is None:
        print_out([f"{why_no_baseline(folder, plan.name, runs_root)}, or pass --baseline RUN"])
        return 3 if fail_on_regression else 0
    with opened_pair(against, place, Terms(margin=margin, keep_changed=allow_changed)) as opened:
        with opened.runs.mistakes:
            if not allow_changed:
                opened.runs.refuse_changed()
        opened.runs.mistakes.refuse()
        drifted = drift(opened.before, opened.after, opened.plan_before.run_id, opened.runs)
        decisions = decisions_of(drifted.report)
        explain(opened.before, opened.after, decisions, keep_changed=allow_changed)
        tested = regressions(opened.runs, decisions, margin or 0.0) if fail_on_regression else []
    if opened.before.location == opened.after.location:
        warn([f"{plan.run_id} is its own baseline: `drift` compares a later run with it"])
    print_out(drift_lines(drifted, plan.run_id))
    if folder.is_dir():  # after the report, which needs no folder that can be written to
        replace_file(folder / "drift.yaml", dump(msgspec.to_builtins(drifted.report)).encode())
    if exit_nonzero_on_regression and drifted.report.regressions_count:
        return 1
    measured = any(decision.n for decision in decisions) and not opened.runs.unread
    return regression_code(tested, 0 if measured else 3)
