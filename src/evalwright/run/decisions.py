"""What is decided once a run has ended: its variants compared with the baseline, and the claims of its gate."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing, suppress
from functools import partial
from pathlib import Path
from typing import Any

from evalwright.decisions.claims import all_of, decided_against, decided_rates, terms_of, without_baseline
from evalwright.decisions.comparison import against_baseline
from evalwright.decisions.identity import some_names
from evalwright.decisions.runs import TwoRuns, one_run, pairs_of, two_runs
from evalwright.decisions.terms import Terms
from evalwright.decisions.tradeoffs import dominated
from evalwright.errors import InputError, Problem, did_you_mean
from evalwright.formats.shared.claims import with_claimed_keys
from evalwright.model.cell_index import rereading
from evalwright.model.plan import Plan
from evalwright.model.protocols import RunReader
from evalwright.model.snapshot import Case
from evalwright.model.summary import GateOutcome, RunSummary
from evalwright.run.baselines import baseline_of
from evalwright.run.judged_pairs import judges_of_runs
from evalwright.run.locations import Place, find_run
from evalwright.run.sequence import outcome_of
from evalwright.run.stored_run import plan_of_run

__all__ = ["add_decisions", "add_tradeoffs", "with_claims"]

_PROMOTED = "baseline"


class _Baselines:
    """Which runs a gate's claims are compared with: a run used once stays in use, whatever is promoted later."""

    def __init__(self, stored: GateOutcome | None, *, again: bool) -> None:
        """`again`: the run is only looked at, so that a claim without a baseline still has none."""
        known = None if stored is None else stored.baselines
        self._known = known if isinstance(known, dict) else {}
        self._again = again
        self._unknown = again and stored is not None and not isinstance(known, dict)
        self.found: dict[str, str | None] = {}
        self.lost: bool = False
        """Whether the run with which a claim was compared is no longer known, or cannot be found."""

    def baseline(self, against: str, plan: Plan, reader: RunReader) -> Place | str | None:
        """What a claim is compared with, in the form of `_baseline`. Raises InputError."""
        if self._unknown and against == _PROMOTED:
            self.lost = True
        baseline = self._known.get(against)
        if baseline is None:
            if self._again and against in self._known:
                self.found[against] = None
                return None
            now = _baseline(against, plan, reader)
            if isinstance(now, Place) and _is_of(reader, plan, now):
                now = None
            if not isinstance(now, str):
                self.found[against] = None if now is None else now.run_id
            return now
        self.found[against] = baseline
        beside = Path(reader.location).parent / baseline
        for find in (partial(_baseline, against, plan, reader), partial(find_run, beside)):
            with suppress(InputError):
                place = find()
                if isinstance(place, Place) and place.run_id == baseline and not _is_of(reader, plan, place):
                    return place
        self.lost = True
        raise InputError(f"its baseline {baseline} was not found")


def _is_of(reader: RunReader, plan: Plan, place: Place) -> bool:
    """Whether the run at a place is the one that is read. A run of another folder may have its id, if both began in the
    same second."""
    if place.run_id != plan.run_id:
        return False
    with closing(place.store.read(place.run_id)) as other:
        return Path(other.location).resolve() == Path(reader.location).resolve()


@rereading
def add_decisions(summary: RunSummary, reader: RunReader, plan: Plan, shown: RunSummary | None = None) -> None:
    """Compare the variants with the baseline variant, and decide the claims of the gate, from the run's records.

    `shown` is the stored summary of a run that is only looked at again: if its baseline is no longer known, the gate's
    stored outcome still holds.
    """
    if plan.run.baseline_variant is not None:
        # if rates count errors as failed, as in evalh, comparisons do so as well
        terms = Terms(errors="fail" if plan.pass_criteria.errored_cases == "count" else "exclude")
        runs = one_run(reader, plan, terms)
        try:
            summary.comparison = against_baseline(runs, plan.run.baseline_variant)
            if all(variant.name != plan.run.baseline_variant for variant in plan.variants):
                summary.warnings.append(f"not compared with {plan.run.baseline_variant}: it is no system of this run")
        except InputError as error:  # the run has ended and is paid for
            summary.warnings.append(f"not compared with {plan.run.baseline_variant}: {error.headline}")
        _mark_dominated(summary, runs)
    claims = _claims(plan)
    stored = shown if shown is not None or not claims else reader.summary()
    baselines = _Baselines(None if stored is None else stored.gate, again=shown is not None)
    decisions = [_decided_claim(claim, reader, plan, baselines) for claim in claims]
    if plan.until_decided is not None:
        sequence, outcome = outcome_of(reader, plan)
        decisions.append(outcome)
        if sequence.decided:  # what it left out is not missing
            summary.status, summary.cells_missing = "complete", 0
    if decisions:
        summary.gate = all_of([*([summary.gate] if summary.gate is not None else []), *decisions])
        if baselines.found:
            summary.gate.baselines = baselines.found
    if baselines.lost and shown is not None:
        summary.gate = shown.gate


