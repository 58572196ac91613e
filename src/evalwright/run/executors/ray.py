"""The executor `ray`: systems are called by workers on the machines of a cluster, and judges' models that are Python
functions if the suite says so; everything else happens here.

Only this process writes, judges, counts money and enforces limits. A lost worker only loses its calls, which are then
made again.
"""

from __future__ import annotations

import asyncio
import math
import tempfile
import time
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import IO, Any

import msgspec

from evalwright.errors import TargetError
from evalwright.files.archives import unpack
from evalwright.files.durable import PRIVATE_FOLDER, storage_error
from evalwright.files.temporary import remove_tree
from evalwright.model.artifact import Artifact, Changes
from evalwright.model.plan import Executor, Placement, Plan, Plugin, Variant
from evalwright.model.protocols import RunWriter, Target
from evalwright.model.trace import Answer, Trace, TraceError
from evalwright.registry import load
from evalwright.run.call import MOST_LOST, NO_WORKER, WORKER_LOST, Call
from evalwright.run.cells import Cell, RunState, groups_of
from evalwright.run.executors import folder_sent
from evalwright.run.executors.cluster import RayCluster, secret_variables
from evalwright.run.executors.crew import Crew
from evalwright.run.executors.frames import HERE, CollectedFiles, Hello, encode, installed_version
from evalwright.run.executors.member import Errand
from evalwright.run.executors.models import PlacedModels
from evalwright.run.steps.workspace import artifact_of
from evalwright.run.stored_artifacts import StoredArtifacts
from evalwright.session import environment, hidden, is_offline, process_environment
from evalwright.stores.artifacts import folder_of
from evalwright.targets.failures import target_failure
from evalwright.targets.portable import CALL_NOTHING, cluster_address, relative_to
from evalwright.targets.threads import Threads

__all__ = ["RaySites"]


