"""A new run of a suite, from its plan to its outcome."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from evalwright.errors import InputError
from evalwright.files.masker import Masker
from evalwright.model.plan import Plan, Plugin
from evalwright.model.snapshot import Case, with_digest
from evalwright.registry import load
from evalwright.run.cells import RunState
from evalwright.run.locations import RUNS, Place, address_of, store_of
from evalwright.run.loop import Job, Watch, begin, targets_of, work, work_here
from evalwright.run.models import live_models
from evalwright.run.options import RunOptions
from evalwright.run.outcomes import Outcome, conclude, is_decided
from evalwright.run.plan import documents, may_call_models, plan_of
from evalwright.run.selection import chosen_cases, with_warnings
from evalwright.scoring.tally import Tally
from evalwright.session import Session, hide, owns_process
from evalwright.session.signals import Signals
from evalwright.stores.lock import turn_to_create

if TYPE_CHECKING:
    from evalwright.model.suite import Suite
    from evalwright.run.sequence import Sequence
    from evalwright.run.shards import BegunShard

__all__ = ["run_suite", "run_suite_here"]


def run_suite(suite: Suite, options: RunOptions | None = None, watch: Watch | None = None) -> Outcome:
    """Run every cell of a suite into a new run folder; if `out` already contains this shard, it is resumed.

    Raises InputError (nothing was run) or StorageError (what was written stays valid, and `resume` continues).
    """
    options = options or RunOptions()
    with ExitStack() as turn:
        if options.shard is not None and options.out is not None:
            out, shard = options.out.absolute(), options.shard
            turn.enter_context(turn_to_create(out, f"shard-{shard.index}", f"{shard} in {options.out}"))
            if (stored := _begun_shard(suite, options)) is not None:
                turn.close()
                return _resumed_shard(stored, suite, options, watch)
        with _new_run(suite, options) as (job, outcome):
            turn.close()
            return outcome(work(job, watch))


async def run_suite_here(suite: Suite, options: RunOptions | None = None, watch: Watch | None = None) -> Outcome:
    """As `run_suite`, in the caller's running event loop (`evalwright.run.loop.work_here`)."""
    with _new_run(suite, options or RunOptions()) as (job, outcome):
        return outcome(await work_here(job, watch))


def _begun_shard(suite: Suite, options: RunOptions) -> BegunShard | None:
    """The shard that an earlier session of the same command line left in the place that this one would use."""
    from evalwright.run.shards import begun_shard

    masker = Masker.of(suite.secrets, os.environ)
    cases, config = map(with_digest, chosen_cases(suite, options)), documents(suite, masker)["config.yaml"]
    return begun_shard(plan_of(suite, options), cases, options, masker, config)


def _resumed_shard(stored: BegunShard, suite: Suite, options: RunOptions, watch: Watch | None) -> Outcome:
    from evalwright.run.origin import Trust
    from evalwright.run.resumption import resume

    trust, models = Trust(suite, plan=stored.plan), options.models
    if models is not None and models.budget_usd is not None and options.lease is None:
        models = replace(models, spent_usd=stored.spent_on_models())
    return resume(stored.folder, watch, models, keep_going=options.keep_going, trust=trust, lease=options.lease)


def _check_order(suite: Suite, options: RunOptions) -> None:
    """Raises InputError for a choice that would call cases without those that they continue from."""
    if suite.dependence and (options.shard is not None or options.until_decided):
        raise InputError(
            f"{suite.source}: {suite.dependence}, so all cases have to be run in one session and in their order: run "
            f"it without {'--until-decided' if options.shard is None else '--shard'}"
        )


def _check_exports(plan: Plan, suite: Suite) -> None:
    """Raises InputError for result files that cannot be written, or would overwrite what is tested."""
    own = {os.path.realpath(path) for path in (suite.source, *suite.files)}
    for export in plan.exports:
        written = load("exports", export.type)(export.config)
        if hasattr(written, "check"):
            written.check()
        if places := [str(place) for place in getattr(written, "places", ()) if os.path.realpath(place) in own]:
            raise InputError(f"{places[0]} is a file of the suite, which results would replace: name another place")


