"""A fresh workspace for each attempt at a cell; the artifact of the last attempt is stored before its trace."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

from evalwright.errors import EvalwrightError
from evalwright.files.durable import PRIVATE_FOLDER, storage_error
from evalwright.files.temporary import remove_tree
from evalwright.model.artifact import Artifact, Changes, FilesystemArtifact
from evalwright.model.plan import Plan, Plugin
from evalwright.model.protocols import Prepared, RunWriter, Target, Workspace
from evalwright.model.trace import Answer, Trace, TraceError
from evalwright.registry import load
from evalwright.run.call import Call, out_of_files
from evalwright.run.cells import Cell
from evalwright.run.stored_artifacts import StoredArtifacts
from evalwright.session.workspace import beside_workspace, working_in
from evalwright.stores.artifacts import folder_of
from evalwright.targets.threads import Threads
from evalwright.workspaces.trees import copy_tree

__all__ = ["Workspaces", "artifact_of"]


def artifact_of(cell: Cell, kind: str, changes: Changes, path: str) -> FilesystemArtifact:
    """The record of what a cell did to its files, which are at `path` in the run."""
    return FilesystemArtifact(
        cell.case.id,
        cell.variant.name,
        kind,
        changes.before_manifest,
        changes.after_manifest,
        changes.diff,
        path,
        changes.left_out,
        cell.trial,
        cell.attempt,
        occurrence=cell.case.occurrence,
    )


class Workspaces:
    """The workspaces of one session of a run."""

    def __init__(self, plan: Plan, chosen: Plugin, writer: RunWriter) -> None:
        """The `chosen` kind of workspace. Raises InputError for a configuration that cannot be used."""
        self._writer, self._threads = writer, Threads()
        self._artifacts = StoredArtifacts(plan, writer)
        self.stored: Callable[[Trace], Artifact | None] = self._artifacts.of
        self._prepared: dict[int, Prepared] = {}
        self._workspace: Workspace = load("workspaces", chosen.type)(chosen.config, Path(plan.config_path).parent)

    async def open(self) -> None:
        """Raises InputError if no workspace can be made."""
        await self._threads.call(self._workspace.open)

    async def ask(self, call: Call, target: Target, cell: Cell) -> Answer | TraceError:
        """`call.ask` in a workspace of its own."""
        try:
            if (earlier := self._prepared.pop(cell.number, None)) is not None:
                await self._threads.call(earlier.remove)
                await self._threads.call(remove_tree, beside_workspace(earlier.path))
            prepared = await self._threads.call(self._workspace.prepare, cell.case, cell.trial)
        except (OSError, EvalwrightError) as error:
            call.started = time.monotonic()
            return out_of_files(error) or TraceError("workspace_error", f"no workspace could be made: {error}")
        self._prepared[cell.number] = prepared
        with working_in(prepared.path):
            return await call.ask(target, cell)

    async def collect(self, cell: Cell) -> Artifact | None:
        """Store what the last attempt at a cell did to its files, and remove its workspace. Raises StorageError."""
        prepared = self._prepared.pop(cell.number, None)
        path = self._artifacts.path(cell, self._writer.mask(cell.case.key))
        folder = folder_of(self._writer.artifacts, path)
        if prepared is None:  # what an earlier attempt left is not this one's doing
            await self._threads.call(remove_tree, folder)
            return None
        changes = await self._threads.call(self._collected_changes, prepared, folder)
        record = artifact_of(cell, self._workspace.kind, changes, path)
        self._writer.save_artifact(record)
        return Artifact(record, folder)

    def _collected_changes(self, prepared: Prepared, folder: Path) -> Changes:
        try:
            remove_tree(folder)
            self._writer.artifacts.mkdir(PRIVATE_FOLDER, parents=True, exist_ok=True)
            folder.mkdir(parents=True)
            changes = prepared.collect(folder, self._writer.mask)
            if (beside := beside_workspace(prepared.path)).is_dir():
                copy_tree(beside, folder / "beside", mask=self._writer.mask)
            return changes
        except OSError as error:
            raise storage_error("write", folder, error) from error
        finally:
            prepared.remove()
            remove_tree(beside_workspace(prepared.path))

    async def close(self) -> None:
        try:
            await self._threads.call(self._workspace.close)
        finally:
            self._threads.close()
