"""Where artifacts of cells lie: names that are safe, and no two cells in one folder."""

import os
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalwright.errors import InputError, StorageError
from evalwright.model.artifact import FileManifest, FilesystemArtifact, FilesystemDiff
from evalwright.stores.artifacts import artifact_path, read_artifact, safe_name, write_artifact
from evalwright.stores.local_files.lines import LineEncoder

HOSTILE = [
    *(
        "",
        ".",
        "..",
        "../up",
        "/etc/passwd",
        "a/b",
        "a\\b",
        "a\0b",
        "a\nb",
        "~",
        "-rf",
        "con",
        "NUL.txt",
        "a.",
        "trial-1",
    ),
    *("Caf\u00e9", "Cafe\u0301", "ABC", "Abc", "abc", "x" * 300, "x" * 299 + "y", "\ud800", ".git", "a b", "a*b"),
]


def record(case_id, variant="v", trial=0, attempt=1, trials=1):
    nothing = FileManifest()
    path = artifact_path(case_id, variant, trial, trials)
    return FilesystemArtifact(
        case_id, variant, "tempdir_snapshot", nothing, nothing, FilesystemDiff(), path, {}, trial, attempt
    )


def write(folder, artifact):
    write_artifact(folder, artifact.artifacts_path, LineEncoder(None).line(artifact))


def test_hostile_names_become_safe_ones_that_differ_whatever_the_case_of_letters():
    names = [safe_name(name) for name in HOSTILE]
    assert len({name.casefold() for name in names}) == len(HOSTILE)
    assert [name for name in names if not re.fullmatch(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,99}", name)] == []


def test_plain_names_stay_as_they_are():
    assert [safe_name(name) for name in ("c1", "refund-late", "a_b.c", "2024-01-01")] == [
        *("c1", "refund-late", "a_b.c", "2024-01-01")
    ]
    assert [len(safe_name("x" * length)) for length in (80, 81, 300)] == [80, 80 + 11, 80 + 11]


@given(st.lists(st.text(max_size=30), unique=True, max_size=20))
def test_no_two_names_share_a_folder(names):
    made = {safe_name(name).casefold() for name in [*names, *map(safe_name, names)]}
    assert len(made) >= len({*names})
    assert [name for name in made if "/" in name or name in ("", ".", "..")] == []


def test_a_name_that_another_one_would_become_is_not_taken():
    assert safe_name(safe_name("A")) != safe_name("A")


@pytest.mark.parametrize("case_id", ["c1", "../../up", "A/B"])
def test_what_is_written_is_read_back_for_its_attempt_only(tmp_path, case_id):
    artifacts = tmp_path / "run" / "artifacts"
    write(artifacts, record(case_id, attempt=2))
    artifact = read_artifact(artifacts, case_id, "v", 0, 2, 1)
    assert artifact is not None
    assert artifact.record.case_id == case_id
    assert artifact.folder.is_relative_to(artifacts)
    assert read_artifact(artifacts, case_id, "v", 0, 1, 1) is None
    assert [path.name for path in tmp_path.iterdir()] == ["run"]


def test_trials_are_kept_apart(tmp_path):
    for trial in range(3):
        write(tmp_path, record("c", trial=trial, trials=3))
    artifacts = [read_artifact(tmp_path, "c", "v", trial, 1, 3) for trial in range(3)]
    assert [artifact.record.trial for artifact in artifacts if artifact] == [0, 1, 2]


def test_artifacts_of_another_program_are_found_by_their_plain_names(tmp_path):
    folder = tmp_path / "Case 1" / "V"
    folder.mkdir(parents=True)
    (folder / "artifact.json").write_bytes(LineEncoder(None).line(record("Case 1", "V")))
    assert read_artifact(tmp_path, "Case 1", "V", 0, 1, 1) is not None


@pytest.mark.parametrize(("case_id", "variant"), [("..", "V"), ("Case", ".."), ("a/../Case", "V"), ("Case", ".")])
def test_plain_names_that_lead_elsewhere_are_not_looked_up(tmp_path, case_id, variant):
    for folder in (tmp_path, tmp_path / "artifacts", tmp_path / "artifacts" / "Case", tmp_path / "artifacts" / "V"):
        folder.mkdir(exist_ok=True)
        (folder / "artifact.json").write_bytes(LineEncoder(None).line(record(case_id, variant)))
    assert read_artifact(tmp_path / "artifacts", case_id, variant, 0, 1, 1) is None


def test_a_link_that_leads_out_of_a_run_is_not_followed(tmp_path):
    artifacts, elsewhere = tmp_path / "run" / "artifacts", tmp_path / "elsewhere"
    for folder in (artifacts, elsewhere):
        write(folder, record("c"))
    (artifacts / "c" / "v" / "artifact.json").unlink()
    (artifacts / "c" / "v" / "artifact.json").symlink_to(elsewhere / "c" / "v" / "artifact.json")
    assert read_artifact(artifacts, "c", "v", 0, 1, 1) is None


def test_a_pipe_in_the_place_of_a_record_keeps_nobody_waiting(tmp_path):
    write(tmp_path, record("c"))
    (tmp_path / "c" / "v" / "artifact.json").unlink()
    os.mkfifo(tmp_path / "c" / "v" / "artifact.json")
    assert read_artifact(tmp_path, "c", "v", 0, 1, 1) is None


def test_a_file_in_the_place_of_a_folder_of_artifacts_is_named(tmp_path):
    (tmp_path / "c").touch()
    with pytest.raises(InputError, match=r"cannot create .*/c is a file, not a folder"):
        write(tmp_path, record("c"))


@pytest.mark.parametrize("text", ["", "{", "[]", '{"case_id": 1}', "\0"])
def test_a_damaged_record_is_none(tmp_path, text):
    write(tmp_path, record("c"))
    (tmp_path / "c" / "v" / "artifact.json").write_text(text)
    assert read_artifact(tmp_path, "c", "v", 0, 1, 1) is None


@pytest.mark.parametrize("path", ["/etc", "artifacts", "artifacts/../x", "elsewhere/c/v", ""])
def test_a_record_that_names_a_folder_outside_is_not_written(tmp_path, path):
    with pytest.raises(StorageError):
        write_artifact(Path(tmp_path), path, b"{}")
    assert list(tmp_path.iterdir()) == []
