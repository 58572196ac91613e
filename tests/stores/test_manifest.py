"""Manifests: what they say of the files of a finished run, and what shows when those are others."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from evalwright.errors import InputError, StorageError
from evalwright.stores.manifest import MANIFEST, Manifest, check_files, drop_manifest, manifest_of, write_manifest
from stores.local_runs import closed


@pytest.fixture
def run(tmp_path: Path) -> Path:
    folder = closed(tmp_path)
    (folder / "artifacts" / "c1" / "v1").mkdir(parents=True)
    (folder / "artifacts" / "c1" / "v1" / "artifact.json").write_text("{}\n{}\n")
    (folder / "artifacts" / "link").symlink_to(folder / "plan.json")
    return folder


def written(run: Path, **shards: str) -> Manifest:
    write_manifest(run, {"pass": 1}, shards)
    manifest = manifest_of(run)
    assert manifest is not None
    return manifest


def test_a_manifest_names_each_file_and_counts_its_records(run: Path) -> None:
    manifest = written(run)
    assert {name: mark.records for name, mark in manifest.files.items()} == {
        "plan.json": None,
        "cases.jsonl": 1,
        "traces.jsonl": 0,
        "results.jsonl": 0,
        "verdicts.jsonl": 0,
        "artifacts/c1/v1/artifact.json": None,
    }
    assert manifest.files["artifacts/c1/v1/artifact.json"].bytes == 6
    assert (manifest.cells, manifest.shards, check_files(run, manifest)) == ({"pass": 1}, {}, [])
    assert json.loads((run / MANIFEST).read_text())["schema_version"] == "1.0"


def test_what_tells_runs_apart_is_their_records_and_not_their_plan(run: Path) -> None:
    before = written(run).digest
    (run / "plan.json").write_text("{}")
    assert written(run, one="x").digest == before
    (run / "artifacts" / "c1" / "v1" / "artifact.json").write_text("{}\n[]\n")
    assert written(run).digest != before


def test_each_file_that_is_another_is_named(run: Path) -> None:
    manifest = written(run)
    (run / "cases.jsonl").write_bytes((run / "cases.jsonl").read_bytes().swapcase())
    (run / "verdicts.jsonl").unlink()
    (run / "artifacts" / "more").write_text("more")
    assert [(str(p.file).removeprefix(f"{run}/"), p.message[:14]) for p in check_files(run, manifest)] == [
        ("manifest.json", "names 'verdict"),
        ("cases.jsonl", "was changed or"),
        ("artifacts/more", "is not in mani"),
    ]


def test_a_file_that_cannot_be_read_is_an_error_and_leaves_no_manifest(run: Path) -> None:
    (run / "artifacts" / "self").unlink(missing_ok=True)
    (run / "traces.jsonl").unlink()
    (run / "traces.jsonl").symlink_to("/proc/self/mem")  # a file, of which nothing can be read
    with pytest.raises(StorageError, match=r"cannot read .*: Input/output error"):
        write_manifest(run, {})
    assert manifest_of(run) is None


def test_a_run_without_a_manifest_has_none_to_remove(run: Path) -> None:
    assert manifest_of(run) is None
    drop_manifest(run)
    drop_manifest(run / "plan.json")  # as of a run in a database
    written(run)
    drop_manifest(run)
    assert manifest_of(run) is None
    (run / MANIFEST).mkdir()
    with pytest.raises(StorageError, match="cannot remove"):
        drop_manifest(run)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{", "is not a manifest"),
        ('{"files": {}}', "is not a manifest"),
        ('{"files": {}, "cells": {}, "schema_version": "2.0"}', "has version 2.0"),
    ],
)
def test_a_manifest_that_cannot_be_read_is_refused_by_name(run: Path, text: str, said: str) -> None:
    (run / MANIFEST).write_text(text)
    with pytest.raises(InputError, match=rf"{MANIFEST}.* {said}"):
        manifest_of(run)
