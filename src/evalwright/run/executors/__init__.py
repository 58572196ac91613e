"""Where systems are called, if not in this process: by the workers of a cluster."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from evalwright.errors import InputError, Problem
from evalwright.model.plan import Executor, Plan
from evalwright.session.named_objects import is_unnamed
from evalwright.targets.portable import CALL_NOTHING, folder_to_send, named_outside

if TYPE_CHECKING:
    from evalwright.model.artifact import Artifact
    from evalwright.model.protocols import Target
    from evalwright.model.trace import Answer, Trace, TraceError
    from evalwright.run.call import Call
    from evalwright.run.cells import Cell

__all__ = ["Sites", "folder_sent", "is_elsewhere", "must_be_possible"]


class Sites(Protocol):
    """Where the calls of a run take place, if not simply in this process: in a workspace, at a worker, or both."""

    async def open(self) -> None:
        """Prepare what cells need. Raises InputError."""

    async def ask(self, call: Call, target: Target, cell: Cell) -> Answer | TraceError:
        """`call.ask`, at its place."""

    async def collect(self, cell: Cell) -> Artifact | None:
        """What the last attempt at a cell did to its files, stored. Raises StorageError."""

    def stored(self, trace: Trace) -> Artifact | None:
        """What an earlier session stored of a cell's files."""

    async def close(self) -> None: ...


def is_elsewhere(plan: Plan) -> bool:
    """Whether a plan names an executor and has something for it to call."""
    return plan.run.places_judges or any(variant.adapter not in CALL_NOTHING for variant in plan.variants)


def must_be_possible(plan: Plan, executor: Executor) -> None:
    """Raise InputError if a plan's executor cannot be used, before there is a run."""
    if is_elsewhere(plan):
        if find_spec("ray") is None:
            raise InputError("the executor ray needs Ray: pip install 'evalwright[ray]'")
        if unnamed := [
            Problem("", f"the workers cannot import {target}: move the function into a module", key=variant.name)
            for variant in plan.variants
            if is_unnamed(target := variant.config.get("target"))
        ]:
            raise InputError(unnamed)
        folder_sent(plan, executor)


def folder_sent(plan: Plan, executor: Executor) -> Path | None:
    """The folder that is sent to the workers; None if none is. Raises InputError for what names files outside it."""
    suite = Path(plan.config_path)
    folder = folder_to_send(suite, executor, plan.variants)
    if folder is None:
        return None
    if not folder.is_dir():
        raise InputError(Problem(str(suite), f"there is no folder {str(folder)!r}", key="run.executor.working_dir"))
    configs = [*((variant.name, variant.config) for variant in plan.variants if variant.adapter not in CALL_NOTHING)]
    if plan.workspace is not None:
        configs.append(("workspace", plan.workspace.config))
    problems = [
        Problem(str(suite), message, key=f"{name}.{key}")
        for name, config in configs
        for key, message in named_outside(config, folder)
    ]
    if problems:
        raise InputError(problems)
    return folder
