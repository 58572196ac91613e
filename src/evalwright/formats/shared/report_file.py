"""A report that is written to a file of the user's choice whenever a session of the run ends."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from evalwright.files.durable import make_folder, must_be_writable, write_output
from evalwright.model.plan import Plan
from evalwright.model.protocols import RunReader
from evalwright.model.summary import RunSummary
from evalwright.registry import load
from evalwright.reports.pieces import pieces_of

__all__ = ["ReportFile"]


class ReportFile:
    """A result file at `path`, in the format that `report` names, written whenever a session of the run ends."""

    def __init__(self, config: Mapping[str, Any]) -> None:
        self._path, self._report = Path(config["path"]), config["report"]

    @property
    def places(self) -> tuple[Path, ...]:
        return (self._path,)

    def check(self) -> None:
        """Raises InputError if the file cannot be written there."""
        must_be_writable(self._path)

    def write(self, run: RunReader, plan: Plan, summary: RunSummary, mask: Callable[[str], str]) -> None:
        """Raises StorageError."""
        pieces = pieces_of(load("reports", self._report)(), run, summary)
        make_folder(self._path.parent)
        write_output(self._path, (mask(piece).encode("utf-8", "backslashreplace") for piece in pieces))
