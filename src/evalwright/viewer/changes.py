"""How many cases of a run are worse, and better, than in another: counted in the background, pair by pair."""

from __future__ import annotations

import threading
from contextlib import closing
from queue import SimpleQueue
from typing import NamedTuple

from evalwright.viewer.shelf import RunSource

__all__ = ["ChangeCounts", "ChangeTally"]

_MOST_CELLS = 100_000
"""Cells of both runs together; larger runs are compared only on request."""
_MOST_KNOWN = 1000


class ChangeCounts(NamedTuple):
    """Of the cases that both runs judged; `difference` is None where there are none."""

    worse: int
    better: int
    difference: float | None


class _Pair(NamedTuple):
    """The runs that are compared; `state` changes with the records of either."""

    older: str
    newer: str
    variant: str
    state: tuple[object, ...]


class ChangeTally:
    """The counts known so far."""

    def __init__(self) -> None:
        self._known: dict[_Pair, ChangeCounts | None] = {}
        self._lock = threading.Lock()
        self._queue: SimpleQueue[tuple[_Pair, RunSource, RunSource]] = SimpleQueue()
        self._worker: threading.Thread | None = None

    def of(
        self, older: RunSource, newer: RunSource, variant: str, state: tuple[object, ...], cells: int
    ) -> ChangeCounts | None:
        """None until it has been counted, and if it cannot be; `cells` are those of both runs."""
        pair = _Pair(older.id, newer.id, variant, state)
        with self._lock:
            if pair in self._known:
                return self._known[pair]
            if cells > _MOST_CELLS:
                return None
            while len(self._known) >= _MOST_KNOWN:
                del self._known[next(iter(self._known))]
            self._known[pair] = None
            if self._worker is None:  # a daemon: whoever stops the server does not wait for it
                self._worker = threading.Thread(target=self._work, daemon=True, name="changed cases")
                self._worker.start()
        self._queue.put((pair, older, newer))
        return None

    def _work(self) -> None:
        while True:
            pair, older, newer = self._queue.get()
            try:
                counts = _change_counts(older, newer, pair.variant)
            except Exception:  # the page of the comparison reports the problem
                continue
            with self._lock:
                self._known[pair] = counts


def _change_counts(older: RunSource, newer: RunSource, variant: str) -> ChangeCounts | None:
    from evalwright.decisions.changes import changed_counts  # imported only when needed: it is slow
    from evalwright.decisions.sides import sides_of
    from evalwright.scoring.case_names import under_names_of

    (reader_a, plan_a), (reader_b, plan_b) = older.open(), newer.open()
    with closing(reader_a), closing(reader_b):
        before = under_names_of(reader_b.cases, plan_b, reader_a, plan_a)
        a, b = sides_of(before, plan_a).get(variant), sides_of(reader_b, plan_b).get(variant)
        return None if a is None or b is None else ChangeCounts(*changed_counts(a, b))
