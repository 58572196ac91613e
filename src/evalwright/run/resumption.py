"""Continuing a run: the remaining cells of an interrupted run, and finished ones that are repeated."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from functools import partial
from pathlib import Path
from typing import NamedTuple

import msgspec

from evalwright.errors import counted
from evalwright.files.masker import Masker
from evalwright.files.paths import seen_from_here
from evalwright.llm.choices import ModelChoices
from evalwright.model.damage import missing_results, unreadable_records
from evalwright.model.plan import Plan
from evalwright.model.protocols import RunWriter
from evalwright.run.cells import Grid, RunState
from evalwright.run.comparisons import whole_comparisons
from evalwright.run.history import History, history_of, is_finished
from evalwright.run.locations import Place, find_run
from evalwright.run.loop import Job, Watch, begin, work, work_here
from evalwright.run.missing_keys import must_have_keys
from evalwright.run.models import live_models
from evalwright.run.origin import Trust, must_be_own, runnable
from evalwright.run.outcomes import Outcome, conclude
from evalwright.run.stored_run import revealed
from evalwright.run.used_files import changed_since, recorded_for
from evalwright.scoring.fold import fold
from evalwright.scoring.tally import Tally
from evalwright.session import Session, hide, owns_process
from evalwright.session.signals import Signals
from evalwright.stores.manifest import drop_manifest

__all__ = ["resume", "resume_here", "retry"]


def resume(
    run: Path | Place,
    watch: Watch | None = None,
    models: ModelChoices | None = None,
    *,
    keep_going: bool = False,
    trust: Trust | None = None,
    lease: str | None = None,
) -> Outcome:
    """Run the unfinished cells of an interrupted run; finished cells stay as they are.

    `lease` is the ledger of a shard's limits, as in `RunOptions`. Raises InputError for another user's run, unless
    `trust` allows it.
    """
    with _rest_of(run, models, keep_going=keep_going, trust=trust, lease=lease) as (job, outcome):
        return outcome(job is not None and work(job, watch))


async def resume_here(
    run: Path | Place, watch: Watch | None = None, models: ModelChoices | None = None, *, trust: Trust | None = None
) -> Outcome:
    """As `resume`, in the caller's running event loop (`evalwright.run.loop.work_here`)."""
    with _rest_of(run, models, trust=trust) as (job, outcome):
        return outcome(job is not None and await work_here(job, watch))


def retry(
    run: Path | Place,
    *,
    evaluator_failures: bool = False,
    watch: Watch | None = None,
    models: ModelChoices | None = None,
    keep_going: bool = False,
    trust: Trust | None = None,
    lease: str | None = None,
) -> Outcome:
    """Run again the cells whose target errored, and those that never ran; with the flag, also those that failed.

    `lease` as for `resume`.
    """

    def repeated(history: History) -> frozenset[int]:
        return frozenset(
            n
            for n in range(len(history.traced))
            if history.errored[n] or (evaluator_failures and history.judged[n] and not history.passed[n])
        )

    with _rest_of(run, models, repeated, keep_going=keep_going, trust=trust, lease=lease) as (job, outcome):
        return outcome(job is not None and work(job, watch))


Repeated = Callable[[History], frozenset[int]]
"""The finished cells that are run again, for `retry`."""


class _Opened(NamedTuple):
    """A stored run that is to be resumed."""

    place: Place
    writer: RunWriter
    plan: Plan
    secrets: Mapping[str, str]
    environment: Mapping[str, str]
    history: History
    files: Mapping[str, str]
    """SHA-256 (hex) when the run was made, by path, of the files that are used to continue it."""


@contextmanager
def _opened_for_work(
    run: Path | Place, signals: Signals, trust: Trust | None, repeated: Repeated | None
) -> Iterator[_Opened]:
    place = find_run(run)
    with closing(place.store.read(place.run_id)) as reader:
        trust = trust or Trust()
        idle = repeated is None and reader.plan is not None and is_finished(reader, Grid(reader.plan))
        checked = runnable(reader, trust, idle=idle)
    place = find_run(run, checked.secrets)
    with closing(place.store.open(place.run_id)) as writer:
        secrets = dict(checked.secrets)
        if not checked.foreign:
            secrets = {**revealed(writer, checked.secrets), **secrets}
        assert writer.plan is not None, "it was there a moment ago"
        plan = checked.plan_of(writer.plan)
        with signals.raising(KeyboardInterrupt):
            history = history_of(writer, Grid(plan))
        if checked.unseen and history.finished_cells < len(history.traced):  # a record has been lost since
            must_be_own(writer, plan)
        files = writer.plan.files
        if checked.foreign and checked.suite is not None:  # what the run names is not even opened
            files = recorded_for(checked.suite, files, writer.plan.config_path)
        yield _Opened(place, writer, plan, secrets, checked.environment, history, files)


