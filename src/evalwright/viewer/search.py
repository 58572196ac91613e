"""Words in messages, spans and calls of judges: the records are read once for each set of words."""

from __future__ import annotations

import json
import threading
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from typing import Any

import msgspec

from evalwright.errors import EvalwrightError
from evalwright.model.cell import OfCase
from evalwright.model.plan import Plan
from evalwright.model.protocols import RunReader
from evalwright.viewer.table import CellTable

__all__ = ["MessageSearch"]

_PATIENCE = 1.0
"""Seconds for which a page waits; then it shows what is found so far."""
_BATCH = 500


class _Ids(OfCase, msgspec.Struct, gc=False):
    case_id: str
    variant_name: str
    trial: int = 0


_ids = msgspec.json.Decoder(_Ids)


class MessageSearch:
    """One search, in a thread of its own until it is done or stopped."""

    def __init__(
        self, opened: Callable[[], tuple[RunReader, Plan]], table: CellTable, words: Sequence[str], cells: int
    ) -> None:
        self._open, self._table, self._words = opened, table, list(words)
        self._read, self._all = 0, max(1, 2 * cells)
        self._done = threading.Event()
        self._stopped = False
        threading.Thread(target=self._work, daemon=True, name="search in messages").start()

    def wait(self) -> MessageSearch:
        self._done.wait(_PATIENCE)
        return self

    def stop(self) -> None:
        self._stopped = True

    @property
    def is_done(self) -> bool:
        return self._done.is_set()

    @property
    def percent(self) -> int:
        """How much of the records has been searched."""
        return 100 if self.is_done else min(99, 100 * self._read // self._all)

    def _work(self) -> None:
        try:
            reader, _ = self._open()
            with closing(reader):
                self._search(reader.traces(msgspec.Raw))
                self._search(reader.results(msgspec.Raw))
        except EvalwrightError:
            pass  # whatever can be read is found; the run's page names the rest
        finally:
            self._done.set()

    def _search(self, records: Iterator[Any]) -> None:
        # in a stored line a quote or a backslash of a text has a backslash before it
        wanted = {word: json.dumps(word, ensure_ascii=False)[1:-1] for word in self._words}
        numbers_of_word: dict[str, list[int]] = defaultdict(list)
        for raw in records:
            if self._stopped:
                break
            self._read += 1
            line = bytes(raw).decode("utf-8", "replace").lower()
            hits = [word for word, text in wanted.items() if text in line]
            number = self._number_of(bytes(raw)) if hits else None
            if number is not None:
                for word in hits:
                    numbers_of_word[word].append(number)
            if self._read % _BATCH == 0:
                self._keep(numbers_of_word)
        self._keep(numbers_of_word)

    def _number_of(self, line: bytes) -> int | None:
        """The cell of a record; None for JSON that is no record of a cell in the table."""
        try:
            cell = _ids.decode(line)
            return self._table.number_of(cell.case_key, cell.variant_name, cell.trial)
        except (msgspec.ValidationError, OverflowError):  # SQLite has no numbers beyond 64 bits
            return None

    def _keep(self, numbers_of_word: dict[str, list[int]]) -> None:
        for word, numbers in numbers_of_word.items():
            self._table.words.add_in_messages(word, numbers)
        numbers_of_word.clear()
