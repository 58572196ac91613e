"""Notes about unreadable records of a run, and which of them mean that something is missing."""

from __future__ import annotations

from evalwright.model.protocols import RunReader

__all__ = ["Mended", "unreadable_records"]


class Mended(str):
    """A note about damage that lost nothing: the end of an unfinished line, or a summary that was rebuilt."""

    __slots__ = ()


def unreadable_records(reader: RunReader) -> list[str]:
    """Records that could not be read so far and are in no number: whatever is reported of the run is incomplete."""
    return [note for note in reader.damage if not isinstance(note, Mended)]
