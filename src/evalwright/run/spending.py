"""The limit on what the calls of systems may cost in a run, `run.cost_limit_usd`, with many concurrent cells."""

from __future__ import annotations

__all__ = ["CostLimit"]


class CostLimit:
    """A limit in US dollars, and how much of it is spent.

    The cost of a cell is only known afterwards. So each cell in flight counts like the most expensive one so far, and
    before there is one, a single cell goes first: only the last cell may exceed the limit, however many run at once.
    """

    def __init__(self, limit: float, spent: float) -> None:
        self.limit: float = limit
        self.spent: float = spent
        self._under_way = 0
        self._dearest: float | None = None

    @property
    def reached(self) -> bool:
        return self.spent >= self.limit

    def has_room(self) -> bool:
        """Whether another cell may begin now; if not, one in flight has to end first."""
        if not self._under_way:
            return True
        return self._dearest is not None and self.spent + self._dearest * (self._under_way + 1) <= self.limit

    def begin(self) -> None:
        self._under_way += 1

    def end(self) -> None:
        self._under_way -= 1

    def spend(self, cost: float | None) -> None:
        """Add the cost of a cell; None if it is unknown."""
        self.spent += cost or 0.0
        self._dearest = max(self._dearest or 0.0, cost or 0.0)
