"""`evalwright retry`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from evalwright.cli.options import as_json, color, exit_zero, keep_going, lease, model_options, quiet
from evalwright.cli.stored_runs import resume_options, run_argument, trust_choice
from evalwright.cli.usage import Command

if TYPE_CHECKING:
    from evalwright.llm.choices import ModelChoices

__all__ = ["command"]


@click.command("retry", cls=Command)
@run_argument()
@resume_options
@click.option("--include-evaluator-failures", is_flag=True, help="Also cells that failed.")
@keep_going
@exit_zero
@lease
@model_options
@as_json
@color
@quiet
def command(
    run: Path,
    include_evaluator_failures: bool,
    exit_zero: bool,
    as_json: bool,
    quiet: bool,
    keep_going: bool,
    lease: str | None,
    models: ModelChoices,
) -> int:
    """Run again the cells of RUN whose system ended in an error, and those that never ran.

    The newest attempt of a cell counts; earlier ones stay in the file.
    """
    from evalwright.cli.outcome import present, print_suite_used, watch_of
    from evalwright.run.resumption import retry

    models.check()
    trust = trust_choice()
    outcome = retry(
        run,
        evaluator_failures=include_evaluator_failures,
        watch=watch_of(quiet),
        models=models,
        keep_going=keep_going,
        trust=trust,
        lease=lease,
    )
    if not quiet:
        print_suite_used(outcome.plan.config_path, trust.suite.source if trust.suite else None)
    return present(outcome, as_json=as_json, quiet=quiet, exit_zero=exit_zero)
