"""What changed between two copies of a folder, as lists and as text."""

import subprocess

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalwright.workspaces import diffs
from evalwright.workspaces.diffs import TOLD_IN_FULL, difference, removals, unified
from evalwright.workspaces.trees import copy_tree


def changes(tmp_path, before, after):
    copies = []
    for name, files in (("before", before), ("after", after)):
        (tmp_path / name).mkdir()
        for path, data in files.items():
            (tmp_path / name / path).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / name / path).write_bytes(data)
        copies.append(copy_tree(tmp_path / name, tmp_path / f"{name} copied"))
    change = difference(*copies, tmp_path / "before copied", tmp_path / "after copied")
    return change.diff, change.left_out


def test_files_are_added_removed_or_modified_and_lists_are_sorted(tmp_path):
    before = {"same": b"x", "z": b"1", "b/c": b"1", "gone": b"x", "b/gone": b"x"}
    after = {"same": b"x", "z": b"2", "b/c": b"2", "new": b"x", "a/new": b"x"}
    change, _ = changes(tmp_path, before, after)
    assert change.added == ["a/new", "new"]
    assert change.removed == ["b/gone", "gone"]
    assert change.modified == ["b/c", "z"]
    assert list(change.text_diffs) == ["a/new", "b/c", "new", "z"]


def test_a_diff_is_what_patch_tools_read(tmp_path):
    change, _ = changes(tmp_path, {"a.py": b"one\ntwo\n"}, {"a.py": b"one\nthree\n"})
    assert change.text_diffs == {"a.py": "--- a/a.py\n+++ b/a.py\n@@ -1,2 +1,2 @@\n one\n-two\n+three\n"}


@pytest.mark.parametrize(
    ("data", "shown"),
    [
        (b"x" * 256 * 1024, True),
        (b"x" * (256 * 1024 + 1), False),
        (b"x" * 4095 + b"\0", False),
        (b"x" * 4096 + b"\0", True),
        ("caf\u00e9\u2028".encode(), True),
        (b"caf\xe9", True),
    ],
    ids=["256 KiB", "larger", "NUL in the head", "NUL behind it", "UTF-8", "Latin-1"],
)
def test_which_files_have_a_text_diff(tmp_path, data, shown):
    change, _ = changes(tmp_path, {}, {"f": data})
    assert change.added == ["f"]
    assert ("f" in change.text_diffs) is shown


def test_lines_end_at_line_feeds_only():
    assert unified("f", "", "a\u2028b\x0cc\r\n").endswith("@@ -0,0 +1 @@\n+a\u2028b\x0cc\r\n")


TEXTS = st.lists(st.sampled_from(["a\n", "b\n", "c\n", "\n", "end"]), max_size=12).map("".join)


@given(TEXTS, TEXTS)
def test_patch_makes_the_new_text_of_the_old_one(tmp_path_factory, old, new):
    folder = tmp_path_factory.mktemp("patch")
    (folder / "f").write_text(old, newline="")
    if old != new:
        text = unified("f", old, new).encode()
        done = subprocess.run(
            ["git", "apply", "--unidiff-zero", "-"], cwd=folder, input=text, capture_output=True, check=False
        )
        assert done.returncode == 0, done.stderr
    assert ((folder / "f").read_text() if (folder / "f").exists() else "") == new


def test_texts_that_would_take_minutes_to_compare_are_shown_as_wholes():
    old, new = "x\ny\n" * 20_000, "y\nx\n" * 20_000
    lines = unified("f", old, new).splitlines()
    assert lines[2] == "@@ -1,40000 +1,40000 @@"
    assert len(lines) == 80_003


def test_diffs_beyond_the_limit_are_reported_as_left_out(tmp_path, monkeypatch):
    monkeypatch.setattr(diffs, "_MOST_SHOWN", 100)
    change, left_out = changes(tmp_path, {}, {"a": b"x\n" * 10, "b": b"x\n" * 100})
    assert change.added == ["a", "b"]
    assert list(change.text_diffs) == ["a"]
    assert TOLD_IN_FULL in left_out


def test_files_of_which_one_side_was_left_out_are_in_no_list(tmp_path):
    (tmp_path / "before").mkdir()
    before = copy_tree(tmp_path / "before", tmp_path / "old")
    (tmp_path / "before" / "new").write_text("x")
    after = copy_tree(tmp_path / "before", tmp_path / "new")
    incomplete = after._replace(left_out={".": "too many"})
    grown = difference(before, incomplete, tmp_path / "old", tmp_path / "new").diff
    assert (grown.added, grown.removed) == (["new"], [])
    for first, second in (
        (incomplete._replace(manifest=before.manifest), after),
        (after, incomplete._replace(manifest=before.manifest)),
    ):
        diff = difference(first, second, tmp_path / "old", tmp_path / "new").diff
        assert (diff.added, diff.removed) == ([], [])


def test_removed_texts_have_a_diff_of_their_own(tmp_path):
    (tmp_path / "gone.txt").write_text("bye\n")
    (tmp_path / "image").write_bytes(b"\0\1")
    assert removals(["gone.txt", "image", "stored elsewhere"], tmp_path) == {
        "gone.txt": "--- a/gone.txt\n+++ b/gone.txt\n@@ -1 +0,0 @@\n-bye\n"
    }
