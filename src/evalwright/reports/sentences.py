"""A run, or its comparison with an earlier one, in one sentence."""

from __future__ import annotations

from collections.abc import Callable

from evalwright.decisions.comparison import RunComparison, VariantComparison
from evalwright.errors import counted
from evalwright.model.decision import PARTIAL, Decision
from evalwright.model.result import NOT_PASSED
from evalwright.model.summary import GateOutcome, RunSummary, VariantSummary
from evalwright.reports import numbers
from evalwright.reports.decision_words import claim, with_ends

__all__ = ["sentence_of", "sentences_of", "worse_cases"]

_NAME, _CONDITION = 40, 200
"""Characters of a name, and of a condition of a gate."""
Escape = Callable[[str, int], str]
"""A text that may be data, and its most characters, to a form in which it does not act."""


def _unescaped(text: str, limit: int) -> str:
    return text


def sentence_of(summary: RunSummary, comparison: RunComparison | None = None, escape: Escape = _unescaped) -> str:
    """The decision about a run: against an earlier run, by its gate, or by its cells."""
    return "; ".join(sentences_of(summary, comparison, escape))


def sentences_of(
    summary: RunSummary, comparison: RunComparison | None = None, escape: Escape = _unescaped
) -> list[str]:
    """As `sentence_of`, with a sentence for each variant that is compared."""
    if comparison is not None:
        return _comparison_sentences(comparison, escape)
    if summary.gate is not None:
        return [_gate_sentence(summary.gate, escape)]
    return [_cells_sentence(summary, escape)]


def worse_cases(comparison: RunComparison) -> int:
    """Cases of all variants of which a smaller share of the trials passed than before."""
    return sum(len(variant.delta.regressions) for variant in comparison.variants)


def _comparison_sentences(comparison: RunComparison, escape: Escape) -> list[str]:
    """The worst first, because it decides."""
    order = {"dont": 0, "undecided": 1, "ship": 2}
    variants = sorted(
        comparison.variants, key=lambda variant: (order[variant.decision.verdict], variant.decision.difference or 0)
    )
    if not variants:
        return ["Not compared: the runs have no variant in common"]
    if len(variants) == 1:
        return [_capital(_change(variants[0]))]
    return [f"{escape(variant.variant, _NAME)}: {_change(variant)}" for variant in variants]


def _change(variant: VariantComparison) -> str:
    decision, delta = variant.decision, variant.delta
    claimed = claim(decision)
    unjudged = _without_verdict(decision)
    if decision.ci is None:
        return f"{claimed}{unjudged}"
    text = f"{claimed}: {with_ends(decision.difference, decision.ci, decision.metric, decision.margin)}"
    changed = f"{counted(len(delta.regressions), 'case')} worse, {len(delta.improvements):,} better"
    level = decision.alpha / decision.family
    p = "" if decision.p_better is None else f" (p {_equals(numbers.probability(decision.p_better, level))})"
    return f"{text}, {changed}{p}{unjudged}{_to_decide(decision)}"


def _without_verdict(decision: Decision) -> str:
    """The trials that the difference leaves out; empty if all trials of both sides have verdicts."""
    a, b = (side.target + side.evaluator for side in (decision.errors.a, decision.errors.b))
    return f"; without a verdict: {a:,} of A, {b:,} of B" if a or b else ""


def _equals(p: str) -> str:
    return p if p.startswith("<") else f"= {p}"


def _to_decide(decision: Decision) -> str:
    """What would settle an undecided comparison if the difference holds; nothing before trials without a verdict that
    could turn it have one."""
    if decision.verdict != "undecided" or decision.next is None or decision.next.cases <= decision.n:
        return ""
    if not decision.errors.same_verdict or PARTIAL in decision.errors.missing:
        return ""
    more = counted(decision.next.cases - decision.n, "more case")
    return f'; about {more} would show "{decision.next.claim}" at 80 % power if the difference holds'


def _gate_sentence(gate: GateOutcome, escape: Escape) -> str:
    outcome = "Reward" if numbers.is_reward(gate) else f"Gate {numbers.outcome(gate)[0]}"
    parts = "; ".join(escape(numbers.condition(part), _CONDITION) for part in gate.parts)
    return f"{outcome}: {parts}" if parts else outcome


def _cells_sentence(summary: RunSummary, escape: Escape) -> str:
    if summary.nothing_judged and not summary.cells_total:
        return "Not judged: there was no cell to run"
    if summary.nothing_judged:
        skipped = f"Not judged: every one of {counted(summary.cells_total, 'cell')} was skipped"
        return f"{skipped}; {counted(summary.cells_missing, 'cell')} not run" if summary.cells_missing else skipped
    counts = {status: sum(v.cells.get(status, 0) for v in summary.variants) for status in NOT_PASSED}
    scored = summary.scored is True
    failed = 0 if scored else counts["fail"] + counts["borderline"]
    parts = [f"{counted(failed, 'cell')} did not pass"] if failed else []
    parts += [f"{counted(counts['error'], 'cell')} without a verdict"] if counts["error"] else []
    missing = [f"{counted(summary.cells_missing, 'cell')} not run"] if summary.cells_missing else []
    rates = ", ".join(_rate(variant, escape if len(summary.variants) > 1 else None) for variant in summary.variants)
    if scored:
        rates = counted(summary.cells_total, "cell")
    verdict = "Failed" if failed else "Errors" if parts else "Partial" if missing else "Scored" if scored else "Passed"
    return f"{verdict}: {'; '.join([*parts, *missing, rates])}"


def _rate(variant: VariantSummary, escape: Escape | None) -> str:
    judged = variant.pass_rate is not None and variant.pass_rate_n
    rate = numbers.percent(variant.pass_rate or 0.0) if judged else "no rate"
    ends = f" [{numbers.interval(variant.pass_rate_ci95)}]" if judged and variant.pass_rate_ci95 else ""
    return (
        f"{f'{escape(variant.name, _NAME)} ' if escape else ''}{rate}{ends} of {counted(variant.pass_rate_n, 'case')}"
    )


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]
