"""What the command line and other programs call: run, resume, retry, re-evaluate, open a stored run."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager, nullcontext
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from evalwright.errors import counted
from evalwright.files.masker import Masker
from evalwright.llm.choices import ModelChoices
from evalwright.model.chat import Models
from evalwright.model.plan import Plan, Plugin
from evalwright.model.protocols import RunReader, RunWriter
from evalwright.model.snapshot import with_digest
from evalwright.registry import load
from evalwright.run.cells import RunState
from evalwright.run.judge import is_judge
from evalwright.run.locations import Place, address_of, find_run, labels_file, store_of
from evalwright.run.options import RunOptions
from evalwright.run.outcomes import Outcome, is_decided, summed_up
from evalwright.run.steps import mirroring_of
from evalwright.scoring.fold import fold
from evalwright.scoring.tally import Tally
from evalwright.session import Session, environment, hide, owns_process
from evalwright.session.signals import Signals

if TYPE_CHECKING:
    from evalwright.model.suite import Suite
    from evalwright.run.history import History
    from evalwright.run.loop import Job, Watch
    from evalwright.run.origin import Trust
    from evalwright.run.shards import Begun
    from evalwright.run.steps.mirror import Mirroring

__all__ = [
    "conclude",
    "models_of",
    "open_run",
    "re_evaluate",
    "resume",
    "resume_here",
    "retry",
    "run_suite",
    "run_suite_here",
]


def run_suite(suite: Suite, options: RunOptions | None = None, watch: Watch | None = None) -> Outcome:
    """Run every cell of a suite into a new run folder; a shard that its `out` holds already is resumed.

    Raises InputError (nothing was run) or StorageError (what was written stays valid, `resume` goes on).
    """
    from evalwright.run.loop import work

    options = options or RunOptions()
    if options.shard is not None and options.out is not None:
        from evalwright.run.origin import Trust

        if (stored := _begun(suite, options)) is not None:
            trust = Trust(suite, plan=stored.plan)
            return resume(stored.folder, watch, options.models, keep_going=options.keep_going, trust=trust)
    with _new_run(suite, options) as (job, outcome):
        return outcome(work(job, watch))


async def run_suite_here(suite: Suite, options: RunOptions | None = None, watch: Watch | None = None) -> Outcome:
    """As `run_suite`, in the caller's running event loop (`evalwright.run.loop.work_here`)."""
    from evalwright.run.loop import work_here

    with _new_run(suite, options or RunOptions()) as (job, outcome):
        return outcome(await work_here(job, watch))


def resume(
    run: Path | Place,
    watch: Watch | None = None,
    models: ModelChoices | None = None,
    *,
    keep_going: bool = False,
    trust: Trust | None = None,
) -> Outcome:
    """Run what an interrupted run has not finished; every finished cell stays as it is.

    Raises InputError for a run of somebody else, but for what `trust` says.
    """
    from evalwright.run.loop import work

    with _rest_of(run, models, _none_again, keep_going=keep_going, trust=trust) as (job, outcome):
        return outcome(job is not None and work(job, watch))


async def resume_here(run: Path | Place, watch: Watch | None = None, models: ModelChoices | None = None) -> Outcome:
    """As `resume`, in the caller's running event loop (`evalwright.run.loop.work_here`)."""
    from evalwright.run.loop import work_here

    with _rest_of(run, models, _none_again) as (job, outcome):
        return outcome(job is not None and await work_here(job, watch))


def retry(
    run: Path | Place,
    *,
    evaluator_failures: bool = False,
    watch: Watch | None = None,
    models: ModelChoices | None = None,
    keep_going: bool = False,
    trust: Trust | None = None,
) -> Outcome:
    """Run the cells again whose target errored, and those never run; with the flag, also those that failed."""
    from evalwright.run.loop import work

    def again(history: History) -> frozenset[int]:
        return frozenset(
            n
            for n in range(len(history.traced))
            if history.errored[n] or (evaluator_failures and history.judged[n] and not history.passed[n])
        )

    with _rest_of(run, models, again, keep_going=keep_going, trust=trust) as (job, outcome):
        return outcome(job is not None and work(job, watch))


