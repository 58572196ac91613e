"""The limit on what the calls of systems may cost in a run, `run.cost_limit_usd`, with many concurrent cells."""

from __future__ import annotations

import asyncio

from evalwright.errors import money
from evalwright.llm.funds import Funds
from evalwright.model.plan import Plan
from evalwright.model.trace import Answer, TraceError
from evalwright.run.cells import RunState, fitted, groups_of

__all__ = ["CostLimit", "cost_limit_of"]

_LEAST = 1e-9
"""US dollars: without any, not even the first cell begins, whose cost is unknown."""
_LOOK = 0.25
"""Seconds between checks of whether a cell in flight has ended, or the run is to stop."""


class CostLimit:
    """A limit in US dollars, and how much of it is spent.

    The cost of a cell is only known afterwards. So each cell in flight counts like the most expensive one so far, and
    before there is one, a single cell goes first: only the last cell may exceed the limit, however many run at once.
    """

    def __init__(self, funds: Funds, at_once: int = 1) -> None:
        self.funds: Funds = funds
        self._at_once = at_once
        """The most cells that run at once."""
        self._under_way = 0
        self._dearest: float | None = None

    @property
    def reached(self) -> bool:
        return self.funds.spent >= self.funds.granted

    def more(self, left: int) -> asyncio.Task[None] | None:
        """Begin to get money if there may not be enough for another cell, of those that are `left`; None if there is,
        or no more can be had now."""
        if self._under_way and self._dearest is None:
            return None
        dearest, unspent = self._dearest or 0.0, self.funds.granted - self.funds.spent
        if unspent > 0 and dearest * (self._under_way + 1) <= unspent:
            return None
        alone = self.reached or not self._under_way
        least = max(dearest - unspent, _LEAST) if alone else 0.0
        cells = max(min(self._at_once, left), self._under_way + 1)
        return self.funds.more(least, max(least, dearest * cells - unspent))

    def has_room(self) -> bool:
        """Whether another cell may begin now; if not, one in flight has to end first."""
        if not self._under_way:
            return True
        if self._dearest is None:
            return False
        return self.funds.spent + self._dearest * (self._under_way + 1) <= self.funds.granted

    async def wait_for_room(self, state: RunState) -> bool:
        """Wait until another cell may begin, and begin it; False if the limit is reached or the run is to stop."""
        while not state.stopping:
            if (asking := self.more(state.total - state.done)) is not None:
                await asyncio.wait([asking])
            elif self.reached:
                return False
            elif self.has_room():
                self.begin()
                return True
            else:
                await asyncio.sleep(_LOOK)
        return False

    def refusal(self) -> Answer:
        """The answer of a cell that is not run because the limit is reached."""
        why = f"not run: cost limit reached ({money(self.funds.spent)} of {self.funds}, run.cost_limit_usd)"
        return Answer(error=TraceError("cost_limit", why), called=False)

    def begin(self) -> None:
        self._under_way += 1

    def end(self) -> None:
        self._under_way -= 1

    def spend(self, cost: float | None) -> None:
        """Add the cost of a cell; None if it is unknown."""
        self.funds.spent += cost or 0.0
        self._dearest = max(self._dearest or 0.0, cost or 0.0)


def cost_limit_of(plan: Plan, state: RunState) -> CostLimit:
    """That of a run, or what a shard may spend of it."""
    if state.lease is not None:
        funds: Funds = state.lease.funds["run.cost_limit_usd"]
    else:
        limit = plan.run.cost_limit_usd if plan.shard is None else plan.shard.cost_limit_usd
        assert limit is not None
        funds = Funds(limit, state.cost_usd)
    return CostLimit(funds, sum(width for _, width in fitted(groups_of(plan), state.total, state.at_once)))
