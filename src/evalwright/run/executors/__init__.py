"""Where systems are called, if not in this process: by the workers of a cluster."""

from __future__ import annotations

from importlib.util import find_spec
from typing import TYPE_CHECKING, Protocol

from evalwright.errors import InputError
from evalwright.model.plan import Plan
from evalwright.targets.portable import CALL_NOTHING

if TYPE_CHECKING:
    from evalwright.model.artifact import Artifact
    from evalwright.model.protocols import Target
    from evalwright.model.trace import Answer, Trace, TraceError
    from evalwright.run.call import Call
    from evalwright.run.cells import Cell

__all__ = ["Sites", "is_elsewhere", "must_be_possible"]


class Sites(Protocol):
    """Where the calls of a run take place, if that is not simply this process: a workspace, a worker, or both."""

    async def open(self) -> None:
        """Make ready what cells need. Raises InputError."""

    async def ask(self, call: Call, target: Target, cell: Cell) -> Answer | TraceError:
        """`call.ask` in a place of its own."""

    async def collect(self, cell: Cell) -> Artifact | None:
        """What the last try at a cell did to its files, stored. Raises StorageError."""

    def stored(self, trace: Trace) -> Artifact | None:
        """What an earlier session has stored of a cell's files."""

    async def close(self) -> None: ...


def is_elsewhere(plan: Plan) -> bool:
    """Whether a plan that names an executor has a system for it to call."""
    return any(variant.adapter not in CALL_NOTHING for variant in plan.variants)


def must_be_possible(plan: Plan) -> None:
    """Raise InputError if the executor that a plan names cannot be used, before there is a run."""
    if is_elsewhere(plan) and find_spec("ray") is None:
        raise InputError("the executor ray needs Ray: pip install 'evalwright[ray]'")
