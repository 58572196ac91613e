"""`evalwright inspect`."""

from __future__ import annotations

import sys
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

import click

from evalwright.cli.named_cases import has_case, unknown_case
from evalwright.cli.options import color, complete_cases
from evalwright.cli.stored_runs import run_argument, store_options
from evalwright.cli.usage import Command
from evalwright.errors import did_you_mean

if TYPE_CHECKING:
    from evalwright.model.cell_index import CellOrder
    from evalwright.model.plan import Plan
    from evalwright.model.protocols import RunReader

__all__ = ["command"]

_LONGEST = 400


@click.command("inspect", cls=Command)
@run_argument()
@store_options
@click.option("--case", metavar="ID", shell_complete=complete_cases, help="Only this case.")
@click.option("--variant", metavar="NAME", help="Only this variant.")
@click.option("--failed", is_flag=True, help="Only cells with an error or a failed evaluator.")
@click.option("--no-truncate", is_flag=True, help="Do not shorten texts; show stack traces.")
@color
@click.option("--no-artifacts", is_flag=True, help="Do not show file changes.")
def command(
    run: Path, case: str | None, variant: str | None, failed: bool, no_truncate: bool, no_artifacts: bool
) -> int:
    """Show each cell of RUN: input, answer, tool calls, changed files, and each evaluator's result and reason.

    Unreadable records are listed at the end, and the exit code is 2.
    """
    from evalwright.cli.screen import print_out, screen_paint
    from evalwright.model.damage import missing_results, unreadable_records
    from evalwright.reports.cells import Choice, chosen_cells
    from evalwright.reports.inspection import cell_lines, file_lines
    from evalwright.reports.statuses import shown_status
    from evalwright.reports.text import harmless
    from evalwright.run.stored_artifacts import StoredArtifacts
    from evalwright.run.stored_run import open_run
    from evalwright.scoring.contradictions import lacks_results
    from evalwright.scoring.tally import has_only_scores
    from evalwright.scoring.verdict import names_needed, status_by_results

    reader, plan = open_run(run)
    paint, shown, unexplained, limit = screen_paint(), 0, 0, None if no_truncate else _LONGEST
    artifacts = None if no_artifacts or not reader.artifacts.is_dir() else StoredArtifacts(plan, reader)
    trials = plan.trials_by_variant
    # The cells of one case are few enough to be sorted; those of a run are printed as they are read.
    order: CellOrder = "stored" if case is None else "dataset"
    with closing(reader):
        needed, scored = names_needed(reader, plan), has_only_scores(plan)
        for cell in chosen_cells(reader, plan, needed, Choice(case, variant, failed), order):
            of = trials.get(cell.trace.variant_name, 1)
            lines = cell_lines(cell.trace, cell.results, cell.verdict.status, paint, limit, of, scored=scored)
            errored = cell.trace.error is not None
            if cell.is_judged and lacks_results(plan, needed, errored, cell.results):
                lines.append(f"  {'verdict':12}its results are missing: the cell is not counted")
                unexplained += 1
            by_results = status_by_results(plan, needed, errored, cell.results)
            if by_results not in (None, cell.verdict.status):
                word = shown_status(by_results, scored=scored).word
                lines.append(f"  {'verdict':12}the results say {word}, by which the cell is counted")
            if artifacts is not None and (artifact := artifacts.of(cell.trace)) is not None:
                lines += file_lines(artifact.record, paint, limit)
            print_out([*lines, ""])
            shown += 1
        if unexplained and not unreadable_records(reader):
            reader.damage.append(missing_results(unexplained))
        # Only now: damage is found while the records are read.
        for note in reader.damage:
            print(harmless(note), file=sys.stderr)
        print_out([f"{shown:,} shown" if shown else "no traces match"])
        # A name that the run does not have is no error in evalh, whose scripts call this command.
        for why in () if shown else _unmatched_names(reader, plan, case, variant, failed=failed):
            print(harmless(why), file=sys.stderr)
        return 2 if reader.damage else 0


def _unmatched_names(
    reader: RunReader, plan: Plan, case: str | None, variant: str | None, *, failed: bool
) -> list[str]:
    """Why nothing was found: names that the run does not have, with the nearest that it has, or cells not run yet.

    That nothing failed is no mistake.
    """
    unmatched_names = []
    if case is not None and not has_case(reader, plan, case):
        unmatched_names.append(unknown_case(reader, case))
    if variant is not None and variant not in (names := [known.name for known in plan.variants]):
        near = did_you_mean(variant, names) or f" (there are: {', '.join(names)})"
        unmatched_names.append(f"no variant {variant!r} in the run{near}")
    if not (unmatched_names or failed or case is variant is None):
        wanted = [f"{kind} {name!r}" for kind, name in (("case", case), ("variant", variant)) if name is not None]
        unmatched_names.append(f"{' and '.join(wanted)}: no cell was run yet (evalwright resume runs what is missing)")
    return unmatched_names
