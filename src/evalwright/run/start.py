"""What the command line and other programs call: run, resume, retry, judge again, open a stored run."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, nullcontext
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from evalwright.files.masker import Masker
from evalwright.llm.choices import ModelChoices
from evalwright.model.chat import Models
from evalwright.model.plan import Plan, Plugin
from evalwright.model.protocols import RunReader, RunWriter
from evalwright.registry import load
from evalwright.run.locations import address_of, find_run, store_of
from evalwright.run.models import models_of
from evalwright.run.options import Outcome, RunOptions
from evalwright.run.state import RunState
from evalwright.run.steps import mirroring_of
from evalwright.scoring.fold import fold
from evalwright.scoring.tally import Tally
from evalwright.session import in_use

if TYPE_CHECKING:
    from evalwright.model.suite import Suite
    from evalwright.run.history import History
    from evalwright.run.loop import Watch
    from evalwright.run.steps.mirror import Mirroring

__all__ = ["Outcome", "RunOptions", "open_run", "re_evaluate", "resume", "retry", "run_suite"]


def run_suite(suite: Suite, options: RunOptions | None = None, watch: Watch | None = None) -> Outcome:
    """Run every cell of a suite into a new run folder.

    Raises InputError (nothing was run) or StorageError (what was written stays valid, `resume` goes on).
    """
    from evalwright.run.loop import targets_of
    from evalwright.run.missing_keys import with_keys
    from evalwright.run.plan import chosen_cases, documents, plan_of

    options = options or RunOptions()
    masker = Masker.of(suite.secrets, os.environ)
    store = store_of(suite, options.out, masker)
    plan = plan_of(suite, options)
    if options.out is not None:
        plan.store = Plugin("local_files", {"path": str(options.out)})
    if options.target is not None:
        targets_of(plan)  # a mistake in what the command line names shows before there is a run folder
    cases = with_keys(plan, chosen_cases(suite, options), options.models)
    with closing(store.create(plan, cases, documents(suite, masker))) as writer:
        tally = Tally.of(plan)
        mirrors = mirroring_of(plan)
        address = address_of(writer, plan, masker)
        models = models_of(plan, options.models, masker)
        interrupted = _work(writer, plan, tally, None, frozenset(), mirrors, models, watch)
        return _outcome(address, writer, plan, tally, interrupted, mirrors=mirrors)


def resume(run_dir: Path, watch: Watch | None = None, models: ModelChoices | None = None) -> Outcome:
    """Run what an interrupted run has not finished; every finished cell stays as it is."""
    from evalwright.run.missing_keys import must_have_keys

    with _opened_for_work(run_dir) as (address, writer, plan, history):
        cells = range(len(history.traced))
        finished = sum(map(history.finished, cells))
        if finished == len(cells):
            return _outcome(address, writer, plan, fold(writer, plan), False, "nothing to do: every cell is finished")
        must_have_keys(plan, writer, models)
        mirrors = mirroring_of(plan)
        asked = models_of(plan, models, Masker.of({}, os.environ))
        interrupted = _work(writer, plan, Tally.of(plan), history, frozenset(), mirrors, asked, watch)
        note = f"{finished} of {len(cells)} cells were finished already"
        return _outcome(address, writer, plan, fold(writer, plan), interrupted, note, mirrors=mirrors)


def retry(
    run_dir: Path,
    *,
    evaluator_failures: bool = False,
    watch: Watch | None = None,
    models: ModelChoices | None = None,
) -> Outcome:
    """Run the cells again whose target errored, and those never run; with the flag, also those that failed."""
    from evalwright.run.missing_keys import must_have_keys

    with _opened_for_work(run_dir) as (address, writer, plan, history):
        cells = range(len(history.traced))
        again = frozenset(
            n
            for n in cells
            if history.errored[n] or (evaluator_failures and history.judged[n] and not history.passed[n])
        )
        if not again and all(map(history.finished, cells)):
            return _outcome(address, writer, plan, fold(writer, plan), False, "nothing to do: no cell to run again")
        must_have_keys(plan, writer, models)
        mirrors = mirroring_of(plan)
        asked = models_of(plan, models, Masker.of({}, os.environ))
        interrupted = _work(writer, plan, Tally.of(plan), history, again, mirrors, asked, watch)
        note = f"{len(again)} finished cells were run again"
        return _outcome(address, writer, plan, fold(writer, plan), interrupted, note, mirrors=mirrors)


def re_evaluate(
    run_dir: Path,
    *,
    add: str | None = None,
    suite: Suite | None = None,
    processes: int | None = None,
    concurrency: int | None = None,
    models: ModelChoices | None = None,
    watch: Watch | None = None,
) -> Outcome:
    """Judge the stored traces again without calling the system.

    With `add`, only the evaluator of that name: one of the run, of `suite`, or of the file the run came from.
    With `suite` alone, all of its evaluators and its pass criteria instead of the run's own. `concurrency` is the
    number of cells that may wait for models at once.
    """
    from evalwright.run.missing_keys import must_have_keys
    from evalwright.run.origin import case_finder, plan_of_run, with_evaluators
    from evalwright.run.re_evaluate import judge_again, processors

    place = find_run(run_dir, suite.secrets if suite else {})
    with closing(place.store.open(place.run_id)) as writer:
        stored = plan_of_run(writer)
        plan = with_evaluators(stored, add, suite)
        must_have_keys(plan, writer, models, judging=add or "")
        state = RunState()
        asked = models_of(plan, models, Masker.of(suite.secrets if suite else {}, os.environ))
        with in_use(asked), watch(state) if watch else nullcontext():
            tally = judge_again(
                plan,
                writer,
                case_finder(writer, stored),
                partial(Tally.of, plan),
                state,
                processes or processors(),
                add,
                concurrency,
            )
        if writer.plan is not None and plan != stored:
            writer.save_plan(plan)
        return _outcome(place.address, writer, plan, tally, False, f"{state.done} traces were judged again")


def open_run(run_dir: Path) -> tuple[RunReader, Plan]:
    """A stored run for reading, and its plan; folders written by upstream evalh too."""
    from evalwright.run.origin import plan_of_run

    place = find_run(run_dir)
    reader = place.store.read(place.run_id)
    return reader, plan_of_run(reader)


@contextmanager
def _opened_for_work(run_dir: Path) -> Iterator[tuple[Path, RunWriter, Plan, History]]:
    from evalwright.run.grid import Grid
    from evalwright.run.history import history_of
    from evalwright.run.origin import runnable

    place = find_run(run_dir)
    with closing(place.store.read(place.run_id)) as reader:
        plan, secrets = runnable(reader)
    place = find_run(run_dir, secrets)
    with closing(place.store.open(place.run_id)) as writer:
        yield place.address, writer, plan, history_of(writer, Grid(plan))


def _work(
    writer: RunWriter,
    plan: Plan,
    tally: Tally,
    history: History | None,
    again: frozenset[int],
    mirrors: Mirroring | None,
    models: Callable[[], Models],
    watch: Watch | None,
) -> bool:
    from evalwright.run.grid import Grid
    from evalwright.run.loop import work

    total = Grid(plan).total
    finished = 0 if history is None else sum(history.finished(n) and n not in again for n in range(total))
    spent = 0.0 if history is None else history.spent_usd
    state = RunState(total=total, done=finished, already_done=finished, cost_usd=spent)
    return work(plan, writer, tally, state, mirrors, models, watch, history, again)


def _outcome(
    address: Path,
    writer: RunWriter,
    plan: Plan,
    tally: Tally,
    interrupted: bool,
    *notes: str,
    mirrors: Mirroring | None = None,
) -> Outcome:
    """Store the summary, tell the mirrors, and say what came of the session."""
    from evalwright.run.calibration import keep_calibration

    summary = tally.summary(plan, datetime.now(UTC))
    keep_calibration(writer, plan, summary)
    if mirrors is not None:
        mirrors.finish(summary)
    writer.save_summary(summary)
    for export in plan.exports:
        load("exports", export.type)(export.config).write(writer, plan, summary)
    return Outcome(address, plan, summary, interrupted, [*notes, *writer.damage])
