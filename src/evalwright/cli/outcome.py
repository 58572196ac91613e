"""Printing the outcome of a run: shared by all commands that run or re-evaluate."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, closing, contextmanager
from importlib.util import find_spec
from pathlib import Path

import msgspec

from evalwright.cli.screen import print_err, print_out, screen_masker, screen_paint, warn
from evalwright.errors import InputError
from evalwright.files.paths import seen_from_here
from evalwright.model.result import NOT_PASSED
from evalwright.model.summary import RunSummary
from evalwright.reports.text import Paint, harmless
from evalwright.run.cells import RunState
from evalwright.run.locations import NOTE, find_run
from evalwright.run.outcomes import Outcome
from evalwright.stores.documents import reserved_words

__all__ = ["present", "print_suite_used", "watch_of"]


def watch_of(quiet: bool) -> Callable[[RunState], AbstractContextManager[None]]:
    """What is shown while a run works: its warnings, then the progress unless `quiet`."""

    @contextmanager
    def watch(state: RunState) -> Iterator[None]:
        warn(state.warnings)
        print_err(state.about)
        if quiet:
            yield
            return
        from evalwright.run.progress import progress_on

        with progress_on(mask=screen_masker().mask_text)(state):
            yield

    return watch


def present(outcome: Outcome, *, as_json: bool, quiet: bool, github: bool = False, exit_zero: bool = False) -> int:
    """Print an outcome; the last line is the run folder, or all is one JSON object. Returns the exit code.

    With `exit_zero` that is 0 instead of 1 or 3.
    """
    _print(outcome, as_json=as_json, quiet=quiet, github=github)
    return 0 if exit_zero and outcome.exit_code in (1, 3) else outcome.exit_code


def _print(outcome: Outcome, *, as_json: bool, quiet: bool, github: bool) -> None:
    code = outcome.exit_code
    if github:
        from evalwright.cli.github import show_on_github

        show_on_github(outcome.address, code)
    if as_json or quiet:
        print_err(outcome.notes)
    masker = screen_masker().keeping(reserved_words(outcome.plan))
    summary = msgspec.convert(masker.mask_strings(msgspec.to_builtins(outcome.summary)), RunSummary)
    if as_json:
        passed = None if outcome.plan.shard is not None else code == 0
        gate = {"passed": passed, "exit_code": code}
        document = {"run_dir": str(outcome.run_dir), "summary": summary, "gate": gate}
        print_out([msgspec.json.encode(document).decode()])
        return
    if not quiet:
        print_out(_lines(outcome, summary, screen_paint()))
    print_out([harmless(str(seen_from_here(outcome.run_dir)))])


def _lines(outcome: Outcome, summary: RunSummary, paint: Paint) -> list[str]:
    from evalwright.reports.terminal import run_lines

    run = shlex.quote(str(seen_from_here(outcome.run_dir))) + _store_option(outcome)
    lines = run_lines(outcome.plan, summary, paint)
    if any(variant.cells.get(status) for variant in summary.variants for status in NOT_PASSED):
        lines += ["", *_failures(outcome, summary, harmless(run), paint)]
    if notes := [note for note in outcome.notes if note not in outcome.summary.warnings]:
        lines += ["", *map(harmless, notes)]
    return [*lines, "", f"{paint('Next:', 'dim')} {_next(outcome, harmless(run))}", ""]


def _failures(outcome: Outcome, summary: RunSummary, run: str, paint: Paint) -> list[str]:
    from evalwright.reports.reasons import group_reasons
    from evalwright.reports.terminal import failure_lines
    from evalwright.run.stored_run import open_run

    reader, _ = open_run(outcome.address)
    with closing(reader):
        return failure_lines(*group_reasons(reader, summary), outcome.plan, summary, run, paint)


def print_suite_used(stored: str, suite: Path | None = None) -> None:
    """Print whose configuration was used on a stored run, `stored` being the path of the suite that it names: a run
    folder may come from anyone."""
    if suite is not None:
        print_err([f"suite: {suite}, as you named it"])
    elif stored:
        print_err([f"suite: {seen_from_here(Path(stored))}, as the run stored it"])


def _store_option(outcome: Outcome) -> str:
    """The option that commands need, besides the run's path, if only its suite has the address of the store."""
    if (outcome.run_dir / NOTE).is_file():
        try:
            find_run(outcome.run_dir)
        except InputError:
            return f" --suite {shlex.quote(str(seen_from_here(Path(outcome.plan.config_path))))}"
    return ""


def _next(outcome: Outcome, run: str) -> str:
    """The command that most likely comes next."""
    # Resuming would call the system again for unreadable traces; runs of other programs cannot be resumed.
    if outcome.unreadable or outcome.of_original or (outcome.summary.nothing_judged and outcome.plan.shard is None):
        return f"evalwright inspect {run}"
    if outcome.summary.cells_unread:
        return f"evalwright validate {shlex.quote(str(seen_from_here(Path(outcome.plan.config_path))))}"
    if outcome.plan.shard is not None and not outcome.summary.cells_missing:
        return f"evalwright merge RUN...  with all {outcome.plan.shard.of} shards"
    if any(note.startswith(("results", "verdicts")) for note in outcome.unread):
        return f"evalwright re-evaluate {run}"
    errors = any(variant.cells.get("error") for variant in outcome.summary.variants)
    if outcome.plan.until_decided is not None and not outcome.interrupted:
        return f"evalwright inspect {run}"
    leased = " --lease LEDGER" if outcome.plan.shard is not None and outcome.plan.shard.leased else ""
    if outcome.interrupted or (outcome.summary.cells_missing and not errors):
        return f"evalwright resume {run}{leased}"
    gate = outcome.summary.gate
    if gate is not None and gate.undecided and not errors:
        awaited = any(part.value is None and part.undecided for part in gate.parts)
        return f"evalwright {'promote' if awaited else 'inspect'} {run}"
    if outcome.unread and not errors:
        return f"evalwright inspect {run}"
    # Only a system that failed is called again; judges that failed are called again without it.
    failed = {variant.name for variant in outcome.summary.variants if variant.cases_errored}
    replayed = {variant.name for variant in outcome.plan.variants if variant.adapter == "replay"}
    again = f"evalwright retry {run}{leased}" if failed else f"evalwright re-evaluate {run}"
    if failed and failed <= replayed:  # recordings are the same the next time
        again = f"evalwright inspect {run} --failed"
    commands = {0: f"evalwright inspect {run}", 3: again}
    return commands.get(outcome.exit_code) or (
        f"evalwright view {run}" if find_spec("starlette") else f"evalwright inspect {run} --failed"
    )
