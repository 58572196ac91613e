"""Notes about unreadable records of a run, and which of them mean that something is missing."""

from __future__ import annotations

from evalwright.errors import counted
from evalwright.model.protocols import RunReader

__all__ = ["MendedDamage", "located_damage", "missing_results", "unreadable_records"]


class MendedDamage(str):
    """A note about damage that lost nothing: the end of an unfinished line, or a summary that was rebuilt."""

    __slots__ = ()


def unreadable_records(reader: RunReader) -> list[str]:
    """Records that could not be read so far and are in no number: whatever is reported of the run is incomplete."""
    return [note for note in reader.damage if not isinstance(note, MendedDamage)]


def missing_results(cells: int) -> str:
    """The note about finished cells that have a verdict and no results, which a power cut may leave."""
    return f"results: those of {counted(cells, 'finished cell')} are missing; re-evaluate restores them"


def located_damage(*readers: RunReader) -> list[str]:
    """The unreadable records of several runs as warnings that name the run."""
    return [f"cannot be read: {reader.location}: {note}" for reader in readers for note in unreadable_records(reader)]
