"""Runs that end as soon as they are decided: the order of their cases, and what is stored of their verdicts.

The cases of such a run are stored in the order in which their units (groups, or single cases) are looked at, so that a
later session continues where this one stopped. What was looked at follows from the records alone. If A is another run,
its outcomes are stored as they were at the start, so that re-evaluating A changes no bet.
"""

from __future__ import annotations

import random
from collections.abc import Collection, Iterable, Iterator
from contextlib import closing, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import msgspec

from evalwright.decisions.identity import identity_of_cases, some_names
from evalwright.decisions.sequence import Bet, UnitSequence
from evalwright.decisions.sides import CaseTotal, sides_of
from evalwright.decisions.terms import DEFAULT_MARGIN, margin_of
from evalwright.errors import InputError, counted, did_you_mean
from evalwright.files.durable import PRIVATE, replace_file
from evalwright.model.cell_index import rereading
from evalwright.model.decision import Decision
from evalwright.model.facts import VerdictFacts
from evalwright.model.plan import Plan, UntilDecided
from evalwright.model.protocols import RunReader
from evalwright.model.result import CaseVerdict, EvaluationResult, Status
from evalwright.model.snapshot import Case
from evalwright.model.summary import GateOutcome, GatePart
from evalwright.model.trace import Trace
from evalwright.run.cells import Grid, RunState
from evalwright.run.locations import find_run, folder_beside
from evalwright.run.options import RunOptions
from evalwright.run.stored_run import plan_of_run
from evalwright.scoring.case_names import under_names_of

__all__ = ["Sequence", "keep_decision", "ordered", "outcome_of", "stored_sequence"]

DECISION = "decision.json"
_ALPHA = 0.05
_MOST_EARLIER = 50
"""Earlier runs that are searched for one to continue, newest first."""


class _Document(msgspec.Struct):
    """`decision.json`: what was fixed before the first cell, and what has been looked at since."""

    terms: UntilDecided
    run_id: str
    config_hash: str
    files: dict[str, str]
    units: list[list[str]]
    """In the order in which they are looked at."""
    largest: int
    """Number of cases in the suite's largest unit, by which others are weighed."""
    cells: int
    """Cells of one case: the trials of the variants that are run."""
    groups: dict[str, str] = {}
    before: dict[str, CaseTotal] | None = None
    """A's outcomes, if A is another run."""
    earlier: list[Bet] = []
    """The bets of the runs that this one continues."""
    beyond: int = 0
    """Units that are left out because of `--max-cases`."""
    bets: list[Bet] = []
    decision: Decision | None = None
    schema_version: str = "1.0"

    @property
    def evidence(self) -> list[Bet]:
        """All bets so far, in their order."""
        return [*self.earlier, *self.bets]

    def looking(self) -> UnitSequence:
        return UnitSequence(self.terms, self.units, self.cells, self.before, self.largest, self.earlier, self.beyond)


@dataclass(slots=True)
class Sequence:
    """What a session of the run observes and when it stops."""

    document: _Document
    looking: UnitSequence

    def listen(self, state: RunState) -> None:
        """Observe every finished cell, and end the run once it is decided."""
        state.listener = lambda case, trace, results, verdict: self._on_verdict(state, case, trace, results, verdict)
        self._end(state)

    def _on_verdict(
        self, state: RunState, case: Case, trace: Trace, _: Collection[EvaluationResult], verdict: CaseVerdict
    ) -> None:
        self.looking.count(case.key, trace.variant_name, verdict.status)
        self._end(state)

    def _end(self, state: RunState) -> None:
        limit = self.document.terms.max_cost_usd
        if self.looking.verdict is not None or (limit is not None and state.cost_usd >= limit):
            state.stopping = state.answered = True

    @property
    def decided(self) -> bool:
        return self.looking.verdict is not None

    def begin(self, writer: RunReader, plan: Plan, state: RunState) -> None:
        """Store what is fixed before the first cell of a new run, and listen."""
        self.document.run_id = plan.run_id
        _keep(self.document, writer)
        self.listen(state)


def keep_decision(writer: RunReader, plan: Plan) -> None:
    """Store what has been looked at so far, and the outcome."""
    _keep(outcome_of(writer, plan)[0].document, writer)


def _keep(document: _Document, reader: RunReader) -> None:
    folder = folder_beside(reader)
    folder.mkdir(parents=True, exist_ok=True)
    text = msgspec.json.format(msgspec.json.encode(document), indent=1)
    replace_file(folder / DECISION, text + b"\n", PRIVATE)


