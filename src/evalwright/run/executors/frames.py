"""What a run and the workers of its systems send each other: lists of small records, as JSON.

Many records go into one frame: for a cluster, a message costs about as much as all the work for a cell.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import msgspec

from evalwright.model.artifact import Changes
from evalwright.model.chat import ChatReply, ChatRequest, Purpose
from evalwright.model.plan import Plugin, Variant
from evalwright.model.snapshot import Case
from evalwright.model.trace import Answer, TraceError

__all__ = [
    "HERE",
    "LARGEST_FRAME",
    "CollectedFiles",
    "Down",
    "DropCall",
    "DroppedCall",
    "FailedCall",
    "Hello",
    "ModelCall",
    "ModelReply",
    "PrintedLines",
    "StalledCall",
    "SystemCall",
    "SystemClosed",
    "SystemReply",
    "Up",
    "WorkerReady",
    "encode",
    "framed",
    "installed_version",
    "replaced",
]

LARGEST_FRAME = 8 * 2**20
"""Bytes of a frame, unless a single record is larger."""
HERE = "evalwright-working-dir:"
"""Stands in texts for the folder that was sent, which is at a different place on each machine."""


def installed_version() -> str:
    """evalwright's version on this machine; empty if it was not installed but sent along."""
    try:
        return version("evalwright")
    except PackageNotFoundError:
        return ""


encode: Callable[[object], bytes] = msgspec.json.Encoder().encode


class Hello(msgspec.Struct):
    """What a worker needs to know before its first call. It is never part of a worker's name, environment or log."""

    version: str
    variant: Variant
    import_paths: list[str]
    suite_folder: str
    folder: str | None
    """The working directory; None: where the worker was started."""
    offline: bool
    variables: dict[str, str]
    environment: dict[str, str]
    """Variables for the process that Ray must not see, because they contain secrets."""
    secrets: dict[str, str]
    workspace: Plugin | None
    places: int
    model: str = ""
    """`module:attribute` of a function that is called as a model, in place of the variant's system."""


class WorkerReady(msgspec.Struct):
    """A worker is ready, with room for this many concurrent calls; or it is not, and why."""

    places: int = 0
    refused: str | None = None


class SystemCall(msgspec.Struct, tag="ask"):
    """Call the system."""

    id: int
    case: Case
    trial: int


class DropCall(msgspec.Struct, tag="drop"):
    """Cancel a call: its answer is no longer awaited."""

    id: int


class ModelReply(msgspec.Struct, tag="model_said"):
    """A model's reply, or why there is none."""

    id: int
    reply: ChatReply | None = None
    error: TraceError | None = None


Down = SystemCall | DropCall | ModelReply


class SystemReply(msgspec.Struct, tag="answer"):
    """A call and the milliseconds that it took."""

    id: int
    answer: Answer
    latency_ms: float


class FailedCall(msgspec.Struct, tag="failed"):
    """A call without an answer."""

    id: int
    error: TraceError
    latency_ms: float


class DroppedCall(msgspec.Struct, tag="dropped"):
    """A cancelled call has ended."""

    id: int


class StalledCall(msgspec.Struct, tag="stalled"):
    """A call blocks all others of its worker; None: no longer."""

    id: int | None


class PrintedLines(msgspec.Struct, tag="printed"):
    """What the user's code printed, in whole lines."""

    text: str


class ModelCall(msgspec.Struct, tag="model_asked"):
    """A call of a model, which the run makes, because it has the keys, the budget and the limits."""

    id: int
    request: ChatRequest
    purpose: Purpose
    by: int = 0
    """The call of the system that needs the model."""


Up = SystemReply | FailedCall | DroppedCall | StalledCall | PrintedLines | ModelCall


class SystemClosed(msgspec.Struct):
    """A system is closed, and what that raised."""

    raised: TraceError | None = None


class CollectedFiles(msgspec.Struct):
    """What a call did to the files of its workspace, and the size of their archive; or why that is unknown."""

    changes: Changes | None = None
    bytes: int = 0
    error: TraceError | None = None


def framed(waiting: deque[bytes]) -> bytes:
    """The next frame of the records that wait."""
    frames: list[bytes] = []
    size = 0
    while waiting and (not frames or size + len(waiting[0]) <= LARGEST_FRAME):
        record = waiting.popleft()
        frames.append(record)
        size += len(record)
    return b"[" + b",".join(frames) + b"]"


def replaced(value: Any, old: str, new: str) -> Any:
    """Plain data in which `old` is replaced in all strings."""
    if isinstance(value, str):
        return value.replace(old, new)
    if isinstance(value, dict):
        return {key: replaced(item, old, new) for key, item in value.items()}
    return [replaced(item, old, new) for item in value] if isinstance(value, list) else value
