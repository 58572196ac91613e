"""Re-evaluation of stored traces, by the evaluators of their run or by others; the system is not called."""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextlib import closing, nullcontext
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from evalwright.errors import InputError, counted
from evalwright.files.masker import Masker
from evalwright.llm.choices import ModelChoices
from evalwright.model.damage import MendedDamage
from evalwright.model.plan import Plan
from evalwright.model.protocols import RunReader
from evalwright.run.batches import JudgeCalls, forget, in_batches
from evalwright.run.cells import RunState
from evalwright.run.judge import evaluators_call_models
from evalwright.run.judge_again import judge_again
from evalwright.run.locations import Place, find_run
from evalwright.run.missing_keys import must_have_keys
from evalwright.run.models import live_models
from evalwright.run.origin import judged_by_suite, may_judge, suite_here, with_evaluators
from evalwright.run.outcomes import Outcome, conclude
from evalwright.run.recorded_plan import as_traces_record
from evalwright.run.stored_run import case_finder, has_lost_its_plan, plan_of_run, revealed
from evalwright.session import Session, owns_process
from evalwright.session.signals import Signals

if TYPE_CHECKING:
    from evalwright.model.suite import Suite
    from evalwright.run.loop import Watch

__all__ = ["plan_to_judge", "re_evaluate", "suite_to_judge"]

_MIRRORS = "mirrors were not updated: they keep the earlier results"


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

    With `add`, only that evaluator judges: the run's, one of `suite`, or one of the run's suite file. `suite` alone
    replaces the run's evaluators and pass criteria. At most `concurrency` cells wait for models at once. What another
    user's run names is used only with `trust_run`. A `batch` may take a day; repeating an interrupted call goes on.
    """
    suite = suite_to_judge(run, suite, trust_run=trust_run)
    secrets: Mapping[str, str] = suite.secrets if suite else {}
    place = find_run(run, secrets)
    with Signals(owns_process()) as signals, closing(place.store.open(place.run_id)) as writer:
        stored, plan, secrets = plan_to_judge(writer, add, suite, secrets, trust_run=trust_run)
        state = RunState(warnings=plan.warnings)
        if batch and not (plan.evaluators_by_case or evaluators_call_models(plan)):
            raise InputError("--batch: no evaluator of this run calls a model")
        masker = Masker.of(secrets, os.environ)
        calls = JudgeCalls(as_traces_record(plan, writer), models, concurrency)
        calls = in_batches(calls, writer) if batch else calls
        models = calls.models
        here = Session(
            models=partial(live_models, plan, models, masker, state), environment=suite.environment if suite else None
        )
        with here, watch(state) if watch else nullcontext():
            here.import_paths(plan.import_paths)  # because systems are not built here, which would add their folders
            must_have_keys(plan, writer, models, judging=add or "", suite=suite)
            judged = judge_again(
                calls,
                writer,
                case_finder(writer, stored, suite),
                state,
                signals,
                # only a process of our own may be forked: in another, other threads may hold locks for ever
                processes=processes or (None if here.owns_process else 1),
                only=add,
            )
        forget(models)
        if writer.plan is not None and (kept := _to_keep(plan, stored)) != stored:
            writer.save_plan(kept)
        writer.damage[:] = [note if note.startswith("traces") else MendedDamage(note) for note in writer.damage]
        notes = [*_notes(state.done, judged.kept), *([_MIRRORS] if plan.mirrors else [])]
        outcome = conclude(place, writer, plan, judged.tally, False, *notes)
        of_original = writer.plan is None and not has_lost_its_plan(writer)
        return replace(outcome, unreadable=judged.kept, of_original=of_original)


def _notes(judged: int, kept: int) -> list[str]:
    """What a re-evaluation reports: how many traces were judged, and the cells whose trace cannot be read."""
    notes = [f"re-evaluated {counted(judged, 'trace')}"]
    if kept:
        notes.append(f"{counted(kept, 'cell')} without a readable trace: earlier results are kept")
    return notes


def _to_keep(plan: Plan, stored: Plan) -> Plan:
    """The plan to store: of another user's run, also what was left out for this judgement, as others may trust it."""
    paths = [*dict.fromkeys([*stored.import_paths, *plan.import_paths])]
    return msgspec.structs.replace(plan, exports=stored.exports, mirrors=stored.mirrors, import_paths=paths)


def suite_to_judge(run: Path | Place, suite: Suite | None, *, trust_run: bool) -> Suite | None:
    """The suite that the user named, or that of another user's run if it is in the user's project; None if the run's
    own word is used."""
    if suite is not None or trust_run:
        return suite
    place = find_run(run)
    with closing(place.store.read(place.run_id)) as reader:
        return suite_here(reader)


def plan_to_judge(
    reader: RunReader, add: str | None, suite: Suite | None, secrets: Mapping[str, str], *, trust_run: bool
) -> tuple[Plan, Plan, Mapping[str, str]]:
    """The stored plan, the plan to judge by, and the secrets in it."""
    if (mask_cases := getattr(reader, "mask_cases", None)) is not None:
        mask_cases()  # or a secret that a case expects would never be found in traces, which have a mask
    stored = plan_of_run(reader)
    if not may_judge(reader, stored, suite, trust_run):
        return stored, judged_by_suite(stored, add, suite), secrets
    secrets = {**secrets, **revealed(reader, secrets)}
    stored = plan_of_run(reader)
    return stored, with_evaluators(stored, add, suite), secrets
