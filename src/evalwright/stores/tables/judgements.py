"""A complete new set of results and verdicts for a run in a database: files first, then one transaction."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

from evalwright.errors import StorageError
from evalwright.files.masker import Masker
from evalwright.files.temporary import TemporaryFolder
from evalwright.stores.local_files.judgements import LocalShare
from evalwright.stores.tables.rows import Row, row_of_line
from evalwright.stores.tables.statements import Rows

__all__ = ["TableJudgements"]


class TableJudgements:
    """The new set, from the first share to its commit; shares are files in a temporary folder."""

    def __init__(self, location: str, masker: Masker, replace: Callable[[Rows, Rows], None]) -> None:
        self._location, self._masker, self._replace = location, masker, replace
        self._temporary = TemporaryFolder()
        self._folder = self._temporary.path
        self._shares: dict[int, LocalShare] = {}

    def share(self, number: int) -> LocalShare:
        return self._shares.setdefault(number, LocalShare(self._folder, number, self._masker))

    def commit(self) -> None:
        """Replace the old set. Raises StorageError, also if a share was begun and never closed."""
        shares = [self._folder / str(number) for number in sorted(self._shares)]
        for share in shares:
            if not share.is_dir():
                raise StorageError(f"share {share.name} of the new results was never finished: {self._location}")
        self._replace(partial(_rows, shares, "results.jsonl"), partial(_rows, shares, "verdicts.jsonl"))
        self._temporary.close()

    def abandon(self) -> None:
        for share in self._shares.values():
            share.drop()
        self._temporary.close()


def _rows(shares: list[Path], name: str) -> Iterator[Row]:
    for share in shares:
        with (share / name).open("rb") as file:
            yield from map(row_of_line, file)
