"""Folders that show what a cell did to its files: the runner fills them, and each contains an `artifact.json`."""

from __future__ import annotations

import hashlib
import re
from contextlib import suppress
from pathlib import Path, PurePosixPath
from typing import Any

import msgspec

from evalwright.errors import StorageError
from evalwright.files.durable import PRIVATE, PRIVATE_FOLDER, replace_file, storage_error
from evalwright.model.artifact import Artifact, FilesystemArtifact
from evalwright.model.trace import is_newer
from evalwright.stores.documents import newer_version

__all__ = ["artifact_path", "folder_of", "read_artifact", "safe_name", "write_artifact"]

_RECORD = "artifact.json"
_LONGEST = 80
# Digits of a hash: names that differ only in replaced or cut-off characters must stay distinct.
_DIGITS = 10
_SAFE = re.compile(rf"(?!.*-[0-9a-f]{{{_DIGITS}}}$)[a-z0-9_][a-z0-9_.-]{{0,{_LONGEST - 1}}}(?<!\.)")
"""Names that stay as they are. A name that ends like a hash is not one of them: it could be made from another name."""
_UNSAFE = re.compile(r"[^A-Za-z0-9_.-]+")
_RESERVED = re.compile(r"(con|prn|aux|nul|com\d|lpt\d|trial-\d+)(\..*)?", re.IGNORECASE)
"""Device names of Windows, which cannot be folders there, and our own names of trials."""


class _Version(msgspec.Struct):
    schema_version: Any = None


def artifact_path(case_id: str, variant_name: str, trial: int, trials: int) -> str:
    """The folder of a cell as its record names it: `artifacts/<case>/<variant>`, plus `/trial-N` if there are several
    trials."""
    path = f"artifacts/{safe_name(case_id)}/{safe_name(variant_name)}"
    return path if trials == 1 else f"{path}/trial-{trial}"


def safe_name(name: str) -> str:
    """A folder name that no other name maps to, on any file system, including those that ignore case.

    Lower-case names without special characters stay as they are; all others end with a part of their hash.
    """
    if _SAFE.fullmatch(name) and not _RESERVED.fullmatch(name):
        return name
    digest = hashlib.sha256(name.encode(errors="surrogatepass")).hexdigest()[:_DIGITS]
    return f"{_UNSAFE.sub('_', name)[:_LONGEST].strip('.')}-{digest}".lstrip("-")


def folder_of(artifacts: Path, artifacts_path: str) -> Path:
    """The folder that a record names. Raises StorageError for a path outside the run."""
    steps = PurePosixPath(artifacts_path).parts
    if len(steps) < 2 or steps[0] != "artifacts" or ".." in steps:
        raise StorageError(f"not an artifact folder: {artifacts_path!r}")
    return artifacts.joinpath(*steps[1:])


def write_artifact(artifacts: Path, artifacts_path: str, line: bytes) -> None:
    """Put `artifact.json` into a cell's folder; `artifacts_path` is the folder as the record names it.

    Raises StorageError, also for a path outside the run.
    """
    folder = folder_of(artifacts, artifacts_path)
    try:
        artifacts.mkdir(PRIVATE_FOLDER, parents=True, exist_ok=True)
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise storage_error("create", folder, error) from error
    replace_file(folder / _RECORD, line, PRIVATE)


def read_artifact(
    artifacts: Path, case_id: str, variant_name: str, trial: int, attempt: int, trials: int
) -> Artifact | None:
    """The stored artifact of one attempt at a cell; None if there is none, or it cannot be read.

    Raises InputError if a later major version wrote it. The original evalh names the folders after the case and the
    variant, without a hash.
    """
    if not artifacts.is_dir():  # as in most runs
        return None
    places = [artifact_path(case_id, variant_name, trial, trials)]
    # Only if such a name stays inside the run folder.
    if not {"/", "\\", "\0"}.intersection(case_id + variant_name) and {".", ".."}.isdisjoint({case_id, variant_name}):
        places.append(f"artifacts/{case_id}/{variant_name}")
    for place in places:
        folder = folder_of(artifacts, place)
        with suppress(OSError, ValueError, RecursionError):
            record_file = (folder / _RECORD).resolve()
            if not (record_file.is_relative_to(artifacts.resolve()) and record_file.is_file()):
                continue  # the run may come from anyone: a link that leads out of it, or a pipe without a writer
            data = record_file.read_bytes()
            if is_newer(version := msgspec.json.decode(data, type=_Version).schema_version):
                raise newer_version(str(folder / _RECORD), str(version))
            record = msgspec.json.decode(data, type=FilesystemArtifact)
            if (record.trial, record.attempt) == (trial, attempt):
                return Artifact(record, folder)
    return None
