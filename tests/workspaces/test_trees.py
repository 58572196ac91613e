"""Copies of folders that nobody vouches for: what counts, what is left out, and that nothing outside is touched."""

import hashlib
import os
import socket
import stat
import threading
from contextlib import contextmanager
from itertools import cycle

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalwright.workspaces import trees
from evalwright.workspaces.trees import Twin, copy_tree


def files_in(folder):
    return {str(p.relative_to(folder)): p.read_bytes() for p in folder.rglob("*") if p.is_file()}


@pytest.fixture
def source(tmp_path):
    folder = tmp_path / "source"
    folder.mkdir()
    return folder


def test_each_regular_file_is_listed_as_it_was_copied(source, tmp_path):
    (source / "sub" / "deep").mkdir(parents=True)
    (source / "sub" / "deep" / "a.txt").write_bytes(b"one\n")
    (source / "run.sh").write_bytes(b"")
    (source / "run.sh").chmod(0o750)
    os.utime(source / "run.sh", (1000, 1000))
    tree = copy_tree(source, tmp_path / "copy")
    assert list(tree.manifest.files) == ["run.sh", "sub/deep/a.txt"]
    script = tree.manifest.files["run.sh"]
    assert (script.size, script.mode, script.mtime) == (0, 0o750, 1000.0)
    assert tree.manifest.files["sub/deep/a.txt"].sha256 == hashlib.sha256(b"one\n").hexdigest()
    assert files_in(tmp_path / "copy") == {"run.sh": b"", "sub/deep/a.txt": b"one\n"}
    assert (tmp_path / "copy" / "run.sh").stat().st_mode & stat.S_IXUSR
    assert tree.left_out == {}


def test_links_pipes_and_sockets_are_passed_over(source, tmp_path, monkeypatch):
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "secret").write_text("not yours")
    (source / "file").symlink_to(outside / "secret")
    (source / "folder").symlink_to(outside)
    (source / "root").symlink_to("/")
    (source / "loop").symlink_to(source)
    os.mkfifo(source / "pipe")
    with socket.socket(socket.AF_UNIX) as listening:
        monkeypatch.chdir(source)  # the path of a socket must be short
        listening.bind("sock")
    tree = copy_tree(source, tmp_path / "copy")
    assert (tree.manifest.files, tree.left_out) == ({}, {})
    assert list((tmp_path / "copy").iterdir()) == []


def test_what_is_hidden_at_the_top_is_left_alone_and_below_it_is_not(source, tmp_path):
    for folder in (source / ".git", source / "sub" / ".git"):
        folder.mkdir(parents=True)
        (folder / "HEAD").write_text("x")
    assert list(copy_tree(source, tmp_path / "copy", without={".git"}).manifest.files) == ["sub/.git/HEAD"]


def test_folders_too_deep_are_named_and_the_rest_is_copied(source, tmp_path):
    deepest = source
    for _ in range(trees.DEEPEST + 200):
        deepest = deepest / "d"
        deepest.mkdir()
    (source / "beside.txt").write_text("x")
    tree = copy_tree(source, tmp_path / "copy")
    assert list(tree.manifest.files) == ["beside.txt"]
    [(path, why)] = tree.left_out.items()
    assert path.count("/") == trees.DEEPEST
    assert "deep" in why


def test_files_beyond_the_limit_are_reported_as_left_out(source, tmp_path, monkeypatch):
    monkeypatch.setattr(trees, "MOST_ENTRIES", 5)
    for number in range(9):
        (source / f"f{number}").write_text("x")
    tree = copy_tree(source, tmp_path / "copy")
    assert len(tree.manifest.files) == 5
    assert "more than 5" in tree.left_out["."]


def test_a_sparse_terabyte_is_named_and_not_read(source, tmp_path):
    with (source / "huge").open("wb") as file:
        file.truncate(2**40)
    (source / "small").write_text("x")
    tree = copy_tree(source, tmp_path / "copy")
    assert list(tree.manifest.files) == ["small"]
    assert "1,099,511,627,776 bytes" in tree.left_out["huge"]
    assert not (tmp_path / "copy" / "huge").exists()


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_file_that_may_not_be_read_is_named(source, tmp_path):
    (source / "closed").write_text("x")
    (source / "closed").chmod(0)
    assert copy_tree(source, tmp_path / "copy").left_out == {"closed": "Permission denied"}


def test_names_that_are_not_utf8_are_shown_with_escapes_and_of_two_that_look_alike_one_is_kept(source, tmp_path):
    (source / os.fsdecode(b"caf\xe9")).write_text("x")
    (source / "caf\\xe9").write_text("y")
    (source / "line\nend").write_text("z")
    tree = copy_tree(source, tmp_path / "copy")
    assert sorted(tree.manifest.files) == ["caf\\xe9", "line\nend"]
    assert "look the same" in tree.left_out["caf\\xe9"]


