"""`evalwright audit`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from evalwright.cli.options import MODEL_NAMES, as_json, color, model_options
from evalwright.cli.stored_runs import run_argument, suite_option, trust_all, trust_choice
from evalwright.cli.usage import Command, WholeRange, reject_options

if TYPE_CHECKING:
    from evalwright.llm.choices import ModelChoices

__all__ = ["command"]


@click.command("audit", cls=Command)
@run_argument()
@click.option(
    "--limit", type=WholeRange(min=1), metavar="N", default=100, show_default=True, help="Audit at most N traces."
)
@click.option("--judges", is_flag=True, help="Call the evaluators that call models, too.")
@suite_option(expose=True, help="Audit the evaluators of FILE, and use its store.")
@trust_all
@model_options
@as_json
@color
def command(
    run: Path,
    limit: int,
    judges: bool,
    suite_file: Path | None,
    as_json: bool,
    models: ModelChoices,
) -> int:
    """Change answers, tool calls and steps of traces that passed, and see whether the evaluators of RUN notice.

    The system is not called, and the run is not changed. The exit code is 0 whatever survives, and 3 if evaluators had
    errors.
    """
    import msgspec

    from evalwright.audit.audit import audit_run
    from evalwright.cli.outcome import print_suite_used, watch_of
    from evalwright.cli.screen import print_out, screen_masker, screen_paint
    from evalwright.model.audit import AuditReport
    from evalwright.reports.audit import audit_lines

    if not judges:
        reject_options({*MODEL_NAMES} - {"no_network"}, "no model is called without --judges")
    models.check()
    trust = trust_choice()
    report = audit_run(
        run,
        limit=limit,
        judges=judges,
        suite=trust.suite,
        models=models,
        watch=watch_of(quiet=False),
        trust_run=trust.run,
    )
    report = msgspec.convert(screen_masker().mask_strings(msgspec.to_builtins(report)), AuditReport)
    print_suite_used(report.config_path, suite_file)
    print_out([msgspec.json.encode(report).decode()] if as_json else audit_lines(report, screen_paint()))
    return 3 if report.errors or report.unjudged else 0
