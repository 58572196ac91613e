"""From two folded sides to a decision: the only place where runs are decided."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from evalwright.decisions.approximations import approximations_of
from evalwright.decisions.changes import changed_part
from evalwright.decisions.guards import guard_parts
from evalwright.decisions.identity import Identity, some_names
from evalwright.decisions.judged import JudgedPair, judge_parts
from evalwright.decisions.kinds import kinds_of_both, tallied
from evalwright.decisions.looks import Looks
from evalwright.decisions.outlook import next_part
from evalwright.decisions.pairing import CaseGroups, Counting, Ground, Pairs, ValueRange, scale_of
from evalwright.decisions.secondary import evaluator_parts, slice_parts
from evalwright.decisions.sensitivity import error_part
from evalwright.decisions.sides import PASS_RATE, CaseTotal, SideCounts, units_of_cases
from evalwright.decisions.terms import DEFAULT_MARGIN, Terms
from evalwright.errors import counted
from evalwright.model.decision import BETTING, ChangedPart, Decision, DecisionVerdict, SideRate, SlicePart
from evalwright.statistics.gates import non_inferiority
from evalwright.statistics.rates import rate_of_units, score_ends

__all__ = ["EXIT_CODES", "decision_of", "side_rate"]

EXIT_CODES: dict[DecisionVerdict, int] = {"ship": 0, "dont": 1, "undecided": 3}


def decision_of(
    a: SideCounts,
    b: SideCounts,
    terms: Terms,
    identity: Identity,
    known: CaseGroups,
    judged: Sequence[JudgedPair] = (),
    looks: Looks | None = None,
) -> Decision:
    """Decide whether side B may replace side A; `judged` are the judges of both sides that have human labels, and
    `looks` is the order of the cases if results decided how many there are."""
    scale = scale_of(a, b, terms.metric)
    margin = DEFAULT_MARGIN * scale.width if terms.margin is None else terms.margin
    alpha = terms.alpha / terms.family
    left_out = frozenset(() if terms.keep_changed else identity.cases)
    ground = Ground(a, b, terms, scale, margin, alpha, known.groups, left_out)
    counting, pairs = ground.counting(scale), ground.pairs()
    decided = ground.decided(pairs) if looks is None else looks.decided(ground, ground.decided(pairs))
    one, other = ground.outcomes()
    decision = Decision(
        verdict=decided.verdict,
        metric=terms.metric,
        variant_a=a.variant,
        variant_b=b.variant,
        alpha=terms.alpha,
        margin=margin,
        better=terms.better,
        population=terms.population,
        group=terms.group,
        family=terms.family,
        method=decided.method,
        difference=decided.difference,
        ci=decided.ci,
        p_better=decided.p_value,
        p_margin=decided.p_margin,
        p_equivalent=_equivalence_p(decided.method, pairs, margin, alpha),
        n=decided.n,
        units=decided.units,
        effective_units=decided.effective_units,
        trials=(_most_trials(one), _most_trials(other)),
        a=side_rate(counting.over(one), known.groups, terms.metric, alpha, scale),
        b=side_rate(counting.over(other), known.groups, terms.metric, alpha, scale),
        errors=error_part(ground, decided.verdict),
        judge=judge_parts(ground, judged, decided.verdict),
        slices=slice_parts(ground, known.slices),
        guards=guard_parts(ground),
        evaluators=evaluator_parts(ground),
        changed=_changed_part(ground, counting),
        identity=identity.part(*_cases_of_one_side(one, other)),
    )
    if looks is not None:
        _leave_fixed_numbers_out(decision)
    _settle(decision, terms.slice_margin)
    decision.warnings = list(_warnings(decision, identity, ground, counting, pairs))
    if decision.verdict == "undecided" and looks is None:
        decision.next = next_part(decision, pairs, b, better=terms.better)
    return decision


def _leave_fixed_numbers_out(decision: Decision) -> None:
    """Intervals of rates rest on a fixed number of cases; errors need no reading: bets take them for the worst."""
    decision.errors.all_failed = decision.errors.all_passed = decision.a.ci = decision.b.ci = None
    decision.errors.same_verdict = True


def _changed_part(ground: Ground, counting: Counting) -> ChangedPart:
    if ground.terms.metric != PASS_RATE:
        return ChangedPart()
    return changed_part(ground.shared(), counting, None if ground.groups else ground.alpha)


def _equivalence_p(method: str | None, pairs: Pairs, margin: float, alpha: float) -> float | None:
    """By Student's t, if that is the method and cases are independent."""
    if method != "t" or pairs.grouped or not margin:
        return None
    differences = [unit.total for unit, times in pairs.units.parts.items() for _ in range(times)]
    return non_inferiority([0.0] * len(differences), differences, margin, alpha).p_equivalence_tost


