"""Sums of time, tokens and cost over the cells of an index, kept up to date so that rows need not be added up again."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from math import isfinite
from operator import itemgetter
from typing import Any

import msgspec

from evalwright.statistics.sums import exact_parts
from evalwright.stores.index.schema import AT

__all__ = ["AGGREGATES", "KeptSums"]

_SUMMED = itemgetter(AT.latency_ms, AT.tokens_in, AT.tokens_out, AT.cost_usd, AT.group_name, AT.numbers, AT.finished)


AGGREGATES = (
    "count(latency_ms), sum(latency_ms), count(tokens_in), sum(tokens_in), count(tokens_out), sum(tokens_out), "
    "count(group_name), count(numbers), max(finished)"
)
"""The aggregates over the rows of a profile that `KeptSums.of_columns` takes."""


class _Total(msgspec.Struct):
    """A sum of whole numbers, and their count."""

    n: int = 0
    total: int = 0

    def count(self, values: Sequence[int | None], times: int) -> None:
        """Add values, or subtract them with `times` of -1."""
        self.n += times * (len(values) - values.count(None))
        self.total += times * sum(filter(None, values))

    def join(self, other: _Total) -> None:
        """Add another sum."""
        self.n, self.total = self.n + other.n, self.total + other.total


class KeptSums(msgspec.Struct):
    """Sums over the cells of one profile."""

    latency_ms: _Total = msgspec.field(default_factory=_Total)
    tokens_in: _Total = msgspec.field(default_factory=_Total)
    tokens_out: _Total = msgspec.field(default_factory=_Total)
    costs: int = 0
    """Cells that have a cost."""
    cost_parts: list[float] = []
    """Their exact sum, as floats that add up to it, so that replaced cells can be subtracted again."""
    grouped: int = 0
    measured: int = 0
    """Cells with a result that has a cost, or a score other than 0 and 1."""
    finished: int | None = None
    """No cell was finished later."""
    reached: bool = True
    """Whether a cell was finished at that time: unknown once that cell was replaced."""

    @classmethod
    def of_columns(cls, columns: Sequence[Any], costs: Sequence[float]) -> KeptSums:
        """The sums of all cells of a profile, from the `AGGREGATES` of their rows and their known costs."""
        latencies, latency, inputs, tokens_in, outputs, tokens_out, grouped, measured, finished = columns
        return cls(
            _Total(latencies, latency or 0),
            _Total(inputs, tokens_in or 0),
            _Total(outputs, tokens_out or 0),
            len(costs),
            exact_parts([*costs]),
            grouped,
            measured,
            finished,
        )

    def add(self, rows: Iterable[Sequence[Any]]) -> None:
        """Add new rows of cells."""
        self._count(rows, 1)

    def remove(self, rows: Iterable[Sequence[Any]]) -> None:
        """Subtract rows that others replace."""
        self._count(rows, -1)

    @property
    def known(self) -> bool:
        """Whether these are the sums; otherwise all cells must be looked at."""
        return self.reached and all(map(isfinite, self.cost_parts))

    def text(self) -> str:
        """The text in which an index stores them."""
        return json.dumps(msgspec.to_builtins(self))  # not by msgspec, as a cost may be infinite

    @classmethod
    def of_text(cls, text: str) -> KeptSums:
        """The stored sums."""
        return msgspec.convert(json.loads(text), cls)

    @classmethod
    def together(cls, parts: Iterable[KeptSums]) -> KeptSums:
        """The sums of several profiles."""
        whole = cls()
        for row in parts:
            whole.latency_ms.join(row.latency_ms)
            whole.tokens_in.join(row.tokens_in)
            whole.tokens_out.join(row.tokens_out)
            whole.costs += row.costs
            whole.cost_parts = exact_parts([*whole.cost_parts, *row.cost_parts])
            whole.grouped += row.grouped
            whole.measured += row.measured
            if row.finished is not None and (whole.finished is None or row.finished >= whole.finished):
                whole.reached = row.reached or (whole.reached and row.finished == whole.finished)
                whole.finished = row.finished
        return whole

    def _count(self, rows: Iterable[Sequence[Any]], times: int) -> None:
        columns = list(zip(*map(_SUMMED, rows), strict=True))
        if not columns:
            return
        latency, tokens_in, tokens_out, costs, groups, numbers, finished = columns
        for total, values in zip(
            (self.latency_ms, self.tokens_in, self.tokens_out), (latency, tokens_in, tokens_out), strict=True
        ):
            total.count(values, times)
        known = [times * cost for cost in costs if cost is not None]
        self.costs += times * len(known)
        self.cost_parts = exact_parts([*self.cost_parts, *known])
        self.grouped += times * (len(groups) - groups.count(None))
        self.measured += times * (len(numbers) - numbers.count(None))
        last = max((moment for moment in finished if moment is not None), default=None)
        if last is None:
            return
        if times < 0:
            self.reached = self.reached and last != self.finished
        elif self.finished is None or last >= self.finished:
            self.finished, self.reached = last, True
