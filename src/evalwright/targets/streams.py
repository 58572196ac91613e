"""Answers that arrive in pieces: the texts that a generator yields, joined, and when the first one arrived."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Iterator
from typing import Any

from evalwright.errors import TargetError
from evalwright.files.plain import clean_text
from evalwright.model.trace import Answer, Metrics, Output
from evalwright.targets.answer_parts import with_notes

__all__ = ["collected", "collected_async"]


def collected(pieces: Iterator[Any]) -> Answer:
    """The answer of a generator; without any piece there is none.

    Raises TargetError for a piece that is not text and for a value that it returns at its end, which nothing would
    read, and whatever the generator raises.
    """
    stream = _Stream()
    while True:
        try:
            piece = next(pieces)
        except StopIteration as end:
            if end.value is not None:
                message = f"a generator's pieces are its answer, but it also returns {type(end.value).__name__}"
                raise TargetError(f"{message}: return a mapping instead of yielding, or yield only") from None
            return stream.answer()
        stream.add(piece)


async def collected_async(pieces: AsyncIterator[Any]) -> Answer:
    """As `collected`."""
    stream = _Stream()
    async for piece in pieces:
        stream.add(piece)
    return stream.answer()


class _Stream:
    def __init__(self) -> None:
        self._start = time.monotonic()
        self._texts: list[str] = []
        self._first: int | None = None
        self._last: int | None = None

    def add(self, piece: Any) -> None:
        if not isinstance(piece, str):
            raise TargetError(f"expected a generator of texts, found the item {type(piece).__name__}")
        self._last = int((time.monotonic() - self._start) * 1000)
        # `or` would treat a first piece after 0 ms as none.
        self._first = self._last if self._first is None else self._first
        self._texts.append(piece)

    def answer(self) -> Answer:
        notes: list[str] = []
        text = clean_text("".join(self._texts), "final_answer", notes) if self._texts else None
        metrics = Metrics(
            latency_first_token_ms=self._first,
            latency_last_token_ms=self._last,
            stream_chunks=len(self._texts),
            stream_completed=True,
        )
        return with_notes(Answer(output=Output(final_answer=text), metrics=metrics), notes)
