"""`evalwright retry`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from evalwright.cli.options import as_json, model_options, quiet, run_argument

if TYPE_CHECKING:
    from evalwright.llm.choices import ModelChoices

__all__ = ["command"]


@click.command("retry", short_help="Run the cells of a run again that had an error.")
@run_argument()
@click.option("--include-evaluator-failures", is_flag=True, help="Also the cells that were judged and failed.")
@model_options
@as_json
@quiet
def command(run: Path, include_evaluator_failures: bool, as_json: bool, quiet: bool, models: ModelChoices) -> int:
    """Run the cells of RUN again whose system had an error, and those that never ran.

    The newest attempt of a cell counts; the older one stays in the file.
    """
    from evalwright.cli.outcome import present, watch_of
    from evalwright.run.start import retry

    outcome = retry(run, evaluator_failures=include_evaluator_failures, watch=watch_of(quiet), models=models)
    return present(outcome, as_json=as_json, quiet=quiet)
