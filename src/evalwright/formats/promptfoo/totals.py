"""The counters of a run under promptfoo's names, its named metrics, and its gate: the share of cells that must pass."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import msgspec

from evalwright.formats.promptfoo.arithmetic import value_of
from evalwright.model.facts import ResultLike, TraceLike
from evalwright.model.plan import Plan
from evalwright.model.result import FAILED, Status
from evalwright.model.summary import GateOutcome, GatePart, NamedMetric, RunSummary
from evalwright.statistics.sums import ExactSum

if TYPE_CHECKING:
    from evalwright.scoring.gate_intervals import CountedPasses

__all__ = ["PassRateGate", "PromptfooTotals"]


_COUNT = "__count"
"""The name of the number of cells in derived metrics."""


class PassRateGate(msgspec.Struct, tag_field="kind", tag="promptfoo"):
    pass_rate: float
    """The percentage of cells that must pass."""


class _Extra(msgspec.Struct):
    """What a verdict contains besides its score."""

    asserts: tuple[int, int] = (0, 0)
    """How many assertions passed and failed."""
    sums: dict[str, float] = {}
    behind: dict[str, tuple[float, int]] = {}
    """By name, the weight of all its scores, and their number."""


@dataclass(slots=True)
class _Scores:
    """All scores of one name: their sum by weight, their weight, their number."""

    total: ExactSum = field(default_factory=ExactSum)
    weight: ExactSum = field(default_factory=ExactSum)
    n: int = 0

    @property
    def mean(self) -> float | None:
        weight = self.weight.total
        return self.total.over(weight) if weight else None

    def add(self, total: float, weight: float, n: int) -> None:
        self.total.add(total)
        self.weight.add(weight)
        self.n += n

    def merge(self, other: _Scores) -> None:
        self.total.merge(other.total)
        self.weight.merge(other.weight)
        self.n += other.n


@dataclass(slots=True)
class _Column:
    score: ExactSum = field(default_factory=ExactSum)
    passed: int = 0
    failed: int = 0
    errors: int = 0
    asserts: list[int] = field(default_factory=lambda: [0, 0])
    named: dict[str, _Scores] = field(default_factory=dict)

    @property
    def cells(self) -> int:
        return self.passed + self.failed + self.errors

    @property
    def scores(self) -> dict[str, _Scores]:
        """The named scores, in an order that does not depend on the order of the cells."""
        return {name: self.named[name] for name in sorted(self.named)}

    @property
    def sums(self) -> dict[str, float]:
        return {name: score.total.total for name, score in self.scores.items()}

    def merge(self, other: _Column) -> None:
        self.score.merge(other.score)
        self.passed, self.failed, self.errors = (
            self.passed + other.passed, self.failed + other.failed, self.errors + other.errors,
        )  # fmt: skip
        self._count(other.asserts)
        for name, scores in other.named.items():
            self.named.setdefault(name, _Scores()).merge(scores)

    def add(self, extra: _Extra) -> None:
        self._count(extra.asserts)
        for name, total in extra.sums.items():
            self.named.setdefault(name, _Scores()).add(total, *extra.behind.get(name, (0, 0)))

    def _count(self, asserts: Collection[int]) -> None:
        self.asserts = [own + others for own, others in zip(self.asserts, asserts, strict=True)]


class PromptfooTotals:
    """Counts by column."""

    def __init__(self, plan: Plan) -> None:
        self._columns = {variant.name: _Column() for variant in plan.variants}
        derived = plan.metadata.get("derived_metrics") or []
        self._readable = isinstance(derived, list) and all(isinstance(metric, dict) for metric in derived)
        self._derived: list[dict[str, Any]] = derived if self._readable else []
        self._gate = None if plan.gate is None else msgspec.convert(plan.gate, PassRateGate)
        self._passes: CountedPasses | None = None
        if plan.gate is not None:
            from evalwright.scoring.gate_intervals import CountedPasses

            self._passes = CountedPasses()

    def add(
        self, trace: TraceLike, results: Collection[ResultLike], status: Status, score: float | None = None
    ) -> None:
        column = self._columns.setdefault(trace.variant_name, _Column())
        column.score.add(score or 0.0)
        column.passed += status == "pass"
        column.failed += status in FAILED
        column.errors += status == "error"
        if self._passes is not None:
            self._passes.add(trace, status == "pass")

    def add_extra(self, variant: str, extra: Mapping[str, Any]) -> None:
        native = msgspec.convert(extra, _Extra)
        self._columns.setdefault(variant, _Column()).add(native)

    def merge(self, other: Any) -> None:
        for name, column in other._columns.items():
            self._columns.setdefault(name, _Column()).merge(column)
        if self._passes is not None:
            self._passes.merge(other._passes)

    def finish(self, summary: RunSummary) -> None:
        columns = self._columns.values()
        summary.native = {
            "successes": sum(column.passed for column in columns),
            "failures": sum(column.failed for column in columns),
            "errors": sum(column.errors for column in columns),
            "prompts": [self._prompt_document(name, column) for name, column in self._columns.items()],
        }
        if metrics := list(self._metrics()):
            summary.named_metrics = metrics
            summary.warnings = [*summary.warnings, *_incomputable(metrics)]
        if not self._readable:  # metadata of an eval.yaml may be anything
            note = "metadata.derived_metrics: expected a list of mappings; no derived metric is computed"
            summary.warnings = [*summary.warnings, note]
        if self._gate is not None:
            summary.gate = self._decided_gate(self._gate.pass_rate)

    def _metrics(self) -> Iterator[NamedMetric]:
        """Each metric for all columns, derived ones after the others."""
        for metric in sorted({name for column in self._columns.values() for name in column.named}):
            for variant, column in self._columns.items():
                if (score := column.named.get(metric)) is not None:
                    yield NamedMetric(metric, variant, score.total.total, score.mean, score.n)
        derived = {variant: self._derive(column) for variant, column in self._columns.items() if column.cells}
        for metric in dict.fromkeys(str(metric_settings.get("name")) for metric_settings in self._derived):
            for variant, values in derived.items():
                yield NamedMetric(metric, variant, values.get(metric))

    def _prompt_document(self, name: str, column: _Column) -> dict[str, Any]:
        return {
            "variant": name,
            "score": column.score.total,
            "namedScores": {**column.sums, **self._derive(column)},
            **_behind(column),
            "testPassCount": column.passed,
            "testFailCount": column.failed,
            "testErrorCount": column.errors,
            "assertPassCount": column.asserts[0],
            "assertFailCount": column.asserts[1],
        }

    def _derive(self, column: _Column) -> dict[str, float]:
        names: dict[str, float] = {**column.sums, _COUNT: column.cells}
        derived: dict[str, float] = {}
        for metric_settings in self._derived:
            value = value_of(str(metric_settings.get("value")), {**names, **derived})
            if value is not None:
                derived[str(metric_settings.get("name"))] = value
        return derived

    def _decided_gate(self, wanted: float) -> GateOutcome:
        columns = self._columns.values()
        passed, cells = sum(column.passed for column in columns), sum(column.cells for column in columns)
        rate = 100 * passed / cells if cells else 0.0
        part = GatePart(f"pass rate >= {wanted:g} %", rate >= wanted, rate, n=cells)
        if self._passes is not None and (ends := self._passes.ends()) is not None:
            part.ci95 = 100 * ends[0], 100 * ends[1]
        return GateOutcome(part.passed, [part])


def _behind(column: _Column) -> dict[str, Any]:
    """The number and the weight of each name's scores; empty if the cells do not record them."""
    known = {name: score for name, score in column.scores.items() if score.n}
    if not known:
        return {}
    return {
        "namedScoresCount": {name: score.n for name, score in known.items()},
        "namedScoreWeights": {name: score.weight.total for name, score in known.items()},
    }


def _incomputable(metrics: Collection[NamedMetric]) -> Iterator[str]:
    for metric in dict.fromkeys(measure.metric for measure in metrics if measure.value is None):
        missing = [measure.variant for measure in metrics if measure.metric == metric and measure.value is None]
        why = "a name in it has no scores, or it divides by 0"
        yield f"the derived metric {metric!r} cannot be computed for {', '.join(missing)}: {why}"
