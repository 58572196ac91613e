"""`manifest.json`: the content of the files of a finished shard or a merged run, so that copies can be checked.

It is written last, when no cell is left, and removed before anything is appended again: a folder that has it is
complete, unless a file was changed or damaged since, which its hash shows.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from pathlib import Path

import msgspec

from evalwright.errors import InputError, Problem
from evalwright.files.durable import PRIVATE, replace_file, storage_error, sync_folder
from evalwright.model.trace import is_newer
from evalwright.stores.documents import newer_version
from evalwright.stores.local_files.reader import ARTIFACTS, CASES, PLAN, RESULTS, TRACES, VERDICTS

__all__ = [
    "MANIFEST",
    "SHARD",
    "FileMark",
    "Manifest",
    "check_files",
    "drop_manifest",
    "manifest_of",
    "marked_files",
    "write_manifest",
]

MANIFEST = "manifest.json"
SHARD = "shard.json"
_RECORDS = (CASES, TRACES, RESULTS, VERDICTS)
_DOCUMENTS = (PLAN, SHARD)
_BLOCK = 1 << 20


class FileMark(msgspec.Struct, omit_defaults=True):
    """The content of a file: its bytes, their SHA-256 (hex), and the number of its records, if it has any."""

    bytes: int
    sha256: str
    records: int | None = None


class Manifest(msgspec.Struct, omit_defaults=True):
    """The files of a run without unfinished cells, by their paths in its folder."""

    files: dict[str, FileMark]
    cells: dict[str, int]
    """Number of cells by verdict: pass, borderline, fail, skip, error."""
    shards: dict[str, str] = {}
    """For a merged run: what identifies the content of each shard, SHA-256 (hex), by its number."""
    schema_version: str = "1.0"

    @property
    def digest(self) -> str:
        """SHA-256 (hex) over records and artifacts: equal only if they are."""
        marks = {name: mark.sha256 for name, mark in self.files.items() if name not in _DOCUMENTS}
        return hashlib.sha256(msgspec.json.encode(marks, order="sorted")).hexdigest()


def write_manifest(folder: Path, cells: Mapping[str, int], shards: Mapping[str, str] = {}) -> None:
    """Note what the files of a run folder now contain. Raises StorageError."""
    try:
        files = {name: _mark(folder / name, name in _RECORDS) for name in marked_files(folder)}
    except OSError as error:
        raise storage_error("read", folder, error) from error
    manifest = Manifest(files, dict(cells), dict(shards))
    plain = {**msgspec.to_builtins(manifest), "schema_version": manifest.schema_version}
    replace_file(folder / MANIFEST, msgspec.json.format(msgspec.json.encode(plain), indent=2) + b"\n", PRIVATE)


def drop_manifest(folder: Path) -> None:
    """Remove the manifest, durably: an append follows, and a shard with a stale manifest would be rejected."""
    try:
        (folder / MANIFEST).unlink()
        sync_folder(folder)
    except (FileNotFoundError, NotADirectoryError):  # a run in a database has no manifest either
        return
    except OSError as error:
        raise storage_error("remove", folder / MANIFEST, error) from error


def manifest_of(folder: Path) -> Manifest | None:
    """The manifest of a run folder; None if it has none. Raises InputError if it cannot be read."""
    path = folder / MANIFEST
    try:
        manifest = msgspec.json.decode(path.read_bytes(), type=Manifest)
    except FileNotFoundError:
        return None
    except (OSError, ValueError, RecursionError) as error:
        raise InputError(Problem(str(path), f"is not a manifest: {error}")) from error
    if is_newer(manifest.schema_version):
        raise newer_version(str(path), manifest.schema_version)
    return manifest


def check_files(folder: Path, manifest: Manifest) -> list[Problem]:
    """Files that differ from the manifest or are missing, and artifacts that it does not name."""
    there = set(marked_files(folder))
    # Nothing else is opened: a manifest may come from anyone, and name any file of this machine, or a pipe.
    problems = [
        Problem(str(folder / MANIFEST), f"names {name!r}, which the run does not have")
        for name in sorted(manifest.files.keys() - there)
    ]
    for name in sorted(manifest.files.keys() & there):
        mark = manifest.files[name]
        try:
            found = _mark(folder / name, count=False)
        except OSError as error:
            problems.append(Problem(str(folder / name), f"cannot be read: {error.strerror}"))
            continue
        if (found.bytes, found.sha256) != (mark.bytes, mark.sha256):
            message = f"was changed or damaged since {MANIFEST} was written: its SHA-256 is another one"
            problems.append(Problem(str(folder / name), message))
    extra = sorted(there - manifest.files.keys())
    return problems + [Problem(str(folder / name), f"is not in {MANIFEST}") for name in extra]


def marked_files(folder: Path) -> Iterator[str]:
    """The files of a run folder that its manifest names: records, documents and artifacts; links are not followed."""
    yield from (name for name in (*_DOCUMENTS, *_RECORDS) if (folder / name).is_file())
    artifacts = (path for path in sorted((folder / ARTIFACTS).rglob("*")) if path.is_file() and not path.is_symlink())
    yield from (path.relative_to(folder).as_posix() for path in artifacts)


def _mark(path: Path, count: bool) -> FileMark:
    digest, size, lines = hashlib.sha256(), 0, 0
    with path.open("rb") as file:
        while block := file.read(_BLOCK):
            digest.update(block)
            size += len(block)
            if count:
                lines += block.count(b"\n")
    return FileMark(size, digest.hexdigest(), lines if count else None)