def re_evaluate(
    run: Path | Place,
    *,
    add: str | None = None,
    suite: Suite | None = None,
    processes: int | None = None,
    concurrency: int | None = None,
    models: ModelChoices | None = None,
    watch: Watch | None = None,
    trust_run: bool = False,
    batch: bool = False,
) -> Outcome:
    """Judge the stored traces again without calling the system.

    With `add`, only the evaluator of that name: one of the run, of `suite`, or of the file the run came from.
    With `suite` alone, all of its evaluators and its pass criteria instead of the run's own. `concurrency` is the
    number of cells that may wait for models at once. What a run of somebody else says judges, and is filled in with
    variables, only with `trust_run`. With `batch` models are asked in batches, which may take a day: whoever is
    interrupted finds the answers by the same call.
    """
    from evalwright.run.batches import JudgeCalls, forget, in_batches
    from evalwright.run.missing_keys import must_have_keys
    from evalwright.run.origin import case_finder, suite_here
    from evalwright.run.re_evaluate import judge_again, processors

    if suite is None and not trust_run:
        place = find_run(run)
        with closing(place.store.read(place.run_id)) as reader:
            suite = suite_here(reader.plan)
    secrets: Mapping[str, str] = suite.secrets if suite else {}
    place = find_run(run, secrets)
    with _signals() as signals, closing(place.store.open(place.run_id)) as writer:
        stored, plan, secrets = _plan_to_judge(writer, add, suite, secrets, trust_run=trust_run)
        state = RunState(warnings=plan.warnings)
        masker = Masker.of(secrets, os.environ)
        asking = JudgeCalls(plan, models, concurrency)
        asking = in_batches(asking, writer) if batch else asking
        models = asking.models
        here = Session(models=models_of(plan, models, masker), environment=suite.environment if suite else None)
        with here, watch(state) if watch else nullcontext():
            must_have_keys(plan, writer, models, judging=add or "")
            judged = judge_again(
                asking.plan,
                writer,
                case_finder(writer, stored),
                partial(Tally.of, plan),
                state,
                # only a process of our own may be forked: in another, other threads may hold locks for ever
                processes or (processors() if here.owns_process else 1),
                add,
                asking.concurrency,
                signals,
            )
        forget(models)
        if writer.plan is not None and plan != stored:
            writer.save_plan(plan)
        outcome = conclude(place, writer, plan, judged.tally, False, *_notes(state.done, judged.kept))
        return replace(outcome, unreadable=judged.kept, of_original=writer.plan is None)


def _notes(judged: int, kept: int) -> list[str]:
    """What is said of a new judgement: the traces that were judged, and the cells whose trace cannot be read."""
    notes = [f"re-evaluated {counted(judged, 'trace')}"]
    if kept:
        notes.append(f"{counted(kept, 'cell')} without a trace that can be read: earlier results are kept")
    return notes


def _plan_to_judge(
    writer: RunWriter, add: str | None, suite: Suite | None, secrets: Mapping[str, str], *, trust_run: bool
) -> tuple[Plan, Plan, Mapping[str, str]]:
    """The plan as it is stored, the one to judge by, and the secrets in it."""
    from evalwright.run.origin import judged_by_suite, may_judge, plan_of_run, with_evaluators

    stored = plan_of_run(writer)
    if not may_judge(writer, stored, suite, trust_run):
        return stored, judged_by_suite(stored, add, suite), secrets
    secrets = {**secrets, **_revealed(writer, secrets)}
    stored = plan_of_run(writer)
    return stored, with_evaluators(stored, add, suite), secrets


def open_run(run: Path | Place) -> tuple[RunReader, Plan]:
    """A stored run for reading, and its plan; folders written by upstream evalh too."""
    from evalwright.run.origin import plan_of_run

    place = find_run(run)
    reader = place.store.read(place.run_id)
    return reader, plan_of_run(reader)


def _begun(suite: Suite, options: RunOptions) -> Begun | None:
    """The shard that an earlier session of the same command line left where this one would put it."""
    from evalwright.run.plan import plan_of
    from evalwright.run.selection import chosen_cases
    from evalwright.run.shards import begun_shard

    masker = Masker.of(suite.secrets, os.environ)
    return begun_shard(plan_of(suite, options), map(with_digest, chosen_cases(suite, options)), options, masker)


