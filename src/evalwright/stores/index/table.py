"""The rows of an index, and for each profile the number of cells and what they took and cost."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import msgspec

from evalwright.stores.index.codes import Profile, clean_profile
from evalwright.stores.index.connection import sound
from evalwright.stores.index.schema import AT, BY_NAME, REPLACE, insertion, is_named
from evalwright.stores.index.sources import CoveredRecords
from evalwright.stores.index.sums import AGGREGATES, KeptSums

__all__ = ["RowTable", "loaded_profiles"]

_Row = Sequence[Any]


def loaded_profiles(connection: sqlite3.Connection) -> dict[int, Profile]:
    rows = connection.execute("SELECT id, variant, status, error, outcomes FROM profiles")
    with sound(connection):
        return {number: msgspec.convert((*rest, json.loads(outcomes)), Profile) for number, *rest, outcomes in rows}


class RowTable:
    """Writes rows in a transaction that its user begins and commits; sums are written with `note`."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        self.profiles: dict[int, Profile] = loaded_profiles(connection)
        self._ids = {profile: (number, clean_profile(profile)) for number, profile in self.profiles.items()}
        self._sums: dict[int, KeptSums] = {}
        self.named: bool = is_named(connection)

    def profile(self, profile: Profile) -> tuple[int, bool]:
        """The number of a profile, and whether it is clean."""
        return self._ids.get(profile) or self._added_profile(profile)

    def _added_profile(self, profile: Profile) -> tuple[int, bool]:
        number, clean = len(self._ids) + 1, clean_profile(profile)
        variant, status, error, outcomes = profile
        self._connection.execute(
            "INSERT INTO profiles VALUES (?, 0, ?, ?, ?, ?, ?, ?)",
            (number, clean, variant, status, error, json.dumps(outcomes), KeptSums().text()),
        )
        self._ids[profile] = number, clean
        self.profiles[number] = profile
        return number, clean

    def insert(self, rows: Sequence[_Row]) -> None:
        """Write the rows of cells that have none yet."""
        if not rows:
            return
        columns = list(zip(*rows, strict=True))
        # Passing a null takes longer than passing any other value, and most rows have the same six.
        filled = [place for place, values in enumerate(columns) if values.count(None) < len(rows)]
        self._connection.executemany(insertion(filled), zip(*[columns[place] for place in filled], strict=True))
        self._count(rows, 1)

    def name_cells(self) -> None:
        """Create the index by name, after the last cell or before the first that has to be found by its name."""
        if not self.named:
            self._connection.execute(BY_NAME)
            self.named = True

    def replace(self, rows: Sequence[_Row], old: Sequence[_Row]) -> None:
        """Write rows in place of old ones."""
        self._connection.executemany(REPLACE, rows)
        self._count(old, -1)
        self._count(rows, 1)

    def _count(self, rows: Sequence[_Row], times: int) -> None:
        of_profiles: dict[int, list[_Row]] = {}
        for row in rows:
            of_profiles.setdefault(row[AT.profile], []).append(row)
        self._connection.executemany(
            "UPDATE profiles SET n = n + ? WHERE id = ?",
            [(times * len(some), number) for number, some in of_profiles.items()],
        )
        count: Callable[[KeptSums, Sequence[_Row]], None] = KeptSums.add if times > 0 else KeptSums.remove
        for number, some in of_profiles.items():
            sums = self._sums.get(number)
            if sums is None:
                query = "SELECT sums FROM profiles WHERE id = ?"
                sums = self._sums[number] = KeptSums.of_text(self._connection.execute(query, (number,)).fetchone()[0])
            count(sums, some)

    def recount(self) -> None:
        """Count and sum all cells again, after their profiles have changed."""
        self._connection.execute("UPDATE profiles SET n = 0, sums = ?", (KeptSums().text(),))
        costs: dict[int, list[float]] = {}
        for number, cost in self._connection.execute("SELECT profile, cost_usd FROM cells WHERE cost_usd IS NOT NULL"):
            costs.setdefault(number, []).append(cost)
        query = f"SELECT profile, count(*), {AGGREGATES} FROM cells GROUP BY profile"
        for number, n, *values in self._connection.execute(query).fetchall():
            sums = KeptSums.of_columns(values, costs.get(number, []))
            self._connection.execute("UPDATE profiles SET n = ?, sums = ? WHERE id = ?", (n, sums.text(), number))

    def note(self, covered: Mapping[str, CoveredRecords], traces: int, replaced: Sequence[float]) -> None:
        """Write how far the records were read, how many traces that were, and the costs of those that do not count."""
        rows = [(name, *msgspec.structs.astuple(entry)) for name, entry in covered.items()]
        self._connection.executemany("INSERT OR REPLACE INTO covered VALUES (?, ?, ?, ?)", rows)
        self._connection.executemany("INSERT INTO replaced VALUES (?)", [(cost,) for cost in replaced])
        self._connection.executemany(
            "UPDATE profiles SET sums = ? WHERE id = ?", [(sums.text(), number) for number, sums in self._sums.items()]
        )
        self._sums.clear()
        self._connection.execute(
            "INSERT INTO meta VALUES ('traces', ?) ON CONFLICT DO UPDATE SET value = value + excluded.value", (traces,)
        )