@pytest.mark.parametrize("replaced_by", ["nothing", "link", "file"])
def test_a_folder_that_is_no_folder_any_more_is_empty(source, tmp_path, replaced_by):
    (source / "a").write_text("x")
    source.rename(tmp_path / "moved")
    if replaced_by == "link":
        source.symlink_to(tmp_path / "moved")
    elif replaced_by == "file":
        source.write_text("x")
    tree = copy_tree(source, tmp_path / "copy")
    assert (tree.manifest.files, tree.left_out) == ({}, {})


def test_equal_files_are_links_to_the_twin_and_others_are_copies(source, tmp_path):
    for name in ("same", "changed"):
        (source / name).write_text("before")
    before = copy_tree(source, tmp_path / "before")
    (source / "changed").write_text("AFTER!")
    after = copy_tree(source, tmp_path / "after", twin=Twin(tmp_path / "before", before.manifest))
    assert (tmp_path / "after" / "same").samefile(tmp_path / "before" / "same")
    assert files_in(tmp_path / "after") == {"same": b"before", "changed": b"AFTER!"}
    assert files_in(tmp_path / "before") == {"same": b"before", "changed": b"before"}
    assert after.manifest.files["same"].sha256 == before.manifest.files["same"].sha256


def test_secrets_are_masked_in_names_and_contents_but_the_manifest_has_the_real_hash(source, tmp_path):
    data = b"key=hunter22\xff\n"
    (source / "of hunter22.env").write_bytes(data)
    tree = copy_tree(source, tmp_path / "copy", mask=lambda text: text.replace("hunter22", "***"))
    assert files_in(tmp_path / "copy") == {"of ***.env": b"key=***\xff\n"}
    assert tree.manifest.files["of hunter22.env"].sha256 == hashlib.sha256(data).hexdigest()


def test_a_file_too_large_to_mask_is_kept_only_without_secrets(source, tmp_path, monkeypatch):
    monkeypatch.setattr(trees, "_MASKABLE", 100)
    monkeypatch.setattr(trees, "_CHUNK", 64)
    (source / "clean").write_bytes(b"x" * 500)
    (source / "leaky").write_bytes(b"x" * 60 + b"hunter22" + b"x" * 500)  # across the border of two pieces
    tree = copy_tree(source, tmp_path / "copy", mask=lambda text: text.replace("hunter22", "***"))
    assert files_in(tmp_path / "copy") == {"clean": b"x" * 500}
    assert "secret" in tree.left_out["leaky"]


@contextmanager
def meanwhile(action):
    """Does something again and again in another thread."""
    stop = threading.Event()

    def work():
        while not stop.is_set():
            action()

    thread = threading.Thread(target=work)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()


def test_links_put_in_the_place_of_files_and_folders_meanwhile_lead_nowhere(source, tmp_path):
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "canary").write_text("canary")
    spare = tmp_path / "spare"
    spare.mkdir()
    for place in (source, spare):
        (place / "folder").mkdir()
        (place / "folder" / "canary").write_text("harmless")
        (place / "canary").write_text("harmless")
    (spare / "to file").symlink_to(outside / "canary")
    (spare / "to folder").symlink_to(outside)

    def swap():
        for name, link in (("canary", "to file"), ("folder", "to folder")):
            (source / name).rename(tmp_path / "aside")
            (spare / link).rename(source / name)
            (source / name).rename(spare / link)
            (tmp_path / "aside").rename(source / name)

    with meanwhile(swap):
        for number in range(500):
            copy_tree(source, tmp_path / f"copy{number}")
    read = {path.read_text() for path in tmp_path.glob("copy*/**/canary")}
    assert read == {"harmless"}


def test_a_file_that_changes_while_it_is_read_is_listed_as_it_was_copied(source, tmp_path):
    (source / "log").write_bytes(b"x" * 500_000)

    sizes = cycle(range(100_000, 3_000_000, 70_000))

    def write():
        with (source / "log").open("r+b") as file:
            file.write(os.urandom(50_000))
            file.truncate(next(sizes))

    with meanwhile(write):
        for number in range(50):
            tree = copy_tree(source, tmp_path / f"copy{number}")
            copied = (tmp_path / f"copy{number}" / "log").read_bytes()
            entry = tree.manifest.files["log"]
            assert (entry.size, entry.sha256) == (len(copied), hashlib.sha256(copied).hexdigest())


NAMES = st.text(st.characters(exclude_characters="/\0", exclude_categories=["Cs"]), min_size=1, max_size=12).filter(
    lambda name: name not in (".", "..")
)


@given(st.dictionaries(NAMES, st.binary(max_size=200), max_size=8))
def test_whatever_the_names_a_copy_of_a_copy_is_the_same(tmp_path_factory, contents):
    folder = tmp_path_factory.mktemp("tree")
    (folder / "source").mkdir()
    for name, data in contents.items():
        (folder / "source" / name).write_bytes(data)
    first = copy_tree(folder / "source", folder / "one")
    second = copy_tree(folder / "one", folder / "two")
    assert files_in(folder / "two") == contents
    assert {n: f.sha256 for n, f in first.manifest.files.items()} == {
        n: f.sha256 for n, f in second.manifest.files.items()
    }
