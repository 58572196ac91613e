"""Notes about unreadable records of a run, and which of them mean that something is missing."""

from __future__ import annotations

from evalwright.model.protocols import RunReader

__all__ = ["MendedDamage", "located_damage", "unreadable_records"]


class MendedDamage(str):
    """A note about damage that lost nothing: the end of an unfinished line, or a summary that was rebuilt."""

    __slots__ = ()


def unreadable_records(reader: RunReader) -> list[str]:
    """Records that could not be read so far and are in no number: whatever is reported of the run is incomplete."""
    return [note for note in reader.damage if not isinstance(note, MendedDamage)]


def located_damage(*readers: RunReader) -> list[str]:
    """The unreadable records of several runs as warnings that name the run."""
    return [f"cannot be read: {reader.location}: {note}" for reader in readers for note in unreadable_records(reader)]
