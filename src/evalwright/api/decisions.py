"""Whether a change may ship."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from evalwright.api.pairs import paired_variants
from evalwright.api.problems import refused
from evalwright.api.runs import Run, run_of
from evalwright.errors import InputError, counted

if TYPE_CHECKING:
    from evalwright.decisions.runs import TwoRuns
    from evalwright.model.decision import Decision as Record

__all__ = ["Decision", "VariantDecision", "decide"]

_Verdict = Literal["accepted", "rejected", "undecided"]
_VERDICTS: Mapping[str, _Verdict] = {"ship": "accepted", "dont": "rejected", "undecided": "undecided"}
_ADJUSTED = {"holm": "holm_adjusted", "bh": "benjamini_hochberg_adjusted"}


@dataclass(frozen=True, slots=True)
class VariantDecision:
    """The decision about one variant."""

    variant: str
    """The variant; "a → b" where it has another name before."""
    verdict: Literal["accepted", "rejected", "undecided"]
    """"undecided" where the data allow neither."""
    difference: float | None
    """After minus before, the mean over the cases that both sides judged; None without such cases."""
    interval: tuple[float, float] | None
    """Its 1 - alpha interval, not adjusted for the number of variants."""
    p: float | None
    """Two-sided, of a difference of exactly -margin, adjusted for the number of variants."""
    n: int
    """Cases that both sides judged."""
    errors: tuple[int, int]
    """Trials without verdict before and after: they are left out, never counted as failures."""
    method: str
    """The test: mcnemar, t, sign_flip or guarded; "" without cases."""
    undecided_by: str
    """"data", or "errors": the verdict would be another one if these were failures, or passes; "" if decided."""
    numbers: Mapping[str, Any]
    """All numbers behind it, as `evalwright decide --json` prints them."""


@dataclass(frozen=True, slots=True)
class Decision:
    """Whether the later of two runs is no worse than the earlier one. Printing it says so in a sentence a variant."""

    accepted: bool
    """Every variant is shown to be no worse than by the margin."""
    verdict: Literal["accepted", "rejected", "undecided"]
    """"rejected" if a variant is shown to be worse than that; "undecided" if neither is shown."""
    metric: str
    """What was compared."""
    margin: float
    """The loss that would not matter: a fraction for rates, else in the units of the score."""
    alpha: float
    """The error rate of the two-sided test; that of a false acceptance is at most half of it."""
    correction: str
    """How p-values of several variants are adjusted."""
    variants: Sequence[VariantDecision]
    """One for each variant."""

    def __str__(self) -> str:
        lines = [self._sentence(one) for one in self.variants]
        if len(lines) == 1:
            return lines[0]
        return "\n".join(f"{one.variant}: {line}" for one, line in zip(self.variants, lines, strict=True))

    def _sentence(self, one: VariantDecision) -> str:
        if one.difference is None or one.interval is None or one.p is None:
            return "undecided: no case was judged in both runs"
        rate = self.metric == "pass_rate"
        factor, unit, digits = (100, " pp", 1) if rate else (1, "", 3)
        low, high, mean = (
            f"{factor * value:+.{digits}f}".replace("-", "−") for value in (*one.interval, one.difference)
        )
        p = "p < 0.001" if one.p < 0.001 else f"p {one.p:.3f}"
        errors = f", {counted(sum(one.errors), 'error')} left out" if any(one.errors) else ""
        facts = f"{mean}{unit} [{low}, {high}], {counted(one.n, 'case')}, {p}{errors}"
        return f"{self._claim(one)}: {facts}"

    def _claim(self, one: VariantDecision) -> str:
        points = f"{100 * self.margin:g} points" if self.metric == "pass_rate" else f"{self.margin:g}"
        if one.verdict == "accepted":
            return f"no worse than {points}" if self.margin else "better"
        if one.verdict == "rejected":
            return f"worse by more than {points}" if self.margin else "worse"
        return f"undecided ({one.undecided_by})"


def decide(
    before: Run | str | os.PathLike[str],
    after: Run | str | os.PathLike[str],
    *,
    metric: str = "pass_rate",
    margin: float = 0.0,
    alpha: float = 0.05,
    correction: Literal["holm", "bh", "none"] = "holm",
) -> Decision:
    """Whether the later run is no worse than the earlier one by more than a margin.

    Cases are paired; trials of a case are averaged, and cases of a group count as one unit. The tests are those of
    `evalwright.statistics.differences`: McNemar 1947 (exact), Student's t with jackknifed errors, exact sign flips, or
    an interval guarded by two pseudo-units where hardly anything differs.

    Args:
        before: The earlier run, or its folder.
        after: The later run, or its folder.
        metric: "pass_rate", or the name of an evaluator whose score is compared.
        margin: The loss that would not matter (≥ 0): a fraction for rates (0.02 are 2 points), else in the score's
            units. 0: accepted means better.
        alpha: The error rate (0 to 1) of the two-sided test.
        correction: For several variants: "holm" (Holm 1979), "bh" (Benjamini and Hochberg 1995), or "none".

    Returns:
        The decision; `accepted` is a bool for a release script. Trials that ended in an error are left out; where
        counting all of them as failures or all as passes would turn the verdict, it is undecided.

    Raises:
        InputError: arguments or runs that cannot be used, or cases or evaluators that changed between the runs.
    """

    from evalwright.decisions.runs import two_runs
    from evalwright.decisions.terms import Terms

    _check(margin, alpha, correction)
    one, other = run_of(before), run_of(after)
    reader_a, plan_a = one._opened()
    reader_b, plan_b = other._opened()
    with closing(reader_a), closing(reader_b):
        runs = two_runs(reader_a, plan_a, reader_b, plan_b, Terms(metric=metric, margin=margin, alpha=alpha))
        _must_be_alike(runs, metric)
        pairs = paired_variants(one.variants, other.variants, None)
        found = [runs.decision(old, new) for old, new in pairs]
    ps = _adjusted([part.p_margin for part in found], correction)
    variants = [_variant(pair, part, p, alpha) for pair, part, p in zip(pairs, found, ps, strict=True)]
    verdicts = {variant.verdict for variant in variants}
    verdict: _Verdict = "undecided"
    if "rejected" in verdicts:
        verdict = "rejected"
    elif verdicts == {"accepted"}:
        verdict = "accepted"
    return Decision(verdict == "accepted", verdict, metric, margin, alpha, correction, tuple(variants))


def _adjusted(ps: Sequence[float | None], correction: str) -> list[float | None]:
    """Adjusted for the number of variants; what has no p keeps none."""
    from evalwright.statistics.corrections import adjust_p_values

    known = [p for p in ps if p is not None]
    if correction != "none":
        known = [float(p) for p in adjust_p_values(known)[_ADJUSTED[correction]]]
    rest = iter(known)
    return [None if p is None else next(rest) for p in ps]


def _variant(names: tuple[str, str], part: Record, p: float | None, alpha: float) -> VariantDecision:
    from msgspec import to_builtins

    verdict, by = _VERDICTS[part.verdict], part.reasons[0] if part.reasons else ""
    if p is None or p > alpha:
        verdict, by = "undecided", by or "data"
    errors = part.errors
    return VariantDecision(
        names[1] if names[0] == names[1] else f"{names[0]} → {names[1]}",
        verdict,
        part.difference,
        part.ci,
        p,
        part.n,
        (errors.a.target + errors.a.evaluator, errors.b.target + errors.b.evaluator),
        part.method or "",
        by,
        to_builtins(part),
    )


def _check(margin: float, alpha: float, correction: str) -> None:
    problems = []
    if not margin >= 0:
        problems.append(refused("margin", f"expected a number of at least 0, found {margin!r}"))
    if not 0 < alpha < 1:
        problems.append(refused("alpha", f"expected a number between 0 and 1, found {alpha!r}"))
    if correction not in ("holm", "bh", "none"):
        problems.append(refused("correction", f"expected 'holm', 'bh' or 'none', found {correction!r}"))
    if problems:
        raise InputError(problems)


def _must_be_alike(runs: TwoRuns, metric: str) -> None:
    """Raise InputError where a case of both runs asks or expects something else, or an evaluator is another one."""
    from evalwright.decisions.identity import some_names

    changed, problems = runs.identity.cases, []
    if changed:
        found = f"{counted(len(changed), 'case')} changed between the runs: {some_names(changed)}"
        problems.append(refused("after", found))
    problems += [
        refused("after", f"the evaluator {name!r} changed between the runs")
        for name in [*runs.identity.evaluators, *runs.identity.alone]
        if metric in ("pass_rate", name)
    ]
    if problems:
        raise InputError(problems)
