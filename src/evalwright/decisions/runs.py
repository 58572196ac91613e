"""Two stored runs, variant by variant: what both have, what changed between them, and the decision about each."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import partial
from typing import Any

import msgspec

from evalwright.decisions.engine import EXIT_CODES, decision_of
from evalwright.decisions.identity import Identity, identity_of, some_names
from evalwright.decisions.judged import JudgedCell, JudgedPair
from evalwright.decisions.looks import Looks, looks_of
from evalwright.decisions.pairing import CaseGroups, scale_of, shared_cases
from evalwright.decisions.sides import PASS_RATE, SideCounts
from evalwright.decisions.slices import labelled
from evalwright.decisions.terms import Terms
from evalwright.decisions.unfinished import planned_sides
from evalwright.errors import AllMistakes, InputError, Problem, counted, did_you_mean
from evalwright.model.damage import located_damage, unreadable_records
from evalwright.model.decision import UNREAD, Decision
from evalwright.model.plan import Plan
from evalwright.model.protocols import RunReader
from evalwright.scoring.case_names import recorded_name, under_names_of
from evalwright.scoring.tally import has_only_scores

__all__ = ["JudgedRuns", "TwoRuns", "one_run", "pairs_of", "two_runs"]

_OPINION = ": the verdict is about its opinion"


class JudgedRuns(msgspec.Struct):
    """One evaluator in both runs: its verdicts by variant and case, with human labels where there are any."""

    evaluator: str
    a: dict[str, dict[str, list[JudgedCell]]]
    b: dict[str, dict[str, list[JudgedCell]]]
    notes: list[str] = []
    """How far the labellers of each run agree, where several labelled the same answers, and which labels are left
    out."""

    def has_labels(self) -> bool:
        """Whether any of the verdicts has a human label."""
        sides = (*self.a.values(), *self.b.values())
        return any(cell.human is not None for side in sides for cells in side.values() for cell in cells)


class TwoRuns(msgspec.Struct):
    """Both runs, folded once."""

    a: dict[str, SideCounts]
    b: dict[str, SideCounts]
    identity: Identity
    terms: Terms
    known: CaseGroups
    judged: list[JudgedRuns] = []
    uncalibrated: list[str] = []
    """Judges without labels."""
    before: Any = None
    """Run A, its cases under the names that they have in run B."""
    unlike_planned: list[str] = []
    """Runs whose cells are not those that were planned: not all were run yet, or results decided how many were."""
    has_only_scores: bool = False
    """Whether no score of B's suite passes by itself; see `RunSummary.scored`."""
    looks: Looks | None = None
    """The order of a run that ran until decided: B's, if both did."""
    mistakes: AllMistakes = msgspec.field(default_factory=AllMistakes)
    """What the terms ask for and the runs do not have; nothing is decided then."""
    damage: Callable[[], list[str]] = list
    """See `unread`."""

    @property
    def unread(self) -> list[str]:
        """Records of either run that could not be read so far: what they held could turn the decision.

        Verdicts, which no decision needs, are read for its reasons only.
        """
        return self.damage()

    def know(self, judged: Sequence[JudgedRuns], uncalibrated: Sequence[str]) -> None:
        """Take in what the labels of both runs say about their judges; cases of A still have their own names."""
        names: Mapping[str, str] = getattr(self.before, "names", {})
        self.uncalibrated = [*uncalibrated]
        self.judged = [
            msgspec.structs.replace(
                part,
                a={
                    variant: {names.get(c, c): cells for c, cells in by_variant.items()}
                    for variant, by_variant in part.a.items()
                },
            )
            for part in judged
        ]

    def decision(self, before: str, after: str, only: Collection[str] | None = None) -> Decision:
        """The decision about one variant of each, over all cases or `only` some; a variant can be without cells.

        Raises InputError if there are mistakes, and for numbers that are too large.
        """
        self.mistakes.refuse()
        a, b = self.a.get(before, SideCounts(before)), self.b.get(after, SideCounts(after))
        if only is not None:
            a, b = a.of(only), b.of(only)
        known = self.known._replace(groups=self.groups_of(a, b))
        judged = [JudgedPair(j.evaluator, j.a.get(before, {}), j.b.get(after, {})) for j in self.judged]
        if only is not None:
            judged = [pair.of(frozenset(only)) for pair in judged]
        try:
            decision = decision_of(a, b, self.terms, self.identity, known, judged, self.looks)
        except OverflowError as error:  # scores of a format may be any numbers, and statistics square them
            names = before if before == after else f"{before} and {after}"
            metric = self.terms.metric
            what = "costs or tokens" if metric == PASS_RATE else f"the scores of {metric}"
            raise InputError(f"{what} ({names}) are too large to be compared") from error
        decision.warnings += [*self._lines_about_judges(decision), *self.unread, *self.unlike_planned]
        if self.unread and decision.verdict != "dont":
            decision.verdict, decision.exit_code = "undecided", EXIT_CODES["undecided"]
            decision.reasons.append(UNREAD)
        return decision

    def groups_of(self, a: SideCounts, b: SideCounts) -> Mapping[str, str]:
        """The groups of the cases: their own, or those asked for."""
        return {**a.groups, **b.groups} if self.terms.group is None else self.known.groups

    def _lines_about_judges(self, decision: Decision) -> list[str]:
        """Whose opinion the verdict is about."""
        if self.judged and self.terms.metric != PASS_RATE:
            return [f"labels correct pass rates, not the metric {self.terms.metric!r}"]
        lines = [f"judge {name} uncalibrated: verdict is about the judge's opinion" for name in self.uncalibrated]
        lines += [f"judge {part.evaluator}: {note}" for part in self.judged for note in part.notes]
        judge = decision.judge
        if judge is not None and judge.ci is None:
            lines.append(f"judge {judge.evaluator}: {judge.note}{'' if judge.turns else _OPINION}")
        elif judge is not None and judge.note:
            lines.append(f"judge {judge.evaluator}: the corrected difference {judge.note}")
        return lines

    def dominated(self, pairs: Sequence[tuple[str, str]]) -> dict[str, list[str]]:
        """The variants of B, among those decided together, that are dominated by others."""
        from evalwright.decisions.tradeoffs import dominated

        sides = {after: self.b[after] for _, after in pairs}
        return dominated(sides, self.terms, self.known) if len(sides) > 1 else {}

    def latency_change(self, before: str, after: str) -> float | None:
        """The difference of the mean latencies of all judged trials, in milliseconds."""
        one, other = self.a[before].mean("latency")[0], self.b[after].mean("latency")[0]
        return None if one is None or other is None else other - one

    def refuse_changed(self, *, cases: bool = False) -> None:
        """Raise InputError if an evaluator changed; with `cases`, also if a case did."""
        problems = []
        if cases and self.identity.cases:
            changes = (
                f"{len(self.identity.cases):,} of {counted(self.identity.shared, 'case')} changed between the runs"
            )
            problems.append(
                Problem("", f"{changes}: {some_names(self.identity.cases)} (--allow-changed leaves them out)")
            )
        if self.identity.evaluators:
            names = some_names(self.identity.evaluators)
            problems.append(
                Problem("", f"evaluator {names} changed between the runs (--allow-changed compares anyway)")
            )
        if problems:
            raise InputError(problems)

    def refuse_strangers(self, before: str, after: str) -> None:
        """Raise InputError if the runs have no case in common, or all common cases changed."""
        both = shared_cases(self.a[before].passes, self.b[after].passes)
        if not any(both.times):
            raise InputError(f"{before} in A and {after} in B have no case in common: nothing can be paired")
        if self.terms.keep_changed or not self.identity.cases:
            return
        shared = set(both.listed()[0])
        if shared <= set(self.identity.cases):
            changed = (
                f"all {counted(len(shared), 'case')} that both runs have changed: {some_names(self.identity.cases)}"
            )
            raise InputError(f"{changed}; nothing can be paired (--allow-changed of compare pairs them anyway)")