@contextmanager
def _new_run(suite: Suite, options: RunOptions) -> Iterator[tuple[Job, Callable[[bool], Outcome]]]:
    """What is to be done, within a session, and what makes its outcome once it is known whether it was interrupted."""
    from evalwright.run.loop import Job, targets_of
    from evalwright.run.plan import documents, may_call_models, plan_of
    from evalwright.run.selection import chosen_cases, with_warnings

    masker = Masker.of(suite.secrets, os.environ)
    store = options.store or store_of(suite, options.out, masker)
    plan = plan_of(suite, options)
    if not isinstance(plan.run.executor, msgspec.UnsetType):
        from evalwright.run.executors import must_be_possible

        must_be_possible(plan, plan.run.executor)
    plan.seal = "ours"  # the store puts the seal itself here
    if options.out is not None:
        plan.store = Plugin("local_files", {"path": str(options.out)})
    with Session(models=models_of(plan, options.models, masker), environment=suite.environment):
        if options.target is not None:
            targets_of(plan)  # a mistake in what the command line names shows before there is a run folder
        cases = with_warnings(plan, suite, map(with_digest, chosen_cases(suite, options)))
        if may_call_models(plan):
            from evalwright.run.missing_keys import with_keys

            cases = with_keys(plan, cases, options.models)
        if is_decided(plan):
            from evalwright.run.decided import with_baselines, with_slices

            if plan.shard is None:  # no baseline is asked for before all shards are merged
                with_baselines(plan, options.out or suite.out)
            cases = with_slices(plan, cases)
        sequence = None
        if options.until_decided:
            from evalwright.run.sequence import ordered

            sequence, cases = ordered(plan, cases, options, options.out or suite.out or Path("runs"))
        files = documents(suite, masker)
        if plan.shard is not None:
            from evalwright.run.shards import noting

            cases = noting(plan, cases, masker, files)
        # Reading a long dataset may be interrupted; of a run folder that is there, something is always stored.
        with (
            _signals() as signals,
            closing(store.create(plan, signals.each(cases), files)) as writer,
        ):
            state = _state(plan, None, frozenset(), options.models)
            if sequence is not None:
                sequence.begin(writer, plan, state)
            job = Job(plan, writer, Tally.of(plan), state, mirroring_of(plan, masker), signals=signals)
            # a store that was passed in cannot be found by a path: there is nothing to leave a note of
            address = Path(writer.location) if options.store is not None else address_of(writer, plan, masker)
            place = Place(store, plan.run_id, address)
            yield job, lambda over: conclude(place, writer, plan, job.tally, over, mirrors=job.mirrors, state=state)


class _Opened(NamedTuple):
    """A stored run that is to go on."""

    place: Place
    writer: RunWriter
    plan: Plan
    secrets: Mapping[str, str]
    environment: Mapping[str, str]
    history: History


@contextmanager
def _opened_for_work(run: Path | Place, signals: Signals, trust: Trust | None) -> Iterator[_Opened]:
    from evalwright.run.cells import Grid
    from evalwright.run.history import history_of
    from evalwright.run.origin import Trust, runnable

    place = find_run(run)
    with closing(place.store.read(place.run_id)) as reader:
        found = runnable(reader, trust or Trust())
    place = find_run(run, found.secrets)
    with closing(place.store.open(place.run_id)) as writer:
        secrets = dict(found.secrets)
        if found.foreign:
            hide(secrets)
        else:
            secrets = {**_revealed(writer, found.secrets), **secrets}
        assert writer.plan is not None, "it was there a moment ago"
        plan = found.plan_of(writer.plan)
        with signals.raising(KeyboardInterrupt):
            history = history_of(writer, Grid(plan))
        yield _Opened(place, writer, plan, secrets, found.environment, history)


def _revealed(writer: RunWriter, secrets: Mapping[str, str]) -> dict[str, str]:
    """Give a stored run the secrets that it names; they and those of its suite are masked on the screen, too."""
    reveal = getattr(writer, "reveal", None)  # older stores of other packages fill them in by themselves
    revealed: dict[str, str] = {} if reveal is None else reveal({**os.environ, **secrets})
    hide({**secrets, **revealed})
    return revealed


def _signals() -> Signals:
    return Signals(owns_process())


def _none_again(_: History) -> frozenset[int]:
    return frozenset()


