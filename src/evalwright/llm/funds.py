"""Money that calls may spend: a fixed amount, or what a ledger grants little by little (`evalwright.run.leases`)."""

from __future__ import annotations

import asyncio

from evalwright.errors import money

__all__ = ["Funds"]


class Funds:
    """A fixed amount of US dollars, and how much of it is spent."""

    def __init__(self, granted: float, spent: float = 0.0) -> None:
        self.granted: float = granted
        """What may be spent, including what is spent already."""
        self.spent: float = spent

    def more(self, least: float, wanted: float) -> asyncio.Task[None] | None:
        """Begin to raise what is granted by what is `wanted`; None if there is no more at the moment.

        `least` is the part without which nothing can continue: 0 if calls under way will make room.
        """
        return None

    def __str__(self) -> str:
        return money(self.granted)
