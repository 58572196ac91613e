"""`evalwright re-evaluate`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from evalwright.cli.options import as_json, color, exit_zero, model_options, quiet
from evalwright.cli.stored_runs import run_argument, suite_option, trust_all, trust_choice
from evalwright.cli.usage import Command, WholeRange

if TYPE_CHECKING:
    from evalwright.llm.choices import ModelChoices

__all__ = ["command"]


@click.command("re-evaluate", cls=Command)
@run_argument()
@click.option("--add", metavar="NAME", help="Evaluate only this evaluator (of the run, or newly added to its suite).")
@suite_option(expose=True, help="Use the evaluators of FILE, and its store.")
@trust_all
@click.option(
    "--concurrency",
    type=WholeRange(min=1),
    metavar="N",
    help="At most N cells wait for models at the same time (default: as in the run).",
)
@click.option("--batch", is_flag=True, help="Call judges in batches: takes up to a day, at half the price.")
@exit_zero
@model_options
@as_json
@color
@quiet
def command(
    run: Path,
    add: str | None,
    suite_file: Path | None,
    concurrency: int | None,
    batch: bool,
    exit_zero: bool,
    as_json: bool,
    quiet: bool,
    models: ModelChoices,
) -> int:
    """Re-evaluate the stored traces of RUN. The system is not called; earlier results are replaced.

    The exit code is that of `run` for the same verdicts, and 3 if some trace cannot be read: its cell keeps its
    results. For a run that evalh wrote it is 0 whatever the verdicts, as in evalh.
    """
    from evalwright.cli.outcome import present, print_suite_used, watch_of
    from evalwright.run.re_evaluation import re_evaluate

    models.check()
    suite = None
    if suite_file is not None:
        from evalwright.formats.loading import load_suite

        suite = load_suite(suite_file, to_run=False)
    outcome = re_evaluate(
        run,
        add=add,
        suite=suite,
        concurrency=concurrency,
        batch=batch,
        watch=watch_of(quiet),
        models=models,
        trust_run=trust_choice().run,
    )
    if not quiet:
        print_suite_used(outcome.plan.config_path, suite_file)
    code = present(outcome, as_json=as_json, quiet=quiet, exit_zero=exit_zero or outcome.of_original)
    return 3 if outcome.unreadable else code
