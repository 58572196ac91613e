"""The order of the dataset, in which reports list cells: records are stored as cells end."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Generic, Protocol, TypeVar

from evalwright.model.plan import Variant
from evalwright.model.summary import VariantSummary

__all__ = ["First", "Place", "PlacedRecord", "order_of"]


class PlacedRecord(Protocol):
    """The place of a record, as stored in it."""

    variant_name: str
    trial: int
    case_index: int | None


T = TypeVar("T")

Place = tuple[float, int, int]


def order_of(variants: Iterable[Variant | VariantSummary]) -> Callable[[PlacedRecord], Place]:
    """The key by which records are sorted: case, variant in this order, trial.

    Records in folders that other programs wrote do not contain the place of their case: they keep their stored order,
    after all others.
    """
    places = {variant.name: place for place, variant in enumerate(variants)}

    def place(record: PlacedRecord) -> Place:
        if record.case_index is None:
            return float("inf"), 0, 0
        return record.case_index, places.get(record.variant_name, len(places)), record.trial

    return place


class First(Generic[T]):
    """The first few of many, by a key; the others are not kept."""

    def __init__(self, limit: int, key: Callable[[T], Place]) -> None:
        self._limit, self._key = limit, key
        self._kept: list[T] = []

    def add(self, one: T) -> None:
        self._kept.append(one)
        if len(self._kept) > 2 * self._limit + 100:
            self._cut()

    def _cut(self) -> None:
        self._kept = sorted(self._kept, key=self._key)[: self._limit]

    def sorted(self) -> list[T]:
        self._cut()
        return self._kept