def _settle(decision: Decision, slice_margin: float | None) -> None:
    """The verdict that remains after missing verdicts, guards and slices, or the reasons why there is none."""
    if decision.verdict == "undecided":
        decision.reasons.append("units" if decision.units == 1 < decision.n else "data")
    elif not decision.errors.same_verdict:
        decision.verdict = "undecided"
        decision.reasons += decision.errors.missing
    elif decision.judge is not None and decision.judge.turns:
        decision.verdict = "undecided"
        decision.reasons.append("judge")
    states = {guard.state for guard in decision.guards}
    if "broken" in states:
        decision.verdict, decision.reasons = "dont", []
    elif decision.verdict == "ship" and "undecided" in states:
        decision.verdict = "undecided"
        decision.reasons.append("guard")
    if slice_margin is not None and (
        lost := [part for part in decision.slices if _is_shown_worse(part, slice_margin, decision)]
    ):
        decision.verdict = "dont"
        decision.reasons = [f"slice {part.key}={part.value}" for part in lost]
    decision.exit_code = EXIT_CODES[decision.verdict]


def _is_shown_worse(part: SlicePart, margin: float, decision: Decision) -> bool:
    """Whether a slice is shown to be worse by more than the margin, adjusted for the number of slices."""
    if part.p_margin is None or part.difference is None:
        return False
    return part.difference < -margin and part.p_margin <= decision.alpha / decision.family


def side_rate(
    outcomes: Mapping[str, CaseTotal], groups: Mapping[str, str], metric: str, alpha: float, scale: ValueRange
) -> SideRate:
    """One side's rate over its own cases: Wilson with design effect; for scores Student's t, guarded if few differ."""
    units = units_of_cases(outcomes, groups)
    if not units.n:
        return SideRate()
    if metric == PASS_RATE:
        rate = rate_of_units(units, 1 - alpha)
        return SideRate(rate.rate, rate.ci, units.n)
    return SideRate(units.mean, score_ends(units, alpha, scale.low, scale.high), units.n)


def _most_trials(outcomes: Mapping[str, CaseTotal]) -> int:
    return max((o.judged + o.target_errors + o.evaluator_errors for o, _ in tallied(outcomes)), default=0)


def _cases_of_one_side(one: Mapping[str, CaseTotal], other: Mapping[str, CaseTotal]) -> tuple[list[str], list[str]]:
    """The cases of one side only, of either."""
    pairs = kinds_of_both(one, other)
    if pairs is not None and sum(pairs.times) == len(one) == len(other):
        return [], []
    return sorted(one.keys() - other.keys()), sorted(other.keys() - one.keys())


def _warnings(decision: Decision, identity: Identity, ground: Ground, counting: Counting, pairs: Pairs) -> list[str]:
    """What a reader must know besides the numbers."""
    lines = []
    terms, scale = ground.terms, ground.scale
    shared, what = identity.shared, "compared anyway" if terms.keep_changed else "left out"
    if identity.cases:
        lines.append(
            f"{len(identity.cases):,} of {counted(shared, 'case')} changed: {what}: {some_names(identity.cases)}"
        )
    if identity.evaluators:
        lines.append(f"evaluator {some_names(identity.evaluators)} changed between the runs: compared anyway")
    if identity.alone:
        lines.append(f"in one run only: evaluator {some_names(identity.alone)}")
    huge = [part.name for part in decision.evaluators if part.ci is None and part.rate_ci is not None]
    lines += [f"evaluator {name}: its scores are too large to be compared" for name in huge]
    if not identity.checked:
        lines.append("whether cases or evaluators changed was not checked: no hashes")
    if decision.n and not scale.width:
        lines.append("no spread: all scores of both sides are the same, and their type declares no range")
    lines += approximations_of(decision, ground, counting, pairs)
    for name, side in (("A", decision.a), ("B", decision.b)):
        if decision.n * 2 < side.n:
            lines.append(_few_paired(decision.n, side.n, name))
    if decision.method == BETTING and "errors" in decision.errors.missing:
        both = [errors.target + errors.evaluator for errors in (decision.errors.a, decision.errors.b)]
        lines.append("errors (A {:,}, B {:,}) count as the worst that they could have been".format(*both))
    if terms.population == "suite":
        short = sum(1 for side in (decision.a, decision.b) if side.n > decision.n)
        left = "; cases with fewer than 2 judged trials on a side are left out" if short else ""
        lines.append(f"population suite: these cases are all there are, and only their trials are a sample{left}")
    if terms.group == "none":
        lines.append("groups are switched off: cases count as independent")
    return lines


def _few_paired(paired: int, of: int, side: str) -> str:
    if of == 1:
        return f"the only case of {side} is not paired"
    if not paired:
        return f"none of the {of:,} cases of {side} is paired"
    return f"only {paired:,} of the {of:,} cases of {side} {'is' if paired == 1 else 'are'} paired"
