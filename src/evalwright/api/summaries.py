"""A run in numbers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import get_args

from evalwright.api.comparisons import Comparison, within
from evalwright.errors import counted, did_you_mean
from evalwright.model.result import Status
from evalwright.model.summary import RunSummary, VariantSummary
from evalwright.reports.numbers import percent

__all__ = ["Rate", "Summary"]


class Rate:
    """A pass rate with the number of cases behind it."""

    __slots__ = ("interval", "n", "value", "variant")

    def __init__(self, variant: str, value: float | None, n: int, interval: tuple[float, float] | None) -> None:
        self.variant: str = variant
        self.value: float | None = value
        """The mean over cases of the share of passed trials (0 to 1); None if no case was judged."""
        self.n: int = n
        """Number of judged cases; repeats of a case are not independent and do not count."""
        self.interval: tuple[float, float] | None = interval
        """The 95 % Wilson interval (Wilson 1927); None without cases."""

    def __str__(self) -> str:
        if self.value is None:
            return "no case judged"
        ends = "" if self.interval is None else f" [{100 * self.interval[0]:.1f}–{100 * self.interval[1]:.1f}]"
        return f"pass rate {percent(self.value)}{ends}"

    def __repr__(self) -> str:
        return f"<Rate of {self.variant!r}: {self}>"


class Summary:
    """A run in numbers: rates are fractions, times seconds, money US dollars. Printing it shows rates and warnings."""

    __slots__ = ("_name", "_record")

    def __init__(self, record: RunSummary, name: str) -> None:
        self._record, self._name = record, name

    @property
    def status(self) -> str:
        """ "complete", or "partial" while cells are missing."""
        return self._record.status

    @property
    def started_at(self) -> datetime:
        """When the run began."""
        return self._record.started_at

    @property
    def finished_at(self) -> datetime:
        """When the latest work on it ended."""
        return self._record.finished_at

    @property
    def cases(self) -> int:
        """Number of cases."""
        return self._record.cases_total

    @property
    def cells(self) -> Mapping[Status, int]:
        """Number of cells by verdict, over all variants."""
        return {status: sum(v.cells.get(status, 0) for v in self._record.variants) for status in get_args(Status)}

    @property
    def missing(self) -> int:
        """Number of cells that were not run."""
        return self._record.cells_missing

    @property
    def warnings(self) -> Sequence[str]:
        """What is valid in the suite and its cases but probably a mistake: one line each."""
        return self._record.warnings

    @property
    def rates(self) -> Mapping[str, Rate]:
        """The pass rate of each variant."""
        return {v.name: _rate(v) for v in self._record.variants}

    @property
    def pass_rate(self) -> float | None:
        """The pass rate of the only variant (0 to 1); None if no case was judged.

        Raises:
            ValueError: the run has several variants: see `rates`.
        """
        return _rate(self._only()).value

    @property
    def evaluators(self) -> Mapping[str, Mapping[str, Rate]]:
        """The share of passed results by evaluator and variant; skipped results do not count."""
        return {
            rollup.evaluator: {
                name: Rate(name, rate.pass_rate if rate.n else None, rate.cases, rate.pass_rate_ci95)
                for name, rate in rollup.by_variant.items()
            }
            for rollup in self._record.by_evaluator
        }

    @property
    def latency(self) -> Mapping[str, float | None]:
        """Mean seconds of a call by variant; None if none was measured."""
        return {v.name: None if v.avg_latency_ms is None else v.avg_latency_ms / 1000 for v in self._record.variants}

    @property
    def cost_usd(self) -> float | None:
        """Total cost of the systems' calls, US dollars; None if none was reported."""
        return _sum([v.cost_total_usd for v in self._record.variants])

    @property
    def judge_cost_usd(self) -> float | None:
        """Total cost of judging, US dollars; None if no model was called, or none was priced."""
        return _sum([v.judge_cost_usd for v in self._record.variants])

    @property
    def comparison(self) -> Comparison | None:
        """The variants compared with the baseline; None if the run has none."""
        report = self._record.comparison
        return None if report is None else within(report, self._name)

    def variant(self, name: str) -> VariantSummary:
        """All numbers of one variant, as stored in `summary.yaml`; times are in milliseconds.

        Raises:
            KeyError: no variant has the name; the message says which is nearest.
        """
        for variant in self._record.variants:
            if variant.name == name:
                return variant
        variants = [variant.name for variant in self._record.variants]
        raise KeyError(f"no variant {name!r}{did_you_mean(name, variants)} (there are: {', '.join(variants)})")

    def _only(self) -> VariantSummary:
        if len(self._record.variants) != 1:
            raise ValueError("the run has several variants, each with a rate of its own: see Summary.rates")
        return self._record.variants[0]

    def __str__(self) -> str:
        cases = counted(self.cases, "case")
        rates = list(self.rates.values())
        lines = [f"{cases}, {rates[0]}"] if len(rates) == 1 else [cases, *(f"  {r.variant}: {r}" for r in rates)]
        if errors := self.cells["error"]:
            lines[0] += f", {counted(errors, 'error')}"
        if self.missing:
            lines[0] += f", {counted(self.missing, 'cell')} not run"
        return "\n".join([*lines, *(f"warning: {line}" for line in self.warnings)])

    def __repr__(self) -> str:
        return f"<Summary of {self._name!r}: {str(self).splitlines()[0]}>"


def _rate(variant: VariantSummary) -> Rate:
    judged = variant.pass_rate_n
    return Rate(variant.name, variant.pass_rate if judged else None, judged, variant.pass_rate_ci95)


def _sum(values: Sequence[float | None]) -> float | None:
    numbers = [value for value in values if value is not None]
    return sum(numbers) if numbers else None
