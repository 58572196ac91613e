"""`evalwright resume`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from evalwright.cli.options import as_json, color, keep_going, lease, model_options, quiet
from evalwright.cli.stored_runs import resume_options, run_argument, trust_choice
from evalwright.cli.usage import Command

if TYPE_CHECKING:
    from evalwright.llm.choices import ModelChoices

__all__ = ["command"]


@click.command("resume", cls=Command)
@run_argument()
@resume_options
@keep_going
@lease
@model_options
@as_json
@color
@quiet
def command(run: Path, as_json: bool, quiet: bool, keep_going: bool, lease: str | None, models: ModelChoices) -> int:
    """Run the cells that are missing in the run folder RUN. Finished cells are kept as they are."""
    from evalwright.cli.outcome import present, print_suite_used, watch_of
    from evalwright.run.resumption import resume

    models.check()
    trust = trust_choice()
    outcome = resume(run, watch=watch_of(quiet), models=models, keep_going=keep_going, trust=trust, lease=lease)
    if not quiet:
        print_suite_used(outcome.plan.config_path, trust.suite.source if trust.suite else None)
    return present(outcome, as_json=as_json, quiet=quiet)
