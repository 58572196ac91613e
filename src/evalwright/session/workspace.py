"""The folder of the cell being run, for code called on its behalf."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path

__all__ = ["beside_workspace", "working_in", "workspace_path"]

_path: ContextVar[Path | None] = ContextVar("evalwright_workspace", default=None)

workspace_path: Callable[[], Path | None] = _path.get
"""The workspace of the cell that this task or thread works for, None in a run without workspaces."""


def beside_workspace(workspace: Path) -> Path:
    """The folder, which need not exist, of files kept with the changes in a workspace: streams, logs."""
    return workspace.with_name(f"{workspace.name}.beside")


@contextmanager
def working_in(path: Path | None) -> Iterator[None]:
    """Let everything called inside see `path` as its workspace."""
    token = _path.set(path)
    try:
        yield
    finally:
        _path.reset(token)
