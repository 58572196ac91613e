"""The rows of the table `cells`: times as numbers, places packed, and the cell that a row stands for."""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from itertools import chain
from typing import Any

from msgspec import UNSET

from evalwright.model.cell_index import CellEntry, CellOutcome
from evalwright.stores.index.codes import Profile, Unindexable, outcomes_of
from evalwright.stores.index.schema import AT, RESULTS_PLACE, TRACE_PLACE, VERDICT_PLACE

__all__ = [
    "adjacent",
    "cell_entry",
    "id_of_row",
    "microseconds",
    "moment_of",
    "moved_row",
    "packed",
    "places_of",
    "results_block",
    "unpacked",
]

_EPOCH = datetime(2028, 1, 1, tzinfo=UTC)
"""SQLite stores microseconds within four years of this date in six bytes, and all others in eight."""
_MICROSECOND = timedelta(microseconds=1)
_LONGEST = 0xFFFF


def microseconds(moment: datetime | None) -> int | None:
    """A time as a whole number.

    Raises Unindexable for a time in another zone, which would be read back as another text.
    """
    if moment is None:
        return None
    if moment.tzinfo is not UTC:
        raise Unindexable("a time is not in UTC")
    return (moment - _EPOCH) // _MICROSECOND


def moment_of(finished: int | None) -> datetime | None:
    """The time for a number of microseconds."""
    return None if finished is None else _EPOCH + finished * _MICROSECOND


def packed(places: Sequence[tuple[int, int]]) -> tuple[int | None, bytes | None]:
    """Where results are: the first place and the lengths if they are adjacent, as they are except after retries."""
    if not places:
        return None, None
    at = start = places[0][0]
    for place, length in places:
        if place != at or length > _LONGEST:
            return None, array("q", chain.from_iterable(places)).tobytes()
        at += length
    return start, array("H", [length for _, length in places]).tobytes()


def places_of(row: Sequence[Any]) -> list[tuple[int, int]]:
    """Where a row's results are, each as position and length."""
    return unpacked(*row[RESULTS_PLACE])


def unpacked(at: int | None, lengths: bytes | None) -> list[tuple[int, int]]:
    """Where results are, from what `packed` returned."""
    if at is None:
        numbers = array("q", lengths or b"")
        return list(zip(numbers[::2], numbers[1::2], strict=True))
    places = []
    for length in array("H", lengths or b""):
        places.append((at, length))
        at += length
    return places


def results_block(row: Sequence[Any]) -> tuple[int, int]:
    """Where a row's results are if they are adjacent; nothing if they are not."""
    at, packed = row[RESULTS_PLACE]
    return (0, 0) if at is None else (at, sum(array("H", packed)))


def moved_row(
    row: Sequence[Any],
    profile: int,
    numbers: bytes | None,
    trace: tuple[int, int],
    results: tuple[int, Sequence[int]],
    verdict: tuple[int, int],
) -> tuple[Any, ...]:
    """The row of a cell whose records have moved to other places, and whose results may be in another order.

    A place is start and length; results are adjacent, and have one length each.
    """
    moved = [*row]
    moved[AT.profile], moved[AT.numbers] = profile, numbers
    moved[TRACE_PLACE], moved[RESULTS_PLACE], moved[VERDICT_PLACE] = trace, adjacent(*results), verdict
    return tuple(moved)


def adjacent(at: int, lengths: Sequence[int]) -> tuple[int | None, bytes | None]:
    """Where adjacent results are, as in the row."""
    if lengths and max(lengths) <= _LONGEST:
        return at, array("H", lengths).tobytes()
    return packed([(at + sum(lengths[:place]), length) for place, length in enumerate(lengths)])


def id_of_row(row: Sequence[Any]) -> str:
    """The id of a row's case."""
    name: str = row[AT.case_key]
    return name if row[AT.occurrence] is None else name.removesuffix(f"#{row[AT.occurrence]}")


def cell_entry(row: Sequence[Any], profile: Profile, outcomes: Sequence[CellOutcome] | None = None) -> CellEntry:
    """The cell of a row."""
    variant, status, error, _ = profile
    (  # at once, and not by name: pages and commands that list cells do this for each of them
        number, _, group, _, occurrence, distance, kind, _, trial, attempt, _, _, _, _, finished, _, _, numbers, score,
        latency, cost, tokens_in, tokens_out,
    ) = row  # fmt: skip
    return CellEntry(
        number,
        id_of_row(row),
        UNSET if occurrence is None else occurrence,
        variant,
        trial,
        attempt,
        None if distance is None else distance + number,
        status,  # type: ignore[arg-type]
        error,
        outcomes_of(profile, numbers) if outcomes is None else outcomes,
        score,
        latency,
        cost,
        tokens_in,
        tokens_out,
        group,
        moment_of(finished),
        kind if numbers is None else None,
    )
