"""The totals of an AgentEvals run, under AgentV's names."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection
from statistics import mean, median, stdev
from typing import Any

from evalwright.model.facts import ResultLike, TraceLike
from evalwright.model.plan import Plan
from evalwright.model.result import Status
from evalwright.model.summary import RunSummary

__all__ = ["AgentvTotals"]

_SHOWN = 3
_BINS = 5


class AgentvTotals:
    """Scores of cases. As in the original, an error counts as 0 in the mean and as `fail`, unless its case was
    unreadable, which the original leaves out; `error` is the number of errors."""

    def __init__(self, plan: Plan) -> None:
        self._scores: list[tuple[str, float]] = []
        self._statuses: Counter[str] = Counter()
        self._unreadable = 0
        self._by_evaluator: dict[str, list[float]] = {}
        self._misses: Counter[str] = Counter()
        self._conversation_of: dict[str, str] = {}

    def add(
        self, trace: TraceLike, results: Collection[ResultLike], status: Status, score: float | None = None
    ) -> None:
        scores = [0.0 if row.error is not None else row.score or 0.0 for row in results]
        for row, own in zip(results, scores, strict=True):
            self._by_evaluator.setdefault(row.evaluator, []).append(own)
            self._misses.update(row.misses)
        self._statuses[status] += 1
        self._unreadable += getattr(trace.error, "type", "") == "load_error"
        self._scores.append((trace.case_key, score or 0.0))
        if isinstance(trace.group, str):
            self._conversation_of[trace.case_key] = trace.group

    def merge(self, other: Any) -> None:
        self._scores += other._scores
        self._statuses += other._statuses
        self._unreadable += other._unreadable
        self._misses += other._misses
        self._conversation_of |= other._conversation_of
        for name, scores in other._by_evaluator.items():
            self._by_evaluator.setdefault(name, []).extend(scores)

    def finish(self, summary: RunSummary) -> None:
        scores = [score for _, score in self._scores]
        ranked = sorted(self._scores, key=lambda item: (-item[1], item[0]))
        native: dict[str, Any] = {
            "total": len(scores),
            **{k: self._statuses[k] for k in ("pass", "borderline", "fail")},
        }
        native["fail"] += self._statuses["error"] - self._unreadable
        native["error"] = self._statuses["error"]
        if self._unreadable:
            summary.cells_unread = self._unreadable
        native["pass_rate"] = self._statuses["pass"] / len(scores) if scores else 0.0
        if scores:
            native |= {
                "mean_score": mean(scores),
                "median_score": median(scores),
                "min_score": min(scores),
                "max_score": max(scores),
                "std_score": stdev(scores) if len(scores) > 1 else None,
                "histogram": [sum(_bin(score) == i for score in scores) for i in range(_BINS)],
                "best": [case for case, _ in ranked[:_SHOWN]],
                "worst": [case for case, _ in ranked[::-1][:_SHOWN]],
            }
        if self._conversation_of:
            native["conversations"] = len(set(self._conversation_of.values()))
            native["cases_in_conversations"] = len(self._conversation_of)
        native["by_evaluator"] = {
            name: {"mean": mean(counts), "min": min(counts), "max": max(counts)}
            for name, counts in sorted(self._by_evaluator.items())
        }
        ordered = sorted(self._misses.items(), key=lambda miss: (-miss[1], miss[0]))
        native["misses"] = [{"text": text, "count": count} for text, count in ordered[:_SHOWN]]
        summary.native = native


def _bin(score: float) -> int:
    return min(int(score * _BINS), _BINS - 1)
