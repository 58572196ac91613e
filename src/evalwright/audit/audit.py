"""Audit a stored run: its traces are changed, and judged by its evaluators; the system is not called."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager, nullcontext
from functools import partial
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

from evalwright.audit.bench import Bench
from evalwright.audit.counts import AuditedTrace, Counts
from evalwright.audit.evaluators import AuditedEvaluators
from evalwright.audit.mutants import Mutant, mutants_of, use_mutants_of
from evalwright.audit.mutations import USE_MUTATIONS
from evalwright.audit.samples import Donors, Sample
from evalwright.errors import InputError, counted
from evalwright.files.masker import Masker
from evalwright.files.temporary import temporary_folder
from evalwright.llm.choices import ModelChoices
from evalwright.model.audit import AuditReport
from evalwright.model.plan import Plan
from evalwright.model.protocols import RunReader
from evalwright.model.snapshot import Case
from evalwright.model.trace import Trace
from evalwright.run.cells import RunState
from evalwright.run.limits import Watchdog, end_loose_tasks, new_loop, run_to_end
from evalwright.run.locations import Place, find_run
from evalwright.run.missing_keys import must_have_keys
from evalwright.run.models import live_models
from evalwright.run.re_evaluation import plan_to_judge, suite_to_judge
from evalwright.run.recorded_plan import as_traces_record
from evalwright.run.stored_artifacts import StoredArtifacts
from evalwright.run.stored_run import CaseOf, case_finder
from evalwright.session import Session, owns_process, returning, session
from evalwright.session.signals import Signals

if TYPE_CHECKING:
    from evalwright.model.suite import Suite
    from evalwright.run.loop import Watch

__all__ = ["audit_run"]

_TOGETHER = 10
"""Traces that are judged at the same time, with their mutants: they may wait for models."""


def audit_run(
    run: Path | Place,
    *,
    limit: int,
    judges: bool = False,
    suite: Suite | None = None,
    models: ModelChoices | None = None,
    watch: Watch | None = None,
    trust_run: bool = False,
) -> AuditReport:
    """Judge mutants of up to `limit` traces that passed; no record of the run changes.

    Evaluators that call models are left out unless `judges`. With a `suite`, its evaluators are audited. What another
    user's run names is used only with `trust_run`. Raises InputError for a run in which nothing can be audited.
    """
    suite = suite_to_judge(run, suite, trust_run=trust_run)
    secrets: Mapping[str, str] = suite.secrets if suite else {}
    place = find_run(run, secrets)
    with (
        Signals(owns_process()) as signals,
        closing(place.store.read(place.run_id)) as reader,
        _unpacked_artifacts(reader) as artifacts,
    ):
        stored, plan, secrets = plan_to_judge(reader, None, suite, secrets, trust_run=trust_run)
        evaluators = AuditedEvaluators(as_traces_record(plan, reader), judges=judges)
        plan = evaluators.plan
        state = RunState(warnings=plan.warnings)
        here = Session(
            models=partial(live_models, plan, models, Masker.of(secrets, os.environ), state),
            environment=suite.environment if suite else None,
        )
        with here, watch(state) if watch else nullcontext():
            here.import_paths(plan.import_paths)
            if judges:
                must_have_keys(plan, reader, models, judging="", suite=suite)
            with signals.raising(KeyboardInterrupt):
                case_of = case_finder(reader, stored, suite)
                reader.plan = stored  # by it, verdicts are derived in a folder that another program wrote
                audit = _Audit(evaluators, reader, case_of, Sample(reader, limit), state, artifacts)
                audit.work()
    return audit.report(stored)


@contextmanager
def _unpacked_artifacts(reader: RunReader) -> Iterator[Path | None]:
    """A temporary folder with the artifacts that another program keeps only in tables; None for all other runs."""
    unpack = getattr(reader, "unpack_artifacts", None)
    if reader.plan is not None or unpack is None:
        yield None
        return
    with temporary_folder() as folder:
        unpack(folder)
        yield folder


class _Audit:
    """The traces of a sample, each with all its mutants."""

    def __init__(
        self,
        evaluators: AuditedEvaluators,
        reader: RunReader,
        case_of: CaseOf,
        sample: Sample,
        state: RunState,
        artifacts: Path | None,
    ) -> None:
        self._evaluators, self._reader, self._case_of = evaluators, reader, case_of
        self._sample, self._state, self._artifacts = sample, state, artifacts
        self._counts = Counts()
        self._cost_usd = 0.0
        state.total = len(sample)

    @returning()
    def work(self) -> None:
        if not self._sample.passed:
            raise InputError(f"no cell of {self._reader.location} passed: there is no answer to make mutants of")
        watchdog = Watchdog(session().owns_process)
        bench = Bench(self._evaluators.plan, watchdog)
        with watchdog, closing(bench), closing(new_loop()) as loop:
            try:
                run_to_end(loop, self._judge(bench))
            finally:
                end_loose_tasks(loop)
                loop.run_until_complete(session().aclose())
        self._cost_usd = bench.cost_usd

    async def _judge(self, bench: Bench) -> None:
        plan = self._evaluators.plan
        artifacts = StoredArtifacts(plan, self._reader, self._artifacts) if bench.uses_artifact else None
        donors = Donors(self._sample.traces())
        while batch := [*islice(donors.traces, _TOGETHER)]:
            audits = [self._audited(bench, trace, passed, donors, artifacts) for trace, passed in batch]
            for audited in await asyncio.gather(*audits):
                self._counts.add(audited)

    async def _audited(
        self, bench: Bench, trace: Trace, passed: bool, donors: Donors, artifacts: StoredArtifacts | None
    ) -> AuditedTrace:
        """What the evaluators find in a trace and, if it passed and passes here, in its mutants."""
        case = self._evaluators.of(self._case_of(trace))
        artifact = artifacts.of(trace) if artifacts else None
        (before,) = await bench.judged(case, [trace], artifact)
        self._state.advance(1)
        mutants = [*self._mutants(case, trace, donors)] if passed and before.passes else []
        changed = [mutant.trace for mutant in mutants if mutant.trace is not None]
        verdicts = iter(await bench.judged(case, changed, artifact))
        pairs = [(mutant, None if mutant.trace is None else next(verdicts)) for mutant in mutants]
        return AuditedTrace(trace, passed, before, pairs)

    def _mutants(self, case: Case, trace: Trace, donors: Donors) -> Iterator[Mutant]:
        yield from mutants_of(trace, donors.other_than(trace))
        if self._evaluators.limit_use(case):
            yield from use_mutants_of(trace)

    def report(self, plan: Plan) -> AuditReport:
        counts = self._counts
        mutations = counts.mutations()
        use_tested = any(mutation.mutants for mutation in mutations if mutation.mutation in USE_MUTATIONS)
        if not counts.traces and not counts.unjudged:
            raise InputError(
                "no trace that passed in the run passes by the evaluators of this audit alone"
                + "".join(f"; {name} {why}" for name, why in self._evaluators.left_out.items())
            )
        if counts.traces and not any(mutation.mutants for mutation in mutations):
            looked = counted(counts.traces, "trace")
            raise InputError(f"no mutation changes anything in {looked}: no answers, calls or steps")
        notes = []
        if counts.not_passing:
            number = counted(counts.not_passing, "trace")
            notes.append(f"{number} left out: passed in the run, and not by the evaluators of this audit alone")
        return AuditReport(
            plan.run_id,
            plan.name,
            plan.config_path,
            self._sample.passed,
            counts.traces,
            sum(mutation.mutants for mutation in mutations),
            counts.caught(),
            sum(mutation.errors for mutation in mutations),
            mutations,
            [self._evaluators.with_note(evaluator, use_tested=use_tested) for evaluator in counts.evaluators()],
            counts.survivors,
            self._evaluators.left_out,
            counts.error_example,
            self._cost_usd,
            counts.unjudged,
            notes,
        )
