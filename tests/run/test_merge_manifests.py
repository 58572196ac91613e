"""Manifests of shards that are merged: what they promise is checked, and nothing else is opened."""

import hashlib
import json
import os

import pytest

from evalwright.run.resumption import resume
from evalwright.run.shard_watch import finished_shards
from run.merging import TEXTS, refused, sharded
from run.suites import suite


def out_of_time() -> None:
    raise TimeoutError


@pytest.mark.parametrize("name", ["cases.jsonl", "traces.jsonl", "results.jsonl", "verdicts.jsonl", "plan.json"])
def test_a_changed_byte_is_refused_by_the_hash_of_its_manifest(tmp_path, name):
    parts = sharded(suite(tmp_path, TEXTS), 2, tmp_path)
    data = bytearray((parts[0] / name).read_bytes())
    data[-9] ^= 1 if name != "plan.json" else 0
    (parts[0] / name).write_bytes(bytes(data) if name != "plan.json" else bytes(data).replace(b'"test"', b'"test" '))
    message = refused(parts, tmp_path / "merged", partial=True)
    assert f"{parts[0] / name}  was changed or damaged" in message


def test_a_file_that_the_manifest_names_and_nobody_has_is_refused(tmp_path):
    parts = sharded(suite(tmp_path, TEXTS), 2, tmp_path)
    artifact = parts[0] / "artifacts" / "c0" / "main" / "artifact.json"
    artifact.parent.mkdir(parents=True)
    artifact.write_text("{}")
    (parts[0] / "manifest.json").unlink()
    resume(parts[0])
    artifact.unlink()
    text = f"{parts[0] / 'manifest.json'}  names 'artifacts/c0/main/artifact.json', which the run does not have"
    assert text in refused(parts, tmp_path / "merged")


@pytest.mark.parametrize("name", ["../{}", "{}", "artifacts/link/{}", "a\0b"])
def test_a_manifest_is_no_reason_to_open_what_is_not_the_runs(tmp_path, name):
    parts, outside = sharded(suite(tmp_path, TEXTS), 2, tmp_path), tmp_path / "1" / "outside.txt"
    outside.write_text("x")
    (parts[0] / "artifacts").mkdir()
    (parts[0] / "artifacts" / "link").symlink_to(outside.parent)
    name = name.format(outside if name == "{}" else outside.name)
    manifest = json.loads((parts[0] / "manifest.json").read_text())
    manifest["files"][name] = {"bytes": 1, "sha256": hashlib.sha256(b"x").hexdigest()}
    (parts[0] / "manifest.json").write_text(json.dumps(manifest))
    assert f"names {name!r}, which the run does not have" in refused(parts, tmp_path / "merged")
    with pytest.raises(TimeoutError):
        finished_shards([str(tmp_path / "1")], 1, pause=out_of_time)


def test_a_manifest_that_is_nested_too_deeply_is_refused(tmp_path):
    parts = sharded(suite(tmp_path, TEXTS), 2, tmp_path)
    (parts[0] / "manifest.json").write_text('{"x":' + "[" * 100_000 + "]" * 100_000 + "}")
    assert "manifest.json  is not a manifest" in refused(parts, tmp_path / "merged")


def test_shards_are_not_waited_for_in_a_pipe(tmp_path):
    parts = sharded(suite(tmp_path, TEXTS), 2, tmp_path)
    (parts[0] / "manifest.json").unlink()
    os.mkfifo(parts[0] / "manifest.json")
    with pytest.raises(TimeoutError):
        finished_shards([str(tmp_path)], pause=out_of_time)
