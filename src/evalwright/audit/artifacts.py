"""Artifacts of runs that another program keeps in tables alone: files for as long as an audit looks at them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from evalwright.files.temporary import temporary_folder
from evalwright.model.protocols import RunReader

__all__ = ["unpacked_artifacts"]


@contextmanager
def unpacked_artifacts(reader: RunReader) -> Iterator[Path | None]:
    """A temporary folder with the artifacts that another program keeps only in tables; None for all other runs."""
    unpack = getattr(reader, "unpack_artifacts", None)
    if reader.plan is not None or unpack is None:
        yield None
        return
    with temporary_folder() as folder:
        unpack(folder)
        yield folder