def two_runs(reader_a: RunReader, plan_a: Plan, reader_b: RunReader, plan_b: Plan, terms: Terms) -> TwoRuns:
    """Fold both runs. A metric, slice or group that they do not have is among the mistakes."""
    if reader_b.plan is not None:
        reader_a = under_names_of(reader_b.cases, plan_b, reader_a, plan_a)
    a, b = planned_sides(reader_a, plan_a), planned_sides(reader_b, plan_b)
    runs = TwoRuns(a, b, identity_of(reader_a, plan_a, reader_b, plan_b), terms, CaseGroups(), before=reader_a)
    runs.damage = partial(located_damage, reader_a, reader_b)
    runs.unlike_planned = [
        *_partial("A", plan_a, a),
        *_partial("B", plan_b, b),
        *_stop_warnings({"A": plan_a, "B": plan_b}),
        *_only_scores(plan_b, terms, b),
    ]
    runs.has_only_scores = has_only_scores(plan_b)
    runs.looks = _looks(reader_b, plan_b, b, is_b=True) or _looks(reader_a, plan_a, a, is_a=True)
    with runs.mistakes:
        _check_metric(terms.metric, a, b)  # the others are about its values
        with runs.mistakes:
            _check_margin(terms, a, b)
        _check_population(terms, a, b)
    if terms.slices or terms.group not in (None, "none"):
        with runs.mistakes:
            runs.known = labelled(reader_b, terms, earlier=reader_a)
    return runs


def one_run(reader: RunReader, plan: Plan, terms: Terms) -> TwoRuns:
    """The variants of one run against each other: nothing between them can have changed."""
    sides = planned_sides(reader, plan)
    runs = TwoRuns(sides, sides, Identity(shared=plan.cases_total), terms, CaseGroups(), before=reader)
    runs.damage = lambda: [f"cannot be read: {note}" for note in unreadable_records(reader)]
    runs.unlike_planned = [
        *_partial("the run", plan, sides),
        *_stop_warnings({"the run": plan}),
        *_only_scores(plan, terms, sides),
    ]
    runs.looks = _looks(reader, plan, sides, is_a=True, is_b=True)
    if terms.slices or terms.group not in (None, "none"):
        runs.known = labelled(reader, terms)
    return runs


