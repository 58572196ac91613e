"""The summary of each model as written by letta-evals 0.17 and later: rewards, grades, usage, times and errors."""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Iterator, Sequence
from statistics import mean, stdev
from typing import Any

from evalwright.formats.letta.rows import SampleRow, sample_timing, sample_usage

__all__ = ["RunTally", "summary_of"]

_USED = ("prompt_tokens", "completion_tokens", "cached_input_tokens", "cache_write_tokens", "reasoning_tokens")


class RunTally:
    """The totals over the rows of one model in one run. Eight bytes per row are kept, for the percentiles."""

    def __init__(self, graders: Sequence[str]) -> None:
        self.rows: int = 0
        self.attempted: int = 0
        self.by_category: Counter[str] = Counter()
        self.by_exception: Counter[str] = Counter()
        self.used: dict[str, int] = dict.fromkeys(_USED, 0)
        self.cost: float | None = None
        """None if no row has a cost."""
        self._rewards = _Mean()
        self._grades = {key: _Mean() for key in graders}
        self._grading = {key: _Mean() for key in graders}
        self._target = _Mean()
        self._totals = array("d")

    def counting(self, rows: Iterator[SampleRow]) -> Iterator[SampleRow]:
        """The rows, each counted as it passes through."""
        for row in rows:
            self._add(row)
            yield row

    def _add(self, row: SampleRow) -> None:
        self.rows += 1
        timing = sample_timing(row.trace, row.grading)
        self._totals.append(timing["total"])
        self._target.add(timing["target"])
        for key, seconds in row.grading.items():
            self._grading[key].add(seconds)
        for key, value in (sample_usage(row.trace) or {}).items():
            if key == "cost":
                self.cost = (self.cost or 0.0) + value
            else:
                self.used[key] += value
        if (failure := row.failure) is not None:
            self.by_category[failure["category"]] += 1
            self.by_exception[failure["exception_type"]] += 1
            return
        self.attempted += 1
        for key, grade in (row.grades or {}).items():
            self._grades[key].add(grade["score"])
        if row.reward is not None:
            self._rewards.add(row.reward["score"])

    @property
    def reward(self) -> float:
        return self._rewards.value

    @property
    def per_metric(self) -> dict[str, float]:
        return {key: grade.value for key, grade in self._grades.items()}

    @property
    def timing(self) -> dict[str, Any]:
        """Means and percentiles in seconds; a percentile is the row at that rank, rounded down."""
        ordered = sorted(self._totals) or [0.0]
        count = len(ordered)
        return {
            "mean_total": sum(ordered) / count,
            "mean_target": self._target.value,
            "p50_total": ordered[count // 2],
            "p95_total": ordered[min(int(count * 0.95), count - 1)],
            "per_grader_mean": {key: seconds.value for key, seconds in self._grading.items() if seconds.count},
        }

    def part(self, run: int) -> dict[str, Any]:
        """The run as one of several, counted from 1."""
        return {
            "run": run,
            "reward": self.reward,
            "per_metric": self.per_metric,
            "usage": _usage([self]),
            "timing": self.timing,
            "n_errors": self.by_category.total(),
        }


class _Mean:
    """A mean as a plain sum over a count, 0 for nothing."""

    def __init__(self) -> None:
        self.count, self._sum = 0, 0.0

    def add(self, value: float) -> None:
        self.count, self._sum = self.count + 1, self._sum + value

    @property
    def value(self) -> float:
        return self._sum / self.count if self.count else 0.0


def summary_of(model: str, runs: Sequence[RunTally]) -> dict[str, Any]:
    """The summary of one model: sums and means over its runs, with standard deviations where there are several."""
    summary: dict[str, Any] = {
        "model": model,
        "n_total": sum(run.rows for run in runs) // len(runs),
        "n_attempted": sum(run.attempted for run in runs),
        "reward": mean(run.reward for run in runs),
        "per_metric": {key: mean(run.per_metric[key] for run in runs) for key in runs[0].per_metric},
        "usage": _usage(runs),
        "timing": _mean_timing([run.timing for run in runs]),
    }
    if len(runs) > 1:
        summary["reward_std"] = stdev(run.reward for run in runs)
        summary["per_metric_std"] = {key: stdev(run.per_metric[key] for run in runs) for key in runs[0].per_metric}
    if errors := sum(run.by_category.total() for run in runs):
        summary["errors"] = {
            "total_errors": errors,
            "by_category": dict(sum((run.by_category for run in runs), Counter())),
            "by_exception_type": dict(sum((run.by_exception for run in runs), Counter())),
        }
    return summary


def _mean_timing(timings: Sequence[dict[str, Any]]) -> dict[str, Any]:
    by_grader = [timing["per_grader_mean"] for timing in timings]
    graders = {key for of_run in by_grader for key in of_run}
    return {
        **{key: mean(timing[key] for timing in timings) for key in timings[0] if key != "per_grader_mean"},
        "per_grader_mean": {key: mean(of_run[key] for of_run in by_grader if key in of_run) for key in sorted(graders)},
    }


def _usage(runs: Sequence[RunTally]) -> dict[str, Any]:
    used: dict[str, Any] = {key: sum(run.used[key] for run in runs) for key in _USED}
    costs = [run.cost for run in runs if run.cost is not None]
    return used | ({"cost": sum(costs)} if costs else {})