class _RunBefore(NamedTuple):
    """A: a run with its variant's outcomes, or None if it is a variant of the new run."""

    terms: UntilDecided
    outcomes: dict[str, CaseTotal] | None


def ordered(plan: Plan, cases: Iterable[Case], options: RunOptions, runs: Path) -> tuple[Sequence, Iterator[Case]]:
    """The sequence of a new run, and its cases in that order; the plan gets its terms, and a note of what is left out.

    Raises InputError if the run cannot be compared with A.
    """
    known = list(cases)
    before = _before(plan, known, options)
    kept = known if before.outcomes is None else [case for case in known if case.key in before.outcomes]
    if len(kept) < len(known):
        left = f"{len(known) - len(kept):,} of {counted(len(known), 'case')} are not in {options.against}: not run"
        plan.warnings = [*plan.warnings, left]
    if not kept:
        raise InputError(f"no case of the suite is in {options.against}: nothing can be paired")
    units: dict[object, list[Case]] = {}
    for case in kept:
        units.setdefault(case.group if case.group is not None else (case.key,), []).append(case)
    order = list(units.values())
    largest = max(map(len, order))
    random.Random(before.terms.seed).shuffle(order)
    earlier = _earlier(plan, before.terms, runs)
    terms = before.terms
    if earlier is not None:
        seen = {case for bet in earlier.evidence for case in bet.cases}
        order = [unit for unit in order if seen.isdisjoint(case.key for case in unit)]
        last = earlier.run_id if earlier.bets else earlier.terms.continues
        terms = msgspec.structs.replace(terms, continues=last)
        if not order:
            raise InputError(
                f"every unit of the suite was looked at by {terms.continues}, which is undecided: "
                "--seed N starts over, with a new order and a new capital"
            )
    units_left = len(order)
    order = _within(order, options.max_cases)
    plan.until_decided = terms
    document = _Document(
        terms=terms,
        run_id=plan.run_id,
        config_hash=plan.config_hash,
        files=plan.files,
        units=[[case.key for case in unit] for unit in order],
        largest=largest,
        cells=Grid(plan).per_case,
        groups={case.key: case.group for unit in order for case in unit if case.group is not None},
        before=before.outcomes,
        earlier=[] if earlier is None else earlier.evidence,
        beyond=units_left - len(order),
    )
    return Sequence(document, document.looking()), (case for unit in order for case in unit)


def _within(order: list[list[Case]], most: int | None) -> list[list[Case]]:
    """The first units with at most this many cases in total; at least one unit."""
    if most is None:
        return order
    taken, cases = 0, 0
    for unit in order:
        cases += len(unit)
        if cases > most and taken:
            break
        taken += 1
    return order[:taken]


@rereading
def _before(plan: Plan, cases: Collection[Case], options: RunOptions) -> _RunBefore:
    """Determines A and B."""
    against, names = options.against or "", [variant.name for variant in plan.variants]
    margin = DEFAULT_MARGIN if options.margin is None else margin_of(options.margin)
    seed, cost = options.seed or 0, options.max_cost
    if against in names:
        others = [name for name in names if name != against]
        if len(others) != 1:
            raise InputError(
                f"--against {against}: expected one other variant in the suite, found {len(others)}"
                f" ({', '.join(others) or 'none'})"
            )
        return _RunBefore(UntilDecided(against, None, against, others[0], margin, _ALPHA, seed, cost), None)
    if len(names) != 1:
        raise InputError(f"--until-decided decides one variant: name it with --target (there are: {', '.join(names)})")
    try:
        place = find_run(Path(against))
    except InputError as error:
        near = did_you_mean(against, names)
        raise InputError(f"--against: no run or variant {against!r}{near}: {error.headline or error}") from error
    with closing(place.store.read(place.run_id)) as reader:
        plan_a = plan_of_run(reader)
        renamed = under_names_of(lambda: cases, plan, reader, plan_a)
        sides = sides_of(renamed, plan_a)
        identity = identity_of_cases(renamed, plan_a, cases, plan)
    _refuse_changed(identity.cases, identity.evaluators, identity.alone, against)
    name = names[0] if names[0] in sides else next(iter(sides)) if len(sides) == 1 else None
    if name is None:
        raise InputError(f"{against} has no variant {names[0]!r} (it has: {', '.join(sides) or 'none with cells'})")
    outcomes = {case: outcome for case, outcome in sides[name].passes.items() if _looked_at(outcome)}
    return _RunBefore(UntilDecided(against, place.run_id, name, names[0], margin, _ALPHA, seed, cost), outcomes)


def _looked_at(outcome: CaseTotal) -> bool:
    return bool(outcome.judged or outcome.target_errors or outcome.evaluator_errors)


