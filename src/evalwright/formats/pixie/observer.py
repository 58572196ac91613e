"""Reports what the user's own tests evaluate to a keeper: the pytest plug-in, during its session."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Protocol

__all__ = ["PASSES", "Keeper", "Note", "keep_with", "noted"]

PASSES = 0.5
"""The score from which an evaluator passes by default."""


@dataclass(eq=False)
class Note:
    """One thing that was judged: an input, the application's output for it, and each evaluator's judgement."""

    given: Any
    evaluators: Sequence[Any]
    threshold: float
    started_at: datetime
    evaluable: Any = None
    """None while the application has returned nothing, or if it never did."""
    spans: Sequence[Any] = ()
    outcomes: Sequence[Any] = ()
    """An Evaluation, or the exception raised instead, by position of the evaluator."""
    error: BaseException | None = None
    """Why the evaluators were not called."""
    finished_at: datetime | None = None
    seconds: float | None = None
    """How long the application took; None if it was not called."""


class Keeper(Protocol):
    """Is called with every note when it begins and again when it is complete; raises nothing."""

    def begin(self, note: Note) -> None: ...

    def end(self, note: Note) -> None: ...


_keeper: Keeper | None = None  # per process: there is one pytest session, which outlives all its tests


def keep_with(keeper: Keeper | None) -> None:
    """Report notes to `keeper` from now on; None stops it."""
    global _keeper
    _keeper = keeper


@contextmanager
def noted(given: Any, evaluators: Sequence[Any], threshold: float = PASSES, evaluable: Any = None) -> Iterator[Note]:
    """A note to be filled in the block; an exception of the block before there are outcomes becomes its error."""
    note = Note(given, evaluators, threshold, datetime.now(UTC), evaluable)
    keeper = _keeper
    if keeper is not None:
        keeper.begin(note)
    try:
        yield note
    except BaseException as error:
        if not note.outcomes:
            note.error = error
        raise
    finally:
        note.finished_at = datetime.now(UTC)
        if keeper is not None:
            keeper.end(note)