def add_tradeoffs(summary: RunSummary, reader: RunReader, plan: Plan) -> None:
    """Mark the variants that another one makes superfluous. Reads the records again if the run has several variants."""
    if len(summary.variants) > 1 and summary.scored is not True:
        _mark_dominated(summary, one_run(reader, plan, Terms()))


def _mark_dominated(summary: RunSummary, runs: TwoRuns) -> None:
    better_ones = dominated(runs.b, runs.terms, runs.known)
    for variant in summary.variants:
        variant.dominated_by = better_ones.get(variant.name, [])


def _claims(plan: Plan) -> list[dict[str, Any]]:
    return plan.gate["claims"] if plan.gate is not None and plan.gate["kind"] == "claims" else []


def _decided_claim(claim: Mapping[str, Any], reader: RunReader, plan: Plan, baselines: _Baselines) -> GateOutcome:
    """One claim. If it cannot be decided, the outcome says why, because the run has ended and is paid for."""
    if claim["claim"] == "at_least":
        return decided_rates(claim, one_run(reader, plan, terms_of(claim)))
    try:
        against = baselines.baseline(claim["against"], plan, reader)
        if against is None:
            return without_baseline(claim, "no other run was promoted (evalwright promote RUN)")
        if isinstance(against, str):
            pairs = [(against, v.name) for v in plan.variants if v.name != against]
            runs = one_run(reader, plan, terms_of(claim, len(pairs)))
            missing = [name for name in {name for pair in pairs for name in pair} if name not in runs.a]
            if missing or not pairs:
                why = f"{', '.join(sorted(missing))} has no cells" if missing else "there is no other variant"
                return without_baseline(claim, why)
            return decided_against(claim, runs, pairs)
        return _against_run(claim, against, reader, plan)
    except InputError as error:
        problems = [problem.message for problem in error.problems]
        return without_baseline(claim, "; ".join(problems) or error.headline)


def _against_run(claim: Mapping[str, Any], place: Place, reader: RunReader, plan: Plan) -> GateOutcome:
    with closing(place.store.read(place.run_id)) as before:
        plan_before = plan_of_run(before)
        runs = two_runs(before, plan_before, reader, plan, terms_of(claim))
        runs.know(*judges_of_runs(before, plan_before, reader, plan, None))
    if runs.identity.evaluators and not claim["allow_changed"]:
        names = some_names(runs.identity.evaluators)
        return without_baseline(claim, f"evaluator {names} changed since: promote a new run, or allow_changed: true")
    pairs = pairs_of(runs)
    runs.terms = terms_of(claim, len(pairs))
    for one, other in pairs:
        runs.refuse_strangers(one, other)
    return decided_against(claim, runs, pairs)


def _baseline(against: str, plan: Plan, reader: RunReader | None = None) -> Place | str | None:
    """A variant of the plan by its name, or a run: the promoted one (None if there is none), one by its path, from the
    suite's folder or the working directory, or one by its id, beside this run. Raises InputError if there is no such
    run."""
    names = [variant.name for variant in plan.variants]
    if against in names:
        return against
    beside = None if reader is None else Path(reader.location)
    if against == _PROMOTED:
        promoted = None if beside is None else baseline_of(beside, plan.name)
        return None if promoted is None else find_run(promoted)
    places = [Path(plan.config_path).parent / against]
    if beside is not None:
        places.append(beside.parent / against)
    existing = next((place for place in places if os.path.exists(place)), Path(against))
    try:
        return find_run(existing)
    except InputError as error:
        near = did_you_mean(against, [*names, _PROMOTED])
        raise InputError(
            f"no run or variant {against!r}{near}: expected {_PROMOTED} (the promoted run), the path or id of a run, "
            f"or a variant ({', '.join(names)})"
        ) from error


def _with_baselines(plan: Plan, runs: Path | None) -> None:
    """Raise InputError if a claim names a run that does not exist, before anything is paid for."""
    problems = []
    for claim in _claims(plan):
        against = claim.get("against")
        if against is None or (runs is not None and os.path.exists(runs / against)):
            continue
        try:
            _baseline(against, plan)
        except InputError as error:
            problems.append(Problem(plan.config_path, error.headline, key=f"gate.{claim['claim']}"))
    if problems:
        raise InputError(problems)


def with_claims(plan: Plan, out: Path | None, cases: Iterable[Case]) -> Iterator[Case]:
    """The cases, with what the gate's claims name checked: baselines now, slices and groups after the last case.

    Raises InputError. If a baseline is missing, the cases are still read to find further mistakes.
    """
    keyed_cases = with_claimed_keys(plan.gate, plan.config_path, cases)
    if plan.shard is not None:  # no baseline is needed before all shards are merged
        return keyed_cases
    try:
        _with_baselines(plan, out)
    except InputError as error:
        problems = list(error.problems)
        try:
            deque(keyed_cases, maxlen=0)
        except InputError as later:
            problems += later.problems
        raise InputError(problems) from error
    return keyed_cases
