"""`evalwright run`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from evalwright.cli.options import SuiteCommand, as_json, dialect, model_options, quiet, suites_argument, written_by

if TYPE_CHECKING:
    from evalwright.llm.choices import ModelChoices
    from evalwright.model.suite import Suite
    from evalwright.run.loop import Watch
    from evalwright.run.start import Outcome, RunOptions

__all__ = ["command"]

_COUNT = click.IntRange(min=1)


@click.command("run", cls=SuiteCommand, short_help="Run a suite: every case with every variant.")
@suites_argument()
@click.option("--target", metavar="NAME|MODULE:CALLABLE", help="One variant of the suite, or a Python callable.")
@click.option("--out", type=click.Path(path_type=Path), metavar="DIR", help="The folder that gets the run folder.")
@dialect
@click.option(
    "--case",
    "--filter",
    "--eval-id",
    "--test-id",
    "cases",
    multiple=True,
    metavar="GLOB",
    help="Only cases whose id fits; repeatable.",
)
@click.option("--tag", "tags", multiple=True, metavar="TAG", help="Only cases with this tag; repeatable.")
@click.option("--limit", type=_COUNT, metavar="N", help="At most N cases.")
@click.option("--trials", "--num-runs", "trials", type=_COUNT, metavar="N", help="Run each case N times.")
@click.option(
    "--concurrency",
    "--max-concurrent",
    "concurrency",
    type=_COUNT,
    metavar="N",
    help="At most N cells at the same time.",
)
@click.option("--var", "variables", multiple=True, metavar="K=V", help="A value for ${K} in the suite; repeatable.")
@click.option("--retry-only-failed", "retried", type=click.Path(path_type=Path), metavar="RUN", help="As `retry`.")
@click.option("--include-evaluator-failures", is_flag=True, help="With --retry-only-failed: failed cells too.")
@click.option("--exit-zero", is_flag=True, help="End with 0 also when cells did not pass or have no verdict.")
@click.option("--dry-run", is_flag=True, help="Say how many calls would be made, and run nothing.")
@model_options
@as_json
@quiet
def command(
    paths: tuple[Path, ...],
    dialect: str | None,
    out: Path | None,
    cases: tuple[str, ...],
    tags: tuple[str, ...],
    limit: int | None,
    trials: int | None,
    concurrency: int | None,
    target: str | None,
    variables: tuple[str, ...],
    retried: Path | None,
    include_evaluator_failures: bool,
    exit_zero: bool,
    dry_run: bool,
    as_json: bool,
    quiet: bool,
    models: ModelChoices,
    **of_format: Any,
) -> int:
    """Run every case of the suites at PATH with every variant, and judge what comes back.

    A PATH is a file, a folder that is searched for suites, or a glob; of several suites each gets a run of its own.
    The last line of the output is the folder of the run. An interrupted run goes on with `evalwright resume`.
    """
    from evalwright.cli.outcome import present, watch_of
    from evalwright.cli.screen import tell, warn
    from evalwright.formats.discovery import suite_files
    from evalwright.formats.loading import load_suite
    from evalwright.run.start import RunOptions, retry

    quiet = quiet or of_format.get("display") == "none"
    options = RunOptions(out, list(cases), list(tags), limit, trials, concurrency, target, models)
    if retried is None and include_evaluator_failures:
        raise click.UsageError("--include-evaluator-failures needs --retry-only-failed RUN")
    if retried is not None and options != RunOptions(models=models):
        raise click.UsageError("--retry-only-failed runs cells of a stored run: it takes no choice of cases")

    def load(path: Path, *, to_run: bool = True) -> Suite:
        given = {"target": target, "trials": trials, **of_format}
        return load_suite(path, dialect, _pairs(variables), to_run=to_run, options=given)

    found = suite_files(paths, dialect)
    tell(f"skipped {path}: format not recognised" for path in found.passed_over)
    for flag in ["--retry-only-failed"] * (retried is not None) + written_by(of_format):
        if len(found.files) > 1:
            raise click.UsageError(f"{flag} takes one suite")
    if len(found.files) > 1:
        return _each(found.files, partial(load, to_run=False), options)
    suite = load(found.files[0])
    warn(suite.warnings)
    if dry_run:
        return _foretold(suite, options)
    watch = watch_of(quiet, suite.secrets)
    if retried is None:
        outcome = _ran(suite, options, watch)
    else:
        outcome = retry(retried, evaluator_failures=include_evaluator_failures, watch=watch, models=models)
    code = present(outcome, as_json=as_json, quiet=quiet, secrets=suite.secrets)
    return 0 if exit_zero and code in (1, 3) else code


def _each(paths: Sequence[Path], load: Callable[[Path], Suite], options: RunOptions) -> int:
    from evalwright.cli.many_suites import run_each, runnable

    return run_each(runnable(paths, load, options), click.get_current_context())


def _ran(suite: Suite, options: RunOptions, watch: Watch | None) -> Outcome:
    """Run the suite; what is noticed while its cases are read is told as well."""
    from evalwright.cli.screen import warn
    from evalwright.run.start import run_suite

    told = len(suite.warnings)
    outcome = run_suite(suite, options, watch)
    warn(suite.warnings[told:])
    return outcome


def _foretold(suite: Suite, options: RunOptions) -> int:
    from evalwright.cli.screen import say
    from evalwright.errors import counted
    from evalwright.run.forecast import forecast

    found = forecast(suite, options)
    cost = "" if found.judge_cost_usd is None else f", about ${found.judge_cost_usd:.2f}"
    judges = f"{counted(found.judge_calls, 'call')} of judges{cost}" if found.judge_calls else "no calls of judges"
    say([f"{counted(found.cells, 'call')} of systems, {judges}; nothing was run"])
    return 0


def _pairs(words: Iterable[str]) -> dict[str, str]:
    variables = {}
    for word in words:
        name, equals, value = word.partition("=")
        if not (name and equals):
            raise click.BadParameter(f"expected K=V, found {word!r}", param_hint="--var")
        variables[name] = value
    return variables
