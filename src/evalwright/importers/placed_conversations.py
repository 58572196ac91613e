"""A record that is one conversation, as a recording of a case."""

from __future__ import annotations

from pathlib import Path

from evalwright.files.plain import mapping_or_empty
from evalwright.importers.imported_records import Imported
from evalwright.importers.placed_records import ImportRecord
from evalwright.importers.transcript import Transcript

__all__ = ["imported_conversation"]


def imported_conversation(talk: Transcript, file: Path, place: ImportRecord, format: str) -> Imported:
    """The recording of a conversation; the `id` of its record, if it is a text, is that of the case."""
    id = mapping_or_empty(place.value).get("id")
    return Imported(
        file,
        id if isinstance(id, str) and id else None,
        {"user_message": talk.user_message or ""},
        talk.trace("recorded", {"imported_from": {"file": file.name, "format": format, **place.origin()}}),
        record=place.value,
        line=place.line,
    )