class RaySites:
    """The workers of one session on a run, and what their calls did to their workspaces."""

    def __init__(
        self,
        plan: Plan,
        executor: Executor,
        writer: RunWriter,
        targets: Mapping[str, Target],
        state: RunState,
    ) -> None:
        """Raises InputError for what cannot be sent to other machines."""
        self._plan, self._executor, self._writer, self._threads, self._state = plan, executor, writer, Threads(), state
        self._cluster, self._folder = RayCluster(executor), folder_sent(plan, executor)
        self._is_elsewhere = self._folder is None and cluster_address(executor) is not None
        self._suite_folder = Path(plan.config_path).parent
        self._kind = "" if plan.workspace is None else _kind_of(plan.workspace, self._suite_folder)
        self._stored = StoredArtifacts(plan, writer)
        self._changes: dict[int, Changes] = {}
        self._calls_at_once = {variant.name: width for variants, width in groups_of(plan) for variant in variants}
        """By system, the maximum number of concurrent calls."""
        self._watching: asyncio.Task[None] | None = None
        self._crews = {
            variant.name: self._crew(variant, targets[variant.name])
            for variant in plan.variants
            if variant.adapter not in CALL_NOTHING
        }
        self._models: PlacedModels | None = None
        if isinstance(executor.judges, Placement):
            self._models = PlacedModels(partial(self._crew_of_model, executor.judges), self._number, self._stops)
            state.models_placed = self._models.client
        self.targets: dict[str, Target] = {**targets, **self._crews}
        self.stored: Callable[[Trace], Artifact | None] = self._stored.of

    async def open(self) -> None:
        """Join the cluster, and wait until each system has a worker. Raises InputError."""
        await self._cluster.open(self._folder, _left_out(Path(self._writer.location).absolute(), self._folder))
        self._watching = asyncio.create_task(self._watch())
        await asyncio.gather(*(crew.begin(self._number(crew)) for crew in self._crews.values()))

    async def _watch(self) -> None:
        why = await self._cluster.lost_head()
        for crew in self._crews.values():
            crew.give_up(why)
        if self._models is not None:
            self._models.give_up(why)

    async def ask(self, call: Call, target: Target, cell: Cell) -> Answer | TraceError:
        """`call.ask` at a worker; its time starts when there is one."""
        crew = self._crews.get(cell.variant.name)
        if crew is None:
            return await call.ask(target, cell)
        lost = sum(failure.type == WORKER_LOST for failure in call.retried)
        errand = await crew.errand(call, self._stops, alone=lost == MOST_LOST - 1)
        if errand is None:
            return TraceError(NO_WORKER, crew.gone())
        try:
            outcome = await call.ask(errand, cell)
            if errand.latency is not None:
                # The system's own time, without the transport.
                call.started = max(call.started, time.monotonic() - errand.latency)
            return outcome if self._plan.workspace is None else await self._with_files(errand, cell, outcome)
        finally:
            errand.over()

    async def collect(self, cell: Cell) -> Artifact | None:
        """Store what the last attempt at a cell did to its files. Raises StorageError."""
        if self._plan.workspace is None:
            return None
        path = self._stored.path(cell, self._writer.mask(cell.case.key))
        folder = folder_of(self._writer.artifacts, path)
        changes = self._changes.pop(cell.number, None)
        if changes is None:
            await self._threads.call(remove_tree, folder)
            return None
        record = artifact_of(cell, self._kind, changes, path)
        self._writer.save_artifact(record)
        return Artifact(record, folder)

    async def close(self) -> None:
        """Leave the cluster, once the systems are closed."""
        if self._watching is not None:
            self._watching.cancel()
        if self._models is not None:
            self._models.give_up("the run is over")
        await self._cluster.close()
        self._threads.close()

    def _stops(self) -> bool:
        return self._state.stopping

    async def _with_files(self, errand: Errand, cell: Cell, outcome: Answer | TraceError) -> Answer | TraceError:
        """Fetch the files of a call into the cell's folder of artifacts, before its worker may be lost."""
        folder = folder_of(self._writer.artifacts, self._stored.path(cell, self._writer.mask(cell.case.key)))
        try:
            with tempfile.TemporaryFile() as archive:
                files = await errand.files(archive)
                if files.changes is not None:
                    await self._threads.call(self._unpack, archive, folder)
        except TargetError as error:
            # The worker of a late call was ended, and its files with it: the recorded outcome stays.
            return outcome if isinstance(outcome, TraceError) else target_failure(error)
        return self._with_artifacts_kept(cell, files, outcome)

    def _with_artifacts_kept(
        self, cell: Cell, collected: CollectedFiles, outcome: Answer | TraceError
    ) -> Answer | TraceError:
        if collected.error is not None:
            return collected.error
        if collected.changes is not None:
            self._changes[cell.number] = collected.changes
        return outcome

    def _unpack(self, archive: IO[bytes], folder: Path) -> None:
        try:
            remove_tree(folder)
            self._writer.artifacts.mkdir(PRIVATE_FOLDER, parents=True, exist_ok=True)
            folder.mkdir(parents=True)
            archive.seek(0)
            unpack(archive, folder)
        except OSError as error:
            raise storage_error("write", folder, error) from error

    def _crew(self, variant: Variant, target: Target) -> Crew:
        placement = variant.ray if isinstance(variant.ray, Placement) else Placement()
        hello = self._hello(variant, self._plan.workspace)
        return Crew(variant.name, target, self._cluster, placement, hello, self._executor.wait_seconds)

    def _crew_of_model(self, placement: Placement, model: str, place: str) -> Crew:
        hello = self._hello(Variant(model, "python_function"), None, place)
        return Crew(model, None, self._cluster, placement, hello, self._executor.wait_seconds)

    def _number(self, crew: Crew) -> int:
        """The number of a system's workers: as the suite says, else one for each machine, and enough for its calls."""
        wanted = self._calls_at_once.get(crew.name, self._plan.run.max_concurrency)
        return (
            crew.placement.actors
            or self._executor.actors
            or max(math.ceil(wanted / self._executor.per_actor), min(wanted, self._cluster.machines))
        )

    def _hello(self, variant: Variant, workspace: Plugin | None, model: str = "") -> bytes:
        plan, folder = self._plan, self._folder

        def sent(value: Any) -> Any:
            plain = msgspec.to_builtins(value)
            return plain if folder is None else relative_to(folder, HERE, plain)

        paths = [path for path in plan.import_paths if folder is None or Path(path).is_relative_to(folder)]
        here = Path.cwd()
        stays = folder is not None and not here.is_relative_to(folder)
        of_process = process_environment()
        return encode(
            Hello(
                version=installed_version(),
                variant=msgspec.convert(sent(variant), Variant),
                import_paths=sent(paths),
                suite_folder=sent(str(self._suite_folder)),
                folder=None if stays or self._is_elsewhere else sent(str(here)),
                offline=is_offline(),
                variables={key: value for key, value in environment().items() if of_process.get(key) != value},
                environment=secret_variables(self._executor),
                secrets=dict(hidden()),
                workspace=msgspec.convert(sent(workspace), Plugin | None),
                places=self._executor.per_actor,
                model=model,
            )
        )


def _left_out(location: Path, folder: Path | None) -> list[str]:
    """Parts of the folder that are not sent: the runs that are kept there."""
    if folder is None or not location.is_relative_to(folder):
        return []
    runs = location if location.parent == folder else location.parent
    return [f"/{runs.relative_to(folder)}*"]


def _kind_of(workspace: Plugin, suite_folder: Path) -> str:
    kind: str = load("workspaces", workspace.type)(workspace.config, suite_folder).kind
    return kind
