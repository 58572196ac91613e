"""What one cell did to the files of its workspace (produced), as stored in `artifact.json`."""

from __future__ import annotations

from pathlib import Path

import msgspec

from evalwright.model.cell import Attempt, OfCase
from evalwright.model.trace import SCHEMA_VERSION

__all__ = ["Artifact", "Changes", "FileEntry", "FileManifest", "FilesystemArtifact", "FilesystemDiff"]


class FileEntry(msgspec.Struct):
    """One regular file: size in bytes, permission bits, seconds since the epoch, hex SHA-256 of its content."""

    size: int
    mode: int
    mtime: float
    sha256: str


class FileManifest(msgspec.Struct):
    """The regular files of a folder by POSIX path relative to it."""

    files: dict[str, FileEntry] = {}


class FilesystemDiff(msgspec.Struct):
    """Sorted relative paths, and unified diffs of the modified and added text files."""

    added: list[str] = []
    removed: list[str] = []
    modified: list[str] = []
    text_diffs: dict[str, str] = {}


class Changes(msgspec.Struct, frozen=True):
    """What changed among the files of a workspace."""

    before_manifest: FileManifest
    after_manifest: FileManifest
    diff: FilesystemDiff
    left_out: dict[str, str] = {}


class FilesystemArtifact(OfCase, msgspec.Struct):
    """Files before and after one cell. `artifacts_path` is relative to the run folder."""

    case_id: str
    variant_name: str
    workspace_kind: str
    before_manifest: FileManifest
    after_manifest: FileManifest
    diff: FilesystemDiff
    artifacts_path: str
    left_out: dict[str, str] = {}
    """Files that could not be read or were too large, by path, with the reason; `.` stands for everything else."""
    trial: int = 0
    attempt: Attempt = 1
    schema_version: str = SCHEMA_VERSION


class Artifact(msgspec.Struct, frozen=True):
    """What evaluators get: the record, and the folder that contains `before/`, `after/` and `diff.txt`."""

    record: FilesystemArtifact
    folder: Path
