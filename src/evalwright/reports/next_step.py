"""What to do after a decision that leaves something open."""

from __future__ import annotations

from evalwright.errors import money
from evalwright.model.decision import ALL_LOOKED_AT, BETTING, PARTIAL, UNREAD, Decision, ErrorPart, NextPart
from evalwright.reports.decision_words import bare

__all__ = ["next_step"]


def next_step(decision: Decision) -> str | None:
    """The next step in a sentence; None if the decision needs none."""
    undecided = decision.verdict == "undecided"
    if undecided and PARTIAL in decision.errors.missing:
        return "the cells that were not run: evalwright resume RUN"
    if decision.next is None:
        return _other_step(decision) if undecided else None
    cases = _more_cases(decision, decision.next)
    if decision.errors.same_verdict:
        return cases
    return f"{_errors_again(decision.errors)}; if that leaves it open, {cases}"


def _more_cases(decision: Decision, needed: NextPart) -> str:
    trials = f" × {needed.trials}" if needed.trials > 1 else ""
    if decision.units < decision.n < needed.cases:
        trials += f" in {needed.cases * decision.units / decision.n:,.0f} groups like these"
    cost = "" if needed.cost_usd is None else f", {money(needed.cost_usd)} more"
    difference = bare(decision.difference, decision.metric)
    return f'about {needed.cases:,} cases{trials} for "{needed.claim}" at 80 % if {difference} holds{cost}'


def _other_step(decision: Decision) -> str:
    """What to do if no number of cases like these would decide."""
    errors = _errors_again(decision.errors)
    if not decision.n:
        only_errors = "errors" in decision.errors.missing
        return errors if only_errors else "run the same cases on both sides, until both have verdicts"
    for name, sentence in (
        ("errors", errors),
        ("judge", "labels of more answers of both runs (evalwright calibrate), or a better judge"),
        ("units", "cases of more groups: all of these are one group"),
        (UNREAD, "repair the damaged records, or run their cells again"),
        ("guard", "measure what the open guard needs on both sides, or choose another limit"),
    ):
        if name in decision.reasons:
            return sentence
    if ALL_LOOKED_AT in decision.reasons:
        return "a suite of more cases"
    if decision.method == BETTING:
        return "units that were not looked at yet (a higher --max-cases or --max-cost), else a suite of more cases"
    if decision.better and decision.difference is not None and -decision.margin < decision.difference <= 0:
        return (
            "no number of cases would decide if the difference stays: neither better, nor worse by more than the margin"
        )
    return "no number of cases would show it if the difference stays: it is too close to the limit"


def _errors_again(errors: ErrorPart) -> str:
    """The commands that give these trials a verdict."""
    target, evaluator = errors.a.target + errors.b.target, errors.a.evaluator + errors.b.evaluator
    parts = [f"evalwright retry RUN, {target:,} of the system"] if target else []
    parts += [f"evalwright re-evaluate RUN, {evaluator:,} of evaluators"] if evaluator else []
    return f"trials with errors again: {'; '.join(parts)}"