def _cases_to_store(
    plan: Plan, suite: Suite, options: RunOptions, masker: Masker, files: dict[str, bytes]
) -> tuple[Iterator[Case], Sequence | None]:
    """The cases in the order in which they are run, and what decides when there were enough of them.

    What is known only after the last case goes into the plan and the files then: warnings, a shard's share.
    """
    cases = with_warnings(plan, suite, map(with_digest, chosen_cases(suite, options)))
    if may_call_models(plan):
        from evalwright.run.missing_keys import with_keys

        cases = with_keys(plan, cases, options.models)
    if is_decided(plan):
        from evalwright.run.decisions import with_claims

        cases = with_claims(plan, options.out or suite.out, cases)
    sequence = None
    if options.until_decided:
        from evalwright.run.sequence import ordered

        sequence, cases = ordered(plan, cases, options, options.out or suite.out or RUNS)
    if plan.shard is not None:
        from evalwright.run.shards import with_shares

        cases = with_shares(plan, cases, masker, files)
    return cases, sequence


def _state(options: RunOptions, plan: Plan) -> RunState:
    """That of a new session; if its limits are leased, the ledger has been found."""
    state = RunState()
    if options.lease is not None:
        from evalwright.run.leases import take_part

        take_part(options.lease, plan, options.models, state)
    return state


@contextmanager
def _new_run(suite: Suite, options: RunOptions) -> Iterator[tuple[Job, Callable[[bool], Outcome]]]:
    """What is to be done, within a session, and the function that makes its outcome once it is known whether it was
    interrupted."""
    masker = Masker.of(suite.secrets, os.environ)
    store = options.store or store_of(suite, options.out, masker)
    _check_order(suite, options)
    plan = plan_of(suite, options)
    if not isinstance(plan.run.executor, msgspec.UnsetType):
        from evalwright.run.executors import must_be_possible

        must_be_possible(plan, plan.run.executor)
    if plan.exports:
        _check_exports(plan, suite)
    plan.seal = "ours"  # the store replaces this by the seal
    if options.out is not None:
        plan.store = Plugin("local_files", {"path": str(options.out)})
    state = _state(options, plan)
    models = partial(live_models, plan, options.models, masker, state)
    with Session(models=models, environment=suite.environment) as here:
        hide(suite.secrets)
        here.import_paths(plan.import_paths)  # judges are checked before the systems, which would add their folders
        if options.target is not None:
            targets_of(plan)  # a mistake in what the command line names is reported before there is a run folder
        files = documents(suite, masker)
        cases, sequence = _cases_to_store(plan, suite, options, masker, files)
        # Reading a long dataset may be interrupted; an existing run folder always has something stored.
        with (
            state.named_in_errors(),
            Signals(owns_process()) as signals,
            closing(store.create(plan, signals.each(cases), files)) as writer,
        ):
            if state.lease is not None:
                state.lease.hold(plan.run_id)
            begin(state, plan, None, frozenset(), options.models)
            if sequence is not None:
                sequence.begin(writer, plan, state)
            job = Job(plan, writer, Tally.of(plan), state, signals=signals)
            if plan.mirrors:
                from evalwright.run.steps.mirror import MirrorsOfPlan

                job.mirrors = MirrorsOfPlan(plan, masker)
            # a store that was passed in cannot be found by a path: no note can be left about it
            address = Path(writer.location) if options.store is not None else address_of(writer, plan, masker)
            place = Place(store, plan.run_id, address)
            state.address = "" if options.store is not None else str(place)
            yield job, lambda over: conclude(place, writer, plan, job.tally, over, mirrors=job.mirrors, state=state)
