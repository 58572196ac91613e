"""`evalwright run`."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import fields
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from evalwright.cli.options import (
    RunCommand,
    allow_empty,
    as_json,
    color,
    complete_cases,
    dialect,
    exit_zero,
    keep_going,
    lease,
    model_options,
    quiet,
    suites_argument,
    written_by,
)
from evalwright.cli.usage import NumberRange, PathParam, WholeRange, reject_mistakes, variables
from evalwright.errors import AllMistakes, InputError, Problem

if TYPE_CHECKING:
    from evalwright.llm.choices import ModelChoices
    from evalwright.model.plan import Shard
    from evalwright.model.suite import Suite
    from evalwright.run.cells import RunState
    from evalwright.run.loop import Watch
    from evalwright.run.options import RunOptions
    from evalwright.run.outcomes import Outcome

__all__ = ["command"]

_COUNT = WholeRange(min=1)
_MOST_CODE = 5


def _shard(ctx: click.Context, param: click.Parameter, value: str | None) -> Shard | None:
    if value is None:
        return None
    from evalwright.run.schedulers import shard_from

    return shard_from(value, os.environ)


@click.command("run", cls=RunCommand)
@suites_argument()
@click.option("--target", metavar="NAME|MODULE:CALLABLE", help="One variant of the suite, or a Python callable.")
@click.option(
    "--out",
    type=PathParam(),
    metavar="DIR",
    help="Folder in which the run folder is created (default: the suite's, else runs).",
)
@dialect
@click.option(
    "--case",
    "--filter",
    "--eval-id",
    "--test-id",
    "cases",
    multiple=True,
    metavar="GLOB|PATH=VALUE",
    shell_complete=complete_cases,
    help="Only cases whose id matches GLOB, or that have this value, such as metadata.tier=gold (repeatable).",
)
@click.option("--tag", "tags", multiple=True, metavar="TAG", help="Only cases with this tag (repeatable).")
@click.option("--limit", type=_COUNT, metavar="N", help="At most N cases.")
@click.option(
    "--shard",
    metavar="K/N",
    callback=_shard,
    help="Run only shard K of N (join them with `merge`); auto or auto/N under a scheduler.",
)
@lease
@click.option(
    "--trials",
    "--num-runs",
    "trials",
    type=_COUNT,
    metavar="N",
    help="Run each case N times (default: the suite's, else 1).",
)
@click.option(
    "--concurrency",
    "--max-concurrent",
    "concurrency",
    type=_COUNT,
    metavar="N",
    help="At most N cells at the same time (default: the suite's, else its format's: 4 for an eval.yaml).",
)
@click.option(
    "--executor",
    type=click.Choice(["local", "ray"]),
    help="Call the systems in this process, or on the Ray cluster at RAY_ADDRESS (default: the suite's, else local).",
)
@variables
@click.option(
    "--retry-only-failed",
    "retried",
    type=PathParam(),
    metavar="RUN",
    help="Run again the cells of RUN that ended in an error, like `retry`.",
)
@click.option("--include-evaluator-failures", is_flag=True, help="With --retry-only-failed: also cells that failed.")
@click.option(
    "--until-decided",
    is_flag=True,
    help="Stop as soon as the comparison is decided; valid however often it is checked.",
)
@click.option("--against", metavar="RUN|VARIANT", help="With --until-decided: the run or variant to compare with.")
@click.option(
    "--margin",
    metavar="M",
    help="With --until-decided: the largest loss that does not matter, 2pp or 0.02 (default: 2pp).",
)
@click.option("--max-cases", type=_COUNT, metavar="N", help="With --until-decided: stop after N cases.")
@click.option(
    "--max-cost",
    type=NumberRange(min=0, min_open=True),
    metavar="USD",
    help="With --until-decided: start nothing new once system calls have cost this much.",
)
@click.option(
    "--seed",
    type=int,
    metavar="N",
    help="With --until-decided: seed of the order of cases; each seed is a new test (default: 0).",
)
@keep_going
@click.option("--no-index", is_flag=True, help="Build no index of a large run; commands then read all of its records.")
@exit_zero
@allow_empty
@click.option("--github", is_flag=True, help="Also write annotations, job summary and outputs for GitHub Actions.")
@click.option("--dry-run", is_flag=True, help="Print the number of calls and estimated cost; run nothing.")
@model_options
@as_json
@color
@quiet
def command(
    paths: tuple[Path, ...],
    dialect: str | None,
    variables: dict[str, str],
    retried: Path | None,
    include_evaluator_failures: bool,
    exit_zero: bool,
    github: bool,
    dry_run: bool,
    as_json: bool,
    quiet: bool,
    models: ModelChoices,
    **given: Any,
) -> int:
    """Run every case of the suites at PATH on every variant and evaluate the answers.

    A PATH is a file, a folder that is searched for suites, or a glob; each suite becomes a run of its own.
    The last line of the output is the run folder. `evalwright resume` continues an interrupted run.
    """
    from evalwright.cli.outcome import present, watch_of
    from evalwright.formats.loading import OPTIONS_OF_ALL, load_suite
    from evalwright.run.options import RunOptions

    # Options named like a field of RunOptions fill it; the rest belong to the suite's format.
    chosen = {field.name: given.pop(field.name) for field in fields(RunOptions) if field.name in given}
    options, of_format = RunOptions(models=models, **chosen), given
    quiet = quiet or of_format.get("display") == "none"
    _check_options(options, models, retried, include_evaluator_failures)

    def load(path: Path, *, to_run: bool = True) -> Suite:
        known = {name: getattr(options, name) for name in OPTIONS_OF_ALL} | of_format
        return load_suite(path, dialect, variables, to_run=to_run, options=known)

    files, skipped = _files_at(paths, dialect)
    alone = ["--retry-only-failed"] * (retried is not None) + ["--shard"] * (options.shard is not None)
    if len(files) > 1:
        reject_mistakes([f"{flag} takes one suite" for flag in alone + written_by(of_format)])
        return _run_each(files, skipped, partial(load, to_run=False), options)
    if dry_run:
        from evalwright.cli.dry_run import print_forecast

        return print_forecast(partial(_only_suite, files[0], skipped, load), options, as_json=as_json)
    suite = _only_suite(files[0], skipped, load)
    watch = watch_of(quiet)
    if retried is None:
        outcome = _run(suite, options, watch if quiet else _announcing(suite, options, watch))
    else:
        outcome = _retry(retried, suite, options, include_evaluator_failures, watch)
    return present(outcome, as_json=as_json, quiet=quiet, github=github, exit_zero=exit_zero)


def _files_at(paths: tuple[Path, ...], dialect: str | None) -> tuple[list[Path], list[Path]]:
    """The suites at the paths, and files there of no known format: a single file is taken as a suite; folders and
    globs are searched."""
    if len(paths) == 1 and os.path.isfile(paths[0]):
        return [*paths], []
    from evalwright.formats.discovery import suite_files

    return suite_files(paths, dialect)


def _check_options(options: RunOptions, models: ModelChoices, retried: Path | None, failures: bool) -> None:
    """Raise InputError for all options that lack or exclude another one, or name files that cannot be used."""
    mistakes = AllMistakes()
    if problems := [*_missing_or_excluded(options), *_mistakes_of_retry(retried, failures, options)]:
        with mistakes:
            raise InputError(problems)
    if models.cache or models.record or models.replay:
        with mistakes:
            models.check()
    mistakes.refuse()


def _missing_or_excluded(options: RunOptions) -> Iterator[Problem]:
    """What is wrong with options that lack the one that they need, or have one that they exclude."""
    if options.lease is not None and options.shard is None:
        yield Problem("--lease", "needs --shard K/N: shards share their limits by it")
    if options.until_decided and options.against is None:
        yield Problem("--until-decided", "needs --against RUN, or --against VARIANT")
    if options.until_decided and options.shard is not None:
        yield Problem("--shard", "a run that ends when it is decided has one order of cases, and no shards")
    for name in ("against", "margin", "max_cases", "max_cost", "seed"):
        if getattr(options, name) is not None and not options.until_decided:
            yield Problem(f"--{name.replace('_', '-')}", "needs --until-decided")


def _mistakes_of_retry(retried: Path | None, failures: bool, options: RunOptions) -> Iterator[Problem]:
    from evalwright.run.options import RunOptions

    if retried is None and failures:
        yield Problem("--include-evaluator-failures", "needs --retry-only-failed RUN")
    # They would be accepted but never read: the cells that are run again are those of the stored run.
    if retried is not None and options != RunOptions(models=options.models, keep_going=options.keep_going):
        yield Problem(
            "--retry-only-failed",
            "runs cells of a stored run: options that select cases cannot be combined with it",
        )


def _run_each(files: list[Path], skipped: list[Path], load: Callable[[Path], Suite], options: RunOptions) -> int:
    from evalwright.cli.many_suites import run_each, runnable_files
    from evalwright.cli.screen import print_skipped

    used: set[Path] = set()

    def noted(path: Path) -> Suite:
        suite = load(path)
        used.update(file.resolve() for file in suite.files)
        return suite

    runnable = runnable_files(files, noted, options)
    print_skipped(skipped, used)
    return run_each(runnable, click.get_current_context())


def _only_suite(file: Path, skipped: list[Path], load: Callable[[Path], Suite]) -> Suite:
    suite = load(file)
    if skipped:
        from evalwright.cli.screen import print_skipped

        print_skipped(skipped, {path.resolve() for path in suite.files})
    return suite


def _retry(run: Path, suite: Suite, options: RunOptions, failures: bool, watch: Watch) -> Outcome:
    from evalwright.run.locations import find_run
    from evalwright.run.origin import Trust
    from evalwright.run.resumption import retry

    place = find_run(run, suite.secrets, named=suite.store)
    return retry(
        place,
        evaluator_failures=failures,
        watch=watch,
        models=options.models,
        keep_going=options.keep_going,
        trust=Trust(suite),
    )


def _announcing(suite: Suite, options: RunOptions, watch: Watch) -> Watch:
    """The display, preceded by what the suite has to announce and, on its first run in the folder, the code that it
    executes."""
    from glob import escape

    from evalwright.cli.screen import print_err
    from evalwright.run.used_files import announced_by, executed

    notes = announced_by(suite)
    runs = options.out or suite.out or Path("runs")
    # Escaped: a name may hold characters that are patterns to `glob`.
    if not any(runs.glob(f"*_{escape(suite.name)}*/plan.json")) and (code := executed(suite)):
        more = f" and {len(code) - _MOST_CODE} more" if len(code) > _MOST_CODE else ""
        notes = [f"this suite runs code on this machine: {', '.join(code[:_MOST_CODE])}{more}", *notes]
    if not notes:
        return watch

    def watch_announced(state: RunState) -> AbstractContextManager[None]:
        print_err(notes)
        return watch(state)

    return watch_announced


def _run(suite: Suite, options: RunOptions, watch: Watch) -> Outcome:
    """Run the suite. If that is rejected, its warnings are printed too: they may say why."""
    from evalwright.cli.screen import warn
    from evalwright.run.start import run_suite

    began = False

    def watched(state: RunState) -> AbstractContextManager[None]:
        nonlocal began
        began = True
        return watch(state)

    try:
        return run_suite(suite, options, watched)
    except InputError:
        if not began:  # the display shows them first of all
            warn(suite.warnings)
        raise