def _refuse_changed(cases: list[str], evaluators: list[str], alone: list[str], against: str) -> None:
    parts = [f"{counted(len(cases), 'case')} ({some_names(cases)})"] if cases else []
    parts += [f"evaluator {some_names(names)}" for names in (evaluators, alone) if names]
    if parts:
        raise InputError(
            f"changed since {against}: {' and '.join(parts)}: such answers cannot be compared; "
            "run the earlier system again on the suite as it is now"
        )


def _earlier(plan: Plan, terms: UntilDecided, runs: Path) -> _Document | None:
    """The newest run with the same question about the same files that ended undecided."""
    decisions = sorted(runs.glob(f"*_{plan.name}*/{DECISION}"), key=lambda path: path.parent.name, reverse=True)
    for path in decisions[:_MOST_EARLIER]:
        document = _read(path)
        if document is None or document.terms.run_id is None or document.terms.run_id != terms.run_id:
            continue
        same = all(
            getattr(document.terms, name) == getattr(terms, name)
            for name in ("variant_a", "variant_b", "margin", "alpha", "seed")
        )
        if same and document.config_hash == plan.config_hash and document.files == plan.files:
            if document.decision is None:
                document = _killed_document(path.parent) or document
            decided = document.decision is not None and document.decision.verdict != "undecided"
            return None if decided or not document.evidence else document
    return None


def _killed_document(folder: Path) -> _Document | None:
    """What a run that was killed had looked at, from its records; None if they cannot be found."""
    with suppress(InputError):
        place = find_run(folder)
        with closing(place.store.read(place.run_id)) as reader:
            return outcome_of(reader, plan_of_run(reader))[0].document
    return None


def _read(path: Path) -> _Document | None:
    try:
        return msgspec.json.decode(path.read_bytes(), type=_Document)
    except (OSError, msgspec.MsgspecError):
        return None


def stored_sequence(reader: RunReader, plan: Plan, again: Collection[int] = ()) -> Sequence:
    """The sequence of a stored run, from its records; cells in `again` will be counted once more.

    Raises InputError if its `decision.json` cannot be read.
    """
    path = folder_beside(reader) / DECISION
    document = _read(path)
    if document is None:
        raise InputError(f"{path} cannot be read: the order and the first bets of this run are in it")
    looking = document.looking()
    for case, variant, status in _finished_cells(reader, plan, frozenset(again)):
        looking.count(case, variant, status)
    return Sequence(document, looking)


def _finished_cells(reader: RunReader, plan: Plan, again: Collection[int]) -> Iterator[tuple[str, str, Status]]:
    """Case, variant and verdict of each cell whose newest trace has one."""
    from evalwright.run.history import history_of

    grid = Grid(plan)
    history = history_of(reader, grid)
    keys = [case.key for case in reader.cases()]
    newest: dict[int, VerdictFacts] = {}
    for mark in reader.verdicts(VerdictFacts):
        number = grid.number(mark.case_index, mark.variant_name, mark.trial)
        if number is None or number in again or not history.finished(number):
            continue
        if number not in newest or mark.attempt >= newest[number].attempt:
            newest[number] = mark
    for number in sorted(newest):
        mark = newest[number]
        yield keys[number // grid.per_case], mark.variant_name, mark.status


def outcome_of(reader: RunReader, plan: Plan) -> tuple[Sequence, GateOutcome]:
    """The outcome of a run that was to be decided, as its gate."""
    sequence = stored_sequence(reader, plan)
    document, terms = sequence.document, sequence.document.terms
    decision = sequence.looking.decision(document.groups)
    document.bets, document.decision = sequence.looking.bets, decision
    name = f"pass_rate of {terms.variant_b} not worse than {terms.against}"
    undecided = decision.verdict == "undecided"
    passed = decision.verdict == "ship"
    numbers = decision.difference, "gt", -terms.margin, decision.n, decision.ci, undecided
    part = GatePart(name, passed, *numbers, unit="points")
    reason = _undecided_reason(sequence) if undecided else ""
    return sequence, GateOutcome(passed, [part], reason, undecided=undecided, decision=decision)


def _undecided_reason(sequence: Sequence) -> str:
    document, looking, terms = sequence.document, sequence.looking, sequence.document.terms
    if looking.over and not document.beyond:
        return "every unit was looked at"
    limits = ["--max-cases"] if looking.over else []
    limits += [] if looking.over or terms.max_cost_usd is None else [f"--max-cost {terms.max_cost_usd:g}"]
    return ", ".join([f"stopped after {looking.looked:,} of {counted(looking.all_units, 'unit')}", *limits])