@contextmanager
def _rest_of(
    run: Path | Place,
    models: ModelChoices | None,
    again_of: Callable[[History], frozenset[int]],
    *,
    keep_going: bool = False,
    trust: Trust | None = None,
) -> Iterator[tuple[Job | None, Callable[[bool], Outcome]]]:
    """As `_new_run` for a stored run: what is left of it and, of what is finished, the cells of `again_of`.

    There is no job where nothing is left to do.
    """
    from evalwright.run.loop import Job
    from evalwright.run.missing_keys import must_have_keys
    from evalwright.stores.manifest import drop_manifest

    with (
        _signals() as signals,
        _opened_for_work(run, signals, trust) as (place, writer, plan, secrets, variables, history),
    ):
        if keep_going:
            plan.run = msgspec.structs.replace(plan.run, stop_after_errors=0)
        again = again_of(history)
        sequence = None
        if plan.until_decided is not None:
            from evalwright.run.sequence import stored_sequence

            sequence = stored_sequence(writer, plan, again)
        total = len(history.traced)
        finished = sum(map(history.finished, range(total)))
        decided = sequence is not None and sequence.decided
        if (finished == total or decided) and not again:
            why = "every cell is finished" if again_of is _none_again else "no cell to run again"
            why = "it is decided" if decided else why
            yield None, lambda over: conclude(place, writer, plan, fold(writer, plan), over, f"nothing to do: {why}")
            return
        masker = Masker.of(secrets, os.environ)
        drop_manifest(Path(writer.location))
        with Session(models=models_of(plan, models, masker), environment=variables):
            must_have_keys(plan, writer, models)
            mirrors = mirroring_of(plan, masker)
            state = _state(plan, history, again, models)
            job = Job(plan, writer, Tally.of(plan), state, mirrors, history, again, signals)
            if sequence is not None:
                sequence.listen(job.state)
            note = f"{finished} of {total} cells were finished already"
            if again_of is not _none_again:
                note = f"{len(again)} finished cells were run again"
            yield (
                job,
                lambda over: conclude(
                    place, writer, plan, fold(writer, plan), over, note, mirrors=mirrors, state=job.state
                ),
            )


def _state(plan: Plan, history: History | None, again: frozenset[int], models: ModelChoices | None) -> RunState:
    from evalwright.run.cells import Grid, most_at_once

    total = Grid(plan).total
    finished = 0 if history is None else sum(history.finished(n) and n not in again for n in range(total))
    spent = 0.0 if history is None else history.spent_usd
    most, warning = most_at_once(plan, total - finished)
    if warning:
        plan.warnings = [*plan.warnings, warning]
    state = RunState(total=total, done=finished, already_done=finished, cost_usd=spent, warnings=plan.warnings)
    state.at_once = most
    if plan.shard is not None:
        from evalwright.run.shards import said_at_start

        state.about = said_at_start(plan, models)
    return state


def conclude(
    place: Place,
    writer: RunWriter,
    plan: Plan,
    tally: Tally,
    interrupted: bool,
    *notes: str,
    mirrors: Mirroring | None = None,
    state: RunState | None = None,
) -> Outcome:
    """Store the summary, tell the mirrors, and say what came of the session."""
    summary = summed_up(tally, writer, plan, datetime.now(UTC))
    stopped = [*dict.fromkeys(state.stuck.values())] if state is not None and summary.cells_missing else []
    summary.warnings = [*summary.warnings, *stopped]
    if any(map(is_judge, plan.evaluators)) or labels_file(writer).is_file():
        from evalwright.run.calibration import keep_calibration

        keep_calibration(writer, plan, summary)
    if plan.until_decided is not None:
        from evalwright.run.sequence import keep_decision

        keep_decision(writer, plan)
    if mirrors is not None:
        mirrors.finish(summary)
    writer.save_summary(summary)
    if plan.shard is not None:
        from evalwright.run.shards import closed

        notes = (*notes, *closed(writer, plan, summary))
    for export in plan.exports if plan.shard is None else ():
        load("exports", export.type)(export.config).write(writer, plan, summary)
    return Outcome(place.address, plan, summary, interrupted, [*notes, *stopped, *writer.damage], place)


def models_of(plan: Plan, choices: ModelChoices | None, masker: Masker) -> Callable[[], Models]:
    """Makes the models of a run when the first question is asked, in its session; nothing is imported before."""

    def make() -> Models:
        from evalwright.llm.models import LiveModels
        from evalwright.run.plan import has_list_prices

        given = choices or ModelChoices()
        if plan.shard is not None:
            from evalwright.run.shards import limits_of

            given = limits_of(plan, given)
        given = replace(given, mask=masker.mask_text)
        return LiveModels(plan.prices, given, environment(), built_in_prices=has_list_prices(plan))

    return make
