"""What was odd about the answers of one session, counted for each system, in however many processes it answered."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from evalwright.errors import counted
from evalwright.model.trace import Doubt

__all__ = ["Doubts"]


@dataclass(slots=True)
class _Count:
    first: Doubt
    times: int = 0


class Doubts:
    """The doubts about all answers of a session; one of each kind is kept."""

    def __init__(self) -> None:
        self._found: dict[str, dict[tuple[str, bool], _Count]] = {}

    def add(self, variant: str, doubts: Sequence[Doubt]) -> None:
        """Count the doubts about one answer of a variant."""
        found = self._found.setdefault(variant, {})
        for doubt in doubts:
            found.setdefault((doubt.what, doubt.if_all), _Count(doubt)).times += 1

    def texts(self, answers: Mapping[str, int]) -> Iterator[str]:
        """What is to be said of each variant that gave so many `answers`."""
        for variant, found in self._found.items():
            replies = counted(answers[variant], "reply", "replies")
            for (what, if_all), count in found.items():
                if not if_all:
                    example = f": {count.first.example}" if count.first.example else ""
                    yield f"{variant}: {what} in {count.times} of {replies}{example}"
                elif count.times == answers[variant]:
                    yield f"{variant}: {what} in any of {replies}"
