"""Re-evaluate stored traces: the system is not called, and its code not even imported.

Every trace is read once, in as many processes as there are processors, each with a part of the file. Nothing that grows
with the number of traces is held, except eight bytes each to find superseded ones.
"""

from __future__ import annotations

import contextlib
from contextlib import closing
from pathlib import Path
from typing import NamedTuple

from evalwright.errors import InputError, Interrupted
from evalwright.evaluators.build import build, declared, parts_read
from evalwright.files.bulk import collector_eased
from evalwright.model.cell_index import index_of
from evalwright.model.plan import EvaluatorSpec, Plan
from evalwright.model.protocols import JudgementShare, RunWriter
from evalwright.model.trace import Trace
from evalwright.model.trace_parts import trace_with
from evalwright.model.traits import Traits
from evalwright.run.batches import JudgeCalls
from evalwright.run.cells import RunState
from evalwright.run.children import processors
from evalwright.run.comparisons import compares_cells
from evalwright.run.expectations import expects
from evalwright.run.judge import by_common_rule, evaluators_call_models
from evalwright.run.judge_part import JudgingJob
from evalwright.run.judge_processes import import_ahead, judge_in_processes
from evalwright.run.newest import newest_of
from evalwright.run.stored_run import CaseOf
from evalwright.run.unreadable_traces import judged_before, keep_judgements, lost_traces
from evalwright.scoring.tally import Tally
from evalwright.session import returning, session
from evalwright.session.signals import Signals
from evalwright.stores.manifest import drop_manifest

__all__ = ["RejudgedRun", "judge_again"]

_FEW_LOOKS = 50_000
"""So many looks at a trace take a fifth of a second; a further process would take a sixth of that for its start."""
_MOST_SHOWN = 5


def _worthwhile(plan: Plan, cells: int) -> int:
    """How many processes judge: one for so few looks that a further process would hardly save any time."""
    quick = not plan.evaluators_by_case and all(_looks(spec) for spec in plan.evaluators)
    return 1 if quick and cells * len(plan.evaluators) <= _FEW_LOOKS else processors()


def _looks(spec: EvaluatorSpec) -> bool:
    return declared("evaluators", spec.type).looks


def _onlookers(plan: Plan) -> list[Traits] | None:
    """What the evaluators declare, if all of them only look at traces and nothing but their results decides about a
    cell."""
    if plan.evaluators_by_case or not by_common_rule(plan) or not all(map(_looks, plan.evaluators)):
        return None
    return [build(spec).traits for spec in plan.evaluators]


def _needs_cases(onlookers: list[Traits] | None, writer: RunWriter) -> bool:
    """Whether anything that is judged may depend on a case; in others' folders, a trace that lost its case must be
    reported in any case."""
    if writer.plan is None or onlookers is None:
        return True
    keys: frozenset[str] = frozenset()
    for traits in onlookers:
        if traits.uses_case and traits.expected_keys is None:
            return True
        keys |= traits.expected_keys if traits.uses_case and traits.expected_keys else frozenset()
    return bool(keys) and expects(writer, keys)


class RejudgedRun(NamedTuple):
    """The outcome of a re-evaluation."""

    tally: Tally
    kept: int
    """Cells whose traces cannot be read, and which keep their earlier results."""


@returning()
def judge_again(
    calls: JudgeCalls,
    writer: RunWriter,
    case_of: CaseOf,
    state: RunState,
    signals: Signals,
    *,
    processes: int | None,
    only: str | None,
) -> RejudgedRun:
    """Replace all results and verdicts of a run; with `only`, those of one evaluator, keeping the others.

    So many `processes` judge, with None as many as are worth their start. Evaluators that call models run here, on as
    many cells at once as `calls` says (by default as the run did).
    The old set stays until the new one is complete, and the calls are answered. Raises InputError for a trace whose
    case is gone, if no trace can be read, and for results of a later major version; and KeyboardInterrupt for Ctrl-C,
    SIGTERM or SIGHUP.
    """
    plan = calls.plan
    with signals.raising(KeyboardInterrupt):
        newest = newest_of(writer)
        before = judged_before(writer)
    state.total = newest.count
    together = bool(only) or evaluators_call_models(plan) or compares_cells(plan, writer)
    parts = writer.parts(1 if together else processes or _worthwhile(plan, newest.count))
    onlookers, width = _onlookers(plan), calls.concurrency or plan.run.max_concurrency
    needs_cases = _needs_cases(onlookers, writer)
    kind = Trace if onlookers is None else trace_with(frozenset[str]().union(*map(parts_read, plan.evaluators)))
    judgements = writer.rewrite_judgements()
    job = JudgingJob(plan, writer, case_of, newest, needs_cases, kind, only, width)
    try:
        with signals.raising():
            shares = [judgements.share(i) for i in range(len(parts))]
            if len(parts) > 1:
                import_ahead(plan)
            # what is there now is visited neither here nor in the children; elsewhere the collector is not ours
            with collector_eased() if session().owns_process else contextlib.nullcontext():
                tally = judge_in_processes(job, parts, shares, state, signals)
            kept = _cells_kept(job, before, state.done, judgements.share(len(parts)))
        calls.must_be_answered()
        drop_manifest(Path(writer.location))
        judgements.commit()
        if (index := index_of(writer, "never")) is not None:  # brought up to date, as its rows are at hand
            index.close()
    except Interrupted:
        judgements.abandon()
        raise KeyboardInterrupt from None
    except BaseException:  # whatever ends it, the old results are the ones that count
        judgements.abandon()
        raise
    return RejudgedRun(tally, kept)


def _cells_kept(job: JudgingJob, before: int, judged: int, share: JudgementShare) -> int:
    """The number of cells that keep their old results. Raises InputError if there are no others."""
    with closing(share):
        if not lost_traces(job.writer, before, judged):
            return 0
        earlier = keep_judgements(job.writer.traces(job.kind), job.writer, job.newest, share)
    if not judged:
        damage = [*job.writer.damage] or ["there are none"]
        raise InputError(f"no trace of {job.writer.location} can be read: {'; '.join(damage[:_MOST_SHOWN])}")
    return earlier
