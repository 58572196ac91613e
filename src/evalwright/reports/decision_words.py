"""What a decision says, in words that every report uses."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from evalwright.decisions.sides import PASS_RATE
from evalwright.errors import counted
from evalwright.model.decision import (
    PARTIAL,
    UNREAD,
    Decision,
    ErrorCounts,
    ErrorPart,
)
from evalwright.reports import numbers
from evalwright.reports.text import folded, one_line, short_line

__all__ = [
    "WORDS",
    "amount",
    "bare",
    "change_of",
    "claim",
    "dominated_lines",
    "errors_line",
    "missing_words",
    "notes_of",
    "shown_ends",
    "units_line",
    "with_ends",
]

_NAME = 24

WORDS = {"ship": "SHIP", "dont": "DON'T", "undecided": "UNDECIDED"}


def claim(decision: Decision) -> str:
    """The claim that was shown: `better`, `not worse than −2 pp`, `worse`, or nothing."""
    margin = decision.margin
    if decision.difference is None or decision.ci is None:
        return "undecided: no case was judged in both runs"
    limit = f"not worse than −{amount(margin, decision.metric)}" if margin else "not worse"
    if turned_by := _turned_by(decision):
        return f"undecided: {turned_by} could turn the verdict"
    low, high = shown_ends(decision.readings)
    if low > 0:
        return "better"
    if low > -margin:
        return f"{limit}, but worse" if high < 0 else limit
    if high < -margin:
        return f"worse by more than {amount(margin, decision.metric)}" if margin else "worse"
    return "worse, by how much is open" if high < 0 else "no change shown"


def shown_ends(readings: Sequence[tuple[float, float]]) -> tuple[float, float]:
    """Between which values the difference is shown to lie, whatever missing verdicts would have been."""
    return min(low for low, _ in readings), max(high for _, high in readings)


def _turned_by(decision: Decision) -> str:
    """What keeps the verdict of the interval from being the decision's; empty if nothing does."""
    if not decision.errors.same_verdict:
        return missing_words(decision.errors)
    if decision.verdict != "undecided":
        return ""
    if UNREAD in decision.reasons:
        return UNREAD
    return "human labels" if decision.judge is not None and decision.judge.turns else ""


def missing_words(errors: ErrorPart) -> str:
    """What has no verdict: `errors`, `cells that were not run`, or both."""
    return " and ".join("cells that were not run" if kind == PARTIAL else kind for kind in errors.missing)


def amount(value: float, metric: str) -> str:
    """A size of a difference without its sign: `2 pp`, or a plain number for scores."""
    return f"{100 * value:.6g} pp" if metric == PASS_RATE else f"{value:.6g}"


def with_ends(value: float | None, ends: tuple[float, float] | None, metric: str, margin: float = 0.0) -> str:
    """A difference with its interval: `+1.8 pp [−3.3, +6.9]`. Its ends show on which side of 0 and -`margin` they
    lie."""
    if value is None:
        return "–"
    if metric == PASS_RATE:
        return numbers.points(value, ends, margin)
    return numbers.score_change(value, ends, margin)


def change_of(decision: Decision) -> str:
    """Difference, interval, p and units in one line."""
    level = decision.alpha / decision.family
    p = "" if decision.p_better is None else f", p {numbers.probability(decision.p_better, level)}"
    change = with_ends(decision.difference, decision.ci, decision.metric, decision.margin)
    return f"{change}{p}, {units_line(decision)}"


def units_line(decision: Decision) -> str:
    """`188 cases × 3 trials, 41 groups`; `188 cases × 5 and 1 trials` if the sides differ."""
    one, other = decision.trials
    trials = f"{one} and {other}" if one and other and one != other else f"{max(one, other)}"
    text = counted(decision.n, "case") + (f" × {trials} trials" if max(one, other) > 1 else "")
    return text + (f", {counted(decision.units, 'group')}" if decision.units < decision.n else "")


def errors_line(decision: Decision) -> str:
    """Errors and cells not run of both sides, and the difference with all of them failed and all passed.

    Empty if every trial has a verdict.
    """
    errors = decision.errors
    if errors.all_failed is None or errors.all_passed is None:
        return ""
    a, b = _names(decision)
    sides = f"{a} {_causes(errors.a)}, {b} {_causes(errors.b)}"
    if PARTIAL in errors.missing:
        sides += f"; not run {a} {errors.a.not_run:,}, {b} {errors.b.not_run:,}"
    settled = errors.counting == "fail" and errors.a.target + errors.b.target
    if settled:
        sides += "; those of the target count as failed"
    open_ones = {*errors.missing} - ({"errors"} if settled and not errors.a.evaluator + errors.b.evaluator else set())
    if decision.difference is None or not open_ones:  # made-up verdicts alone, or none, would be compared
        return sides
    failed, passed = (bare(bound.difference, decision.metric) for bound in (errors.all_failed, errors.all_passed))
    same = "same verdict" if errors.same_verdict else "another verdict"
    return f"{sides}; {'the others ' if settled else ''}all failed {failed}, all passed {passed}: {same}"


def _names(decision: Decision) -> tuple[str, str]:
    """Of the sides: their variants; A and B for one variant of two runs."""
    if decision.variant_a == decision.variant_b:
        return "A", "B"
    return short_line(decision.variant_a, _NAME), short_line(decision.variant_b, _NAME)


def notes_of(decision: Decision) -> list[str]:
    """Notes that must accompany the difference in reports that have no room for the whole decision."""
    errors = errors_line(decision)
    return [*([f"errors: {errors}"] if errors else []), *(f"warning: {line}" for line in decision.warnings)]


def dominated_lines(found: Mapping[str, Sequence[str]], columns: int | None) -> list[str]:
    """Variants that another one dominates: a paragraph below the decisions about them."""
    lines = []
    for name, rivals in found.items():
        who = ", ".join(one_line(rival, 30) for rival in rivals)
        why = "not worse in pass rate, cost and latency, and better in one of them"
        lines += folded(f"{one_line(name, 30)} is dominated by {who}: {why}".split(), columns, indent="  ")
    return ["", *lines] if lines else []


def bare(value: float | None, metric: str) -> str:
    """A difference without its unit."""
    return with_ends(value, None, metric).removesuffix(" pp")


def _causes(side: ErrorCounts) -> str:
    parts = [f"{name} {n:,}" for name, n in (("target", side.target), ("evaluator", side.evaluator)) if n]
    return f"{side.target + side.evaluator:,}" + (f" ({', '.join(parts)})" if parts else "")
