"""The artifacts of a run as they are stored: what cells did to their files."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from evalwright.model.artifact import Artifact
from evalwright.model.cell import attempt_key
from evalwright.model.plan import Plan
from evalwright.model.protocols import RunReader
from evalwright.model.trace import Trace
from evalwright.stores.artifacts import artifact_path, read_artifact

if TYPE_CHECKING:
    from evalwright.run.cells import Cell

__all__ = ["StoredArtifacts"]


class StoredArtifacts:
    """The artifacts of a run as they are stored."""

    def __init__(self, plan: Plan, reader: RunReader, unpacked: Path | None = None) -> None:
        """They are in the run's folder of artifacts if not `unpacked` to another one."""
        self._reader, self._unpacked = reader, unpacked
        self._trials = plan.trials_by_variant

    def of(self, trace: Trace) -> Artifact | None:
        """What a cell did to its files; None if that is unknown."""
        trials = self._trials.get(trace.variant_name, 1)
        return read_artifact(self._unpacked or self._reader.artifacts, *attempt_key(trace), trials)

    def path(self, cell: Cell, case_key: str) -> str:
        name = cell.variant.name
        return artifact_path(case_key, name, cell.trial, self._trials[name])
