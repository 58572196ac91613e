"""Notes about records of a run that cannot be read, and which of them leave something out."""

from __future__ import annotations

from evalwright.model.protocols import RunReader

__all__ = ["Mended", "unreadable_records"]


class Mended(str):
    """A note of damage that left nothing out: the end of an unfinished line, a summary that is made of the records."""

    __slots__ = ()


def unreadable_records(reader: RunReader) -> list[str]:
    """What could not be read of a run until now and is in no number: nothing that is told of the run is the whole."""
    return [note for note in reader.damage if not isinstance(note, Mended)]
