"""Decisions on whether a change may ship, as Python sees them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from evalwright.errors import counted

if TYPE_CHECKING:
    from evalwright.model.decision import ChangedPart, EvaluatorPart, GuardPart, JudgePart, NextPart, SlicePart
    from evalwright.model.decision import Decision as Record

__all__ = ["Decision", "VariantDecision"]


@dataclass(frozen=True, slots=True)
class VariantDecision:
    """The decision about one variant."""

    variant: str
    """The variant; "a → b" if it had another name before."""
    verdict: Literal["accepted", "rejected", "undecided"]
    """"undecided" if the data allow neither."""
    difference: float | None
    """After minus before, the mean over the cases that both sides judged; None without such cases."""
    interval: tuple[float, float] | None
    """The interval that determines the verdict; its level is 1 - alpha/m if m variants are decided together."""
    p: float | None
    """Two-sided, for a difference of exactly -margin (of 0 if B must be better), adjusted for the number of variants as
    `correction` says."""
    n: int
    """Cases that both sides judged."""
    errors: tuple[int, int]
    """Trials that ended in an error before and after: they are left out, never counted as failures."""
    method: str
    """The test: mcnemar, t, sign_flip or guarded; "" without cases."""
    undecided_by: str
    """"data"; "errors": the verdict would differ if they all were failures, or all passes; "partial": the same for the
    cells that were not run, as a run is not finished; "guard": one neither holds nor is broken; "judge": human labels
    would have led to another verdict; "" if decided."""
    guards: Sequence[GuardPart]
    """What must hold as well: `name`, `limit`, `value`, `ci`, `state` ("holds", "broken", "undecided")."""
    slices: Sequence[SlicePart]
    """By `key` and `value`: `difference`, `ci`, `p`, `p_holm` and `q` (adjusted), `n` cases."""
    evaluators: Sequence[EvaluatorPart]
    """Each evaluator by itself: `name`, `difference`, `ci`, `p`, `q`, `n`. They decide nothing."""
    judge: JudgePart | None
    """The difference that human labels would have shown, with its `labels` and `method`; None without labels."""
    changed: ChangedPart
    """Cases whose share of passed trials changed, and those of them `beyond_noise`."""
    next: NextPart | None
    """The `cases` and `trials` it would take if the difference holds; None if it is decided or no number would do."""
    warnings: Sequence[str]
    """What a reader must know besides the numbers."""
    numbers: Mapping[str, Any]
    """All numbers behind it, as `evalwright decide --json` prints them."""


@dataclass(frozen=True, slots=True)
class Decision:
    """Whether the later of two runs is no worse than the earlier one. Printing it shows a sentence for each variant."""

    accepted: bool
    """Every variant is shown to be worse by no more than the margin."""
    verdict: Literal["accepted", "rejected", "undecided"]
    """"rejected" if a variant is shown to be worse by more than the margin; "undecided" if neither is shown."""
    metric: str
    """What was compared."""
    margin: float
    """The loss that would not matter: a fraction for rates, else in the units of the score."""
    alpha: float
    """The error rate of the two-sided test; a false acceptance is at most half as likely."""
    correction: str
    """How the p-values of several variants are adjusted."""
    better: bool
    """Whether only better variants are accepted."""
    variants: Sequence[VariantDecision]
    """One for each variant."""
    dominated: Mapping[str, Sequence[str]]
    """Variants that others make superfluous, each with these others: they are shown to be no worse in pass rate (or the
    metric), cost and latency, and better in one of them."""
    _records: Sequence[Record] = ()

    def svg(self) -> str:
        """The difference, evaluators and slices with their intervals as a picture (SVG): a forest plot."""
        from evalwright.reports.pictures.decision import decision_svg

        return decision_svg(self._records)

    def _repr_html_(self) -> str:
        from html import escape

        return f"<div><pre>{escape(str(self))}</pre>{self.svg()}</div>"

    def __str__(self) -> str:
        lines = [self._sentence(variant) for variant in self.variants]
        if len(lines) > 1:
            lines = [f"{variant.variant}: {line}" for variant, line in zip(self.variants, lines, strict=True)]
        warnings = dict.fromkeys(line for variant in self.variants for line in variant.warnings)
        return "\n".join([*lines, *(f"warning: {line}" for line in warnings)])

    def __repr__(self) -> str:
        return f"<Decision {self}>"

    def _sentence(self, decision: VariantDecision) -> str:
        if decision.difference is None or decision.interval is None or decision.p is None:
            return "undecided: no case was judged in both runs"
        from evalwright.reports.decision_words import with_ends
        from evalwright.reports.numbers import probability

        null = 0.0 if self.better else self.margin
        change = with_ends(decision.difference, decision.interval, self.metric, null)
        rate = self.metric == "pass_rate"
        of = f" for −{100 * null:g} pp" if rate and null else f" for −{null:g}" if null else ""
        p = f"p {probability(decision.p, self.alpha)}".replace("<", "< ") + of
        errors = f", {counted(sum(decision.errors), 'error')} left out" if any(decision.errors) else ""
        facts = f"{change}, {counted(decision.n, 'case')}, {p}{errors}"
        return f"{self._claim(decision)}: {facts}"

    def _claim(self, decision: VariantDecision) -> str:
        if broken := [guard.name for guard in decision.guards if guard.state == "broken"]:
            return f"rejected ({', '.join(broken)})"
        points = f"{100 * self.margin:g} points" if self.metric == "pass_rate" else f"{self.margin:g}"
        if decision.verdict == "accepted":
            return f"no worse than {points}" if self.margin and not self.better else "better"
        if decision.verdict == "rejected":
            return f"worse by more than {points}" if self.margin else "worse"
        return f"undecided ({decision.undecided_by})"
