"""What changed between two runs, or between a run's variants and its baseline."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from evalwright.errors import counted, did_you_mean
from evalwright.statistics.corrections import adjust_p_values

if TYPE_CHECKING:
    from evalwright.model.summary import ComparisonReport, VariantDelta

__all__ = ["Comparison", "Difference", "adjusted", "within"]


@dataclass(frozen=True, slots=True)
class Difference:
    """How a pass rate changed, over the cases that both sides judged."""

    variant: str
    """The variant; "a → b" if it had another name before."""
    difference: float | None
    """After minus before (-1 to 1): the mean change over cases of the share of passed trials. None without cases."""
    interval: tuple[float, float] | None
    """Its 95 % interval; None without cases."""
    p: float | None
    """Two-sided p-value for no difference; None if no test applies."""
    p_adjusted: float | None
    """`p` adjusted for all differences of the comparison (Holm 1979)."""
    n: int
    """Cases that both sides judged."""
    regressions: Sequence[str]
    """Cases whose share of passed trials fell."""
    improvements: Sequence[str]
    """Cases whose share of passed trials rose."""

    def __str__(self) -> str:
        from evalwright.reports.numbers import points, probability

        p = "" if self.p_adjusted is None else f", p {probability(self.p_adjusted)}".replace("<", "< ")
        change = "not compared" if self.difference is None else points(self.difference, self.interval)
        counts = f"{len(self.regressions)} worse, {len(self.improvements)} better"
        return f"{self.variant}: {change}, {counted(self.n, 'case')}, {counts}{p}"


class Comparison:
    """Differences of pass rates, one for each variant. Printing it shows them."""

    __slots__ = ("after", "before", "differences", "warnings")

    def __init__(
        self, before: str, after: str, differences: Iterable[Difference], warnings: Iterable[str] = ()
    ) -> None:
        self.before: str = before
        """The run or the variant that the others are compared with."""
        self.after: str = after
        """The run that is compared with it."""
        self.differences: Sequence[Difference] = tuple(differences)
        self.warnings: Sequence[str] = tuple(dict.fromkeys(warnings))
        """What a reader must know besides the numbers: cells that were not run, records that cannot be read."""

    @property
    def regressions(self) -> Mapping[str, Sequence[str]]:
        """Cases that got worse, by variant."""
        return {difference.variant: difference.regressions for difference in self.differences}

    def __iter__(self) -> Iterator[Difference]:
        return iter(self.differences)

    def __len__(self) -> int:
        return len(self.differences)

    def __getitem__(self, variant: str) -> Difference:
        for difference in self.differences:
            if difference.variant == variant:
                return difference
        variants = [difference.variant for difference in self.differences]
        raise KeyError(f"no variant {variant!r}{did_you_mean(variant, variants)} (there are: {', '.join(variants)})")

    def __str__(self) -> str:
        warnings = (f"  warning: {line}" for line in self.warnings)
        title = f"{self.after} compared with {self.before}:"
        return "\n".join([title, *(f"  {difference}" for difference in self.differences), *warnings])

    def svg(self) -> str:
        """The differences with their intervals as a picture (SVG): a forest plot."""
        from evalwright.reports.intervals import ForestRow
        from evalwright.reports.pictures.plots import forest_svg

        rows = [
            ForestRow(difference.variant, difference.difference, *difference.interval)
            for difference in self.differences
            if difference.difference is not None and difference.interval is not None
        ]
        return forest_svg(f"{self.after} compared with {self.before}", rows)

    def _repr_html_(self) -> str:
        from html import escape

        return f"<div><pre>{escape(str(self))}</pre>{self.svg()}</div>"

    def __repr__(self) -> str:
        return f"<Comparison of {self.after!r} with {self.before!r}: {counted(len(self), 'variant')}>"


def within(report: ComparisonReport, name: str) -> Comparison:
    """The variants of one run compared with its baseline."""
    from evalwright.model.summary import decisions_of

    warnings = (line for decision in decisions_of(report) for line in decision.warnings)
    return Comparison(report.baseline, name, adjusted(report.deltas), warnings)


def adjusted(deltas: Sequence[VariantDelta]) -> Iterator[Difference]:
    """The differences of one comparison, with p-values adjusted for their number."""
    p_values = [delta.p_value for delta in deltas if delta.p_value is not None]
    adjusted = iter(adjust_p_values(p_values)["holm_adjusted"])
    for delta in deltas:
        yield Difference(
            delta.variant,
            delta.pass_rate_delta,
            delta.pass_rate_delta_ci95,
            delta.p_value,
            None if delta.p_value is None else float(next(adjusted)),
            delta.n,
            tuple(delta.regressions),
            tuple(delta.improvements),
        )
