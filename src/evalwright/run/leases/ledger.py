"""A ledger: what shards of a run may use of the limits that they share, in the tables of a database.

A shard takes an amount before it uses it, in one transaction. So whatever dies whenever, all shards together hold no
more than a limit: what a dead one holds counts as used. Amounts are whole billionths, of which sums are exact.
"""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from evalwright.errors import EvalwrightError, InputError

__all__ = ["LEDGER_TABLES", "Execute", "Ledger", "LedgerUnreachable"]

Execute = Callable[..., list[tuple[Any, ...]]]
"""Executes a statement, whose parameters are marked by `?`, and returns its rows."""

LEDGER_TABLES = {
    "lease_limits": "run TEXT NOT NULL, name TEXT NOT NULL, most BIGINT, PRIMARY KEY (run, name)",
    "lease_holdings": "run TEXT NOT NULL, name TEXT NOT NULL, holder TEXT NOT NULL, amount BIGINT NOT NULL, "
    "PRIMARY KEY (run, name, holder)",
    "lease_moments": "run TEXT PRIMARY KEY, next BIGINT NOT NULL",
    "lease_pauses": "place TEXT PRIMARY KEY, until BIGINT NOT NULL",
}
"""The columns of each table. `most` is null if the run does not have that limit; times are nanoseconds since 1970."""

_SECOND = 1_000_000_000


class LedgerUnreachable(EvalwrightError):
    """The ledger could not be read or written; it may be there again a moment later."""


class Ledger(ABC):
    """What shards hold of the limits of a run. Several processes use it at the same time; each call is a transaction.

    All methods raise LedgerUnreachable.
    """

    @abstractmethod
    def prepare(self) -> None:
        """Create the ledger if it is missing. Raises InputError for a place that can have none."""

    @abstractmethod
    @contextmanager
    def _transaction(self) -> Iterator[Execute]:
        """What the block executes becomes valid at its end, all or nothing; other transactions wait until then."""

    def _now(self, execute: Execute) -> int:
        """The time that all shards go by, in nanoseconds."""
        return time.time_ns()

    @abstractmethod
    def close(self) -> None:
        """Close connections; the next call opens them again."""

    @abstractmethod
    def __str__(self) -> str: ...

    def agree(self, run: str, limits: Mapping[str, int | None]) -> None:
        """Note the limits of a run, by name. Raises InputError if another shard of it has others."""
        with self._transaction() as execute:
            known = dict(execute("SELECT name, most FROM lease_limits WHERE run = ?", run))
            if not known:
                for name, most in limits.items():
                    execute("INSERT INTO lease_limits VALUES (?, ?, ?)", run, name, most)
                return
        for name, most in limits.items():
            if known.get(name) != most:
                limit, here = ("none" if one is None else f"{one / _SECOND:.9g}" for one in (known.get(name), most))
                raise InputError(
                    f"--lease {self}: the other shards of this run have {name} {limit}, this one {here}; give all the "
                    "same, or name another ledger for another run"
                )

    def hold(self, run: str, name: str, holder: str, amount: int) -> int:
        """Set what a shard holds of a limit to what it has used; returns what no shard holds."""
        with self._transaction() as execute:
            execute(
                "INSERT INTO lease_holdings VALUES (?, ?, ?, ?) "
                "ON CONFLICT (run, name, holder) DO UPDATE SET amount = excluded.amount",
                *(run, name, holder, amount),
            )
            return max(
                0, self._highest_grant(execute, run, name) - sum(self._held_by_owner(execute, run, name).values())
            )

    def take(
        self, run: str, name: str, holder: str, least: int, wanted: int, used: int, shards: int
    ) -> tuple[int, bool]:
        """Take more of a limit, of which the shard has `used` an amount; returns what it holds, and whether that is
        all that there was.

        It gets what it wants, but no more unused than its part of what is neither used nor held, so that something is
        left for the other shards; unless it needs more, at `least`, to make a single call.
        """
        with self._transaction() as execute:
            held = self._held_by_owner(execute, run, name)
            if holder not in held:  # another file took the place of the one in which this shard was noted
                raise LedgerUnreachable("it no longer knows this shard")
            before = held[holder]
            held[holder] = max(before, used)  # the last call may have cost more than there was
            left = max(0, self._highest_grant(execute, run, name) - sum(held.values()))
            unused = held[holder] - used
            fair = (left + unused) // shards - unused
            share = min(left, max(least, min(wanted, fair), 0))
            amount = held[holder] + share
            if amount > before:
                execute(
                    "UPDATE lease_holdings SET amount = ? WHERE run = ? AND name = ? AND holder = ?",
                    *(amount, run, name, holder),
                )
        return amount, share == left

    def moments(self, run: str, count: int, gap: int) -> list[float]:
        """The next `count` moments for calls that are `gap` nanoseconds apart, in seconds from now."""
        with self._transaction() as execute:
            now = self._now(execute)
            first = max([now, *(row[0] for row in execute("SELECT next FROM lease_moments WHERE run = ?", run))])
            execute(
                "INSERT INTO lease_moments VALUES (?, ?) ON CONFLICT (run) DO UPDATE SET next = excluded.next",
                *(run, first + count * gap),
            )
        return [(first + nth * gap - now) / _SECOND for nth in range(count)]

    def pause(self, place: str, seconds: float) -> None:
        """Note that no shard should call a place for this many seconds."""
        with self._transaction() as execute:
            now = self._now(execute)
            execute("DELETE FROM lease_pauses WHERE until < ?", now)
            until = max(
                [
                    now + round(seconds * _SECOND),
                    *(row[0] for row in execute("SELECT until FROM lease_pauses WHERE place = ?", place)),
                ]
            )
            execute(
                "INSERT INTO lease_pauses VALUES (?, ?) ON CONFLICT (place) DO UPDATE SET until = excluded.until",
                *(place, until),
            )

    def pauses(self) -> dict[str, float]:
        """For how many seconds places should not be called yet."""
        with self._transaction() as execute:
            now = self._now(execute)
            rows = execute("SELECT place, until FROM lease_pauses WHERE until > ?", now)
        return {place: (until - now) / _SECOND for place, until in rows}

    def _highest_grant(self, execute: Execute, run: str, name: str) -> int:
        rows = execute("SELECT most FROM lease_limits WHERE run = ? AND name = ?", run, name)
        if not rows:
            raise LedgerUnreachable("it no longer knows this run")
        return int(rows[0][0] or 0)

    def _held_by_owner(self, execute: Execute, run: str, name: str) -> dict[str, int]:
        return dict(execute("SELECT holder, amount FROM lease_holdings WHERE run = ? AND name = ?", run, name))
