"""Where what a cell did to its files lies: folders that the runner fills, and `artifact.json` in each."""

from __future__ import annotations

from pathlib import Path, PurePosixPath

from evalwright.errors import StorageError
from evalwright.files.durable import replace_file, storage_error

__all__ = ["write_artifact"]


def write_artifact(artifacts: Path, artifacts_path: str, line: bytes) -> None:
    """Put `artifact.json` into a cell's folder; `artifacts_path` is the folder as the record names it.

    Raises StorageError, also for a path that leads out of the run.
    """
    steps = PurePosixPath(artifacts_path).parts
    if len(steps) < 2 or steps[0] != "artifacts" or ".." in steps:
        raise StorageError(f"not a folder of artifacts: {artifacts_path!r}")
    folder = artifacts.joinpath(*steps[1:])
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise storage_error("create", folder, error) from error
    replace_file(folder / "artifact.json", line)