def _partial(name: str, plan: Plan, sides: Mapping[str, SideCounts]) -> Iterable[str]:
    """That the verdict is about a part of the run; a run that ended because it was decided says that instead."""
    missing = plan.cells_planned - sum(side.cells for side in sides.values())
    if missing > 0 and plan.until_decided is None:
        yield f"{name} is partial: {missing:,} of {counted(plan.cells_planned, 'cell')} not run"


def _only_scores(plan: Plan, terms: Terms, sides: Mapping[str, SideCounts]) -> Iterable[str]:
    """That a pass rate says little of a suite in which no score passes."""
    if terms.metric == PASS_RATE and has_only_scores(plan):
        names = ", ".join(sorted({name for side in sides.values() for name in side.scores}))
        yield (
            "the suite has only scores, and passed means here that all of them are 1: "
            f"evalwright decide --metric NAME compares a mean score (NAME: {names})"
        )


def _stop_warnings(plans: Mapping[str, Plan]) -> Iterable[str]:
    names = [name for name, plan in plans.items() if plan.until_decided is not None]
    if names:
        ran = f"{' and '.join(names)} ran until decided, so the number of cases depends on the results"
        yield f"{ran}: interval and p of the difference are valid at any time, and all others overstate the certainty"


def _looks(
    reader: RunReader, plan: Plan, sides: Mapping[str, SideCounts], *, is_a: bool = False, is_b: bool = False
) -> Looks | None:
    if plan.until_decided is None:
        return None
    cases = list(reader.cases())
    known = {case for side in sides.values() for case in side.passes}
    return looks_of(plan, cases, {case.key: recorded_name(case, known) for case in cases}, is_a=is_a, is_b=is_b)


def pairs_of(runs: TwoRuns, variant: str | None = None, variants: str | None = None) -> list[tuple[str, str]]:
    """The names, before and after, of the variants to decide: one `variant`, `A:B,…`, or those that both runs have.

    Raises InputError for unknown names, and if the runs have none in common.
    """
    if variant and variants:
        raise InputError("--variant and --variants: expected one of them, found both")
    if variants:
        entries = [entry.partition(":") for entry in variants.split(",") if entry.strip()]
        pairs = [(one.strip(), other.strip() or one.strip()) for one, _, other in entries]
    elif variant:
        pairs = [(variant, variant)]
    elif len(runs.a) == len(runs.b) == 1:
        pairs = [(next(iter(runs.a)), next(iter(runs.b)))]
    else:
        pairs = [(name, name) for name in runs.a if name in runs.b]
    known = f"A has {', '.join(runs.a) or 'none'}; B has {', '.join(runs.b) or 'none'}"
    unknown = [
        repr(one if one == other else f"{one}:{other}")
        for one, other in pairs
        if one not in runs.a or other not in runs.b
    ]
    if unknown or not pairs:
        problem = f"no variant {', '.join(unknown)}" if unknown else "no variant is"
        raise InputError(f"{problem} in both runs ({known}; --variants A:B pairs them)")
    return pairs


def _check_population(terms: Terms, a: Mapping[str, SideCounts], b: Mapping[str, SideCounts]) -> None:
    """Raise InputError if trials cannot be the sample: a single one says nothing about their variation."""
    if terms.population != "suite":
        return
    trials = [
        max((outcome.judged for side in sides.values() for outcome in side.outcomes(terms.metric).values()), default=0)
        for sides in (a, b)
    ]
    if min(trials) < 2:
        sides_with_one = " and ".join(name for name, most in zip("AB", trials, strict=True) if most < 2)
        raise InputError(f"population suite needs at least 2 trials of a case on both sides: 1 in {sides_with_one}")


def _check_metric(metric: str, a: Mapping[str, SideCounts], b: Mapping[str, SideCounts]) -> None:
    mine, theirs = ({name for side in sides.values() for name in side.scores} for sides in (a, b))
    if metric != PASS_RATE and metric not in mine & theirs:
        known = [PASS_RATE, *sorted(mine & theirs)]
        raise InputError(f"no metric {metric!r}{did_you_mean(metric, known)} (there are: {', '.join(known)})")


def _check_margin(terms: Terms, a: Mapping[str, SideCounts], b: Mapping[str, SideCounts]) -> None:
    """Raise InputError for a margin so large that no loss would matter. Scores that are all the same have no range."""
    if terms.margin is None:
        return
    try:
        scales = [scale_of(one, other, terms.metric) for one in a.values() for other in b.values()]
        width = max((scale.width for scale in scales), default=1.0)
    except OverflowError as error:
        raise InputError(f"the scores of {terms.metric} are too large to be compared") from error
    if 0 < width <= terms.margin:
        mistake = f"expected less than the range of {terms.metric} ({width:g}), found {terms.margin:g}"
        raise InputError([Problem("--margin", mistake)])