@contextmanager
def _rest_of(
    run: Path | Place,
    models: ModelChoices | None,
    repeated: Repeated | None = None,
    *,
    keep_going: bool = False,
    trust: Trust | None,
    lease: str | None = None,
) -> Iterator[tuple[Job | None, Callable[[bool], Outcome]]]:
    """Like `_new_run`, for a stored run: what is left of it and the finished cells that are `repeated`.

    There is no job if nothing is left to do.
    """
    with (
        Signals(owns_process()) as signals,
        _opened_for_work(run, signals, trust, repeated) as (place, writer, plan, secrets, variables, history, files),
    ):
        if keep_going:
            plan.run = msgspec.structs.replace(plan.run, stop_after_errors=0)
        again = whole_comparisons(plan, writer, repeated(history) if repeated else frozenset())
        sequence = None
        if plan.until_decided is not None:
            from evalwright.run.sequence import stored_sequence

            sequence = stored_sequence(writer, plan, again)
        total = len(history.traced)
        finished = history.finished_cells
        decided = sequence is not None and sequence.decided
        idle = (finished == total or decided) and not again
        state = RunState(address=str(place))
        _lease(lease, writer, plan, models, state, history.spent_usd, idle=idle)
        if idle:
            why = "every cell is finished" if repeated is None else "no cell to run again"
            why = "it is decided" if decided else why
            yield None, partial(_conclude_idle, place, writer, plan, finished, f"nothing to do: {why}")
            return
        masker = Masker.of(secrets, os.environ)
        drop_manifest(Path(writer.location))
        with Session(models=partial(live_models, plan, models, masker, state), environment=variables) as here:
            hide(secrets)
            here.import_paths(plan.import_paths)  # evaluators are built before the systems, whose folders they share
            must_have_keys(plan, writer, models)
            mirrors = None
            if plan.mirrors:
                from evalwright.run.steps.mirror import MirrorsOfPlan

                mirrors = MirrorsOfPlan(plan, masker, writer)
            begin(state, plan, history, again, models)
            job = Job(plan, writer, Tally.of(plan), state, mirrors, history, again, signals)
            if sequence is not None:
                sequence.listen(job.state)
            before = f"{finished:,} of {counted(total, 'cell')} were already finished"
            changed = _changed_files(files)

            def ended(over: bool) -> Outcome:
                note = (before if repeated is None else _ran_again(len(again), state)) + changed
                return conclude(place, writer, plan, fold(writer, plan), over, note, mirrors=mirrors, state=state)

            with state.named_in_errors():
                yield job, ended


def _conclude_idle(place: Place, writer: RunWriter, plan: Plan, finished: int, note: str, interrupted: bool) -> Outcome:
    """Sum up a run in which nothing is left to do.

    Finished cells that have a verdict and no results count as damage: nothing else would say why they are missing.
    """
    earlier, tally = [writer.summary()], fold(writer, plan)
    if (lost := finished - tally.cells) > 0 and not unreadable_records(writer):
        writer.damage.append(missing_results(lost))
    return conclude(place, writer, plan, tally, interrupted, note, earlier=earlier)


def _lease(
    ledger: str | None,
    writer: RunWriter,
    plan: Plan,
    models: ModelChoices | None,
    state: RunState,
    spent: float,
    *,
    idle: bool,
) -> None:
    """Take part in the ledger again; what the shard held in it becomes what its records say that it has spent.

    Without a ledger, raises InputError for a shard that needs one, unless it is `idle`.
    """
    if ledger is None:
        if plan.shard is not None and not idle:
            from evalwright.run.shards import must_need_no_lease

            must_need_no_lease(plan, models)
        return
    from evalwright.run.leases import take_part
    from evalwright.run.model_costs import spent_on_models

    limited = models is not None and models.budget_usd is not None
    take_part(ledger, plan, models, state).hold(plan.run_id, spent, spent_on_models(writer, plan) if limited else 0.0)


def _changed_files(files: Mapping[str, str]) -> str:
    """The files that were edited since the run was made: its older cells are those of the older code."""
    names = ", ".join(str(seen_from_here(path)) for path in changed_since(files))
    return f"; changed since the run was made: {names} (suite and cases are those that the run stored)" if names else ""


def _ran_again(again: int, state: RunState) -> str:
    """How many cells this session has run again; it may have been stopped before all of them."""
    if state.done == state.total:
        return f"{counted(again, 'finished cell')} run again"
    wanted = state.total - state.already_done
    return f"{state.done - state.already_done:,} of {counted(wanted, 'cell')} run again"
