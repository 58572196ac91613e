"""What is appended stays, what is torn goes, and no failure is passed over in silence."""

from __future__ import annotations

import json
import os
import stat
import subprocess
import sys
import threading
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalwright.errors import InputError, StorageError
from evalwright.files.durable import AppendFile, must_be_writable, private_file, repair_tail, replace_file, write_output

THREE = [b'{"a":1}\n', b'{"b":"x y"}\n', b'{"c":[1,{"d":2}]}\n']


def test_appends_reach_the_file_in_order(tmp_path: Path) -> None:
    file = AppendFile(tmp_path / "f")
    for line in THREE:
        file.append(line)
    assert (tmp_path / "f").read_bytes() == b"".join(THREE)
    file.close()


def test_a_system_that_writes_a_part_is_asked_for_the_rest(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write, turns = os.write, iter(range(100))
    monkeypatch.setattr(os, "write", lambda descriptor, data: (next(turns), write(descriptor, data[:3]))[1])
    file = AppendFile(tmp_path / "f")
    for line in THREE:
        file.append(line)
    monkeypatch.undo()
    file.close()
    assert (tmp_path / "f").read_bytes() == b"".join(THREE)


def test_an_existing_file_is_continued(tmp_path: Path) -> None:
    (tmp_path / "f").write_bytes(THREE[0])
    file = AppendFile(tmp_path / "f")
    file.append(THREE[1])
    file.close()
    assert (tmp_path / "f").read_bytes() == THREE[0] + THREE[1]


@pytest.mark.parametrize(
    ("harm", "said"),
    [
        (Path.unlink, "it was deleted or replaced"),
        (lambda path: path.with_name("other").rename(path), "it was deleted or replaced"),
        (lambda path: os.truncate(path, 3), "it was cut by 5 bytes"),
    ],
)
def test_what_is_in_the_file_no_more_is_not_called_durable(
    tmp_path: Path, harm: Callable[[Path], object], said: str
) -> None:
    (tmp_path / "other").touch()
    file = AppendFile(tmp_path / "f")
    file.append(THREE[0])
    file.sync()
    harm(tmp_path / "f")
    file.append(THREE[1])
    with pytest.raises(StorageError, match=said):
        file.sync()
    file.close()


def test_a_file_that_has_moved_is_written_on(tmp_path: Path) -> None:
    file = AppendFile(tmp_path / "f")
    file.append(THREE[0])
    (tmp_path / "f").rename(tmp_path / "g")
    file.append(THREE[1])
    file.sync()
    file.close()
    assert (tmp_path / "g").read_bytes() == THREE[0] + THREE[1]


def test_a_closed_file_refuses_appends(tmp_path: Path) -> None:
    file = AppendFile(tmp_path / "f")
    file.close()
    with pytest.raises(StorageError, match="closed"):
        file.append(b"x")


def test_a_folder_that_is_missing_is_a_storage_error(tmp_path: Path) -> None:
    with pytest.raises(StorageError, match="No such file"):
        AppendFile(tmp_path / "missing" / "f")


def test_syncing_in_another_thread_disturbs_no_append(tmp_path: Path) -> None:
    file = AppendFile(tmp_path / "f")
    failures: list[BaseException] = []
    stop = threading.Event()

    def sync() -> None:
        while not stop.is_set():
            try:
                file.sync()
            except BaseException as error:
                failures.append(error)
                return

    thread = threading.Thread(target=sync)
    thread.start()
    for _ in range(300):
        file.append(THREE[0])
    file.close()
    stop.set()
    thread.join()
    assert not failures
    assert (tmp_path / "f").read_bytes() == THREE[0] * 300


_LIMITED = """
import resource, signal, sys
from pathlib import Path
from evalwright.errors import StorageError
from evalwright.files.durable import AppendFile
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))
file = AppendFile(Path(sys.argv[1]))
line = b'{"a":"' + b"x" * 291 + b'"}\\n'
for number in range(5):
    try:
        file.append(line)
    except StorageError as error:
        print(number, error)
"""


def test_a_full_disk_leaves_whole_records_and_refuses_everything_after(tmp_path: Path) -> None:
    path = tmp_path / "f"
    child = subprocess.run([sys.executable, "-c", _LIMITED, str(path)], capture_output=True, text=True, check=True)
    assert [line.split()[0] for line in child.stdout.splitlines()] == ["3", "4"]
    assert f"cannot write {path}: File too large" in child.stdout
    assert [len(line) for line in path.read_bytes().splitlines(keepends=True)] == [300, 300, 300]


def test_a_failed_sync_is_final(tmp_path: Path) -> None:
    """A pipe can be written but not synced: the kernel's own refusal."""
    os.mkfifo(tmp_path / "pipe")
    reader = os.open(tmp_path / "pipe", os.O_RDONLY | os.O_NONBLOCK)
    file = AppendFile(tmp_path / "pipe")
    file.append(b"x\n")
    with pytest.raises(StorageError, match="cannot sync"):
        file.sync()
    with pytest.raises(StorageError, match="cannot sync"):
        file.sync()
    with pytest.raises(StorageError, match="cannot sync"):
        file.append(b"y\n")
    os.close(reader)
    file.close()


@pytest.mark.parametrize("size", range(len(b"".join(THREE)) + 1))
def test_a_file_cut_anywhere_is_repaired_to_whole_records(tmp_path: Path, size: int) -> None:
    path = tmp_path / "f"
    data = b"".join(THREE)[:size]
    path.write_bytes(data)
    cut = repair_tail(path)
    whole = [line for i, line in enumerate(THREE) if size >= len(b"".join(THREE[: i + 1])) - 1]
    assert path.read_bytes() == b"".join(whole)
    assert cut == max(0, size - len(b"".join(whole)))


def test_repairing_twice_changes_nothing_more(tmp_path: Path) -> None:
    path = tmp_path / "f"
    path.write_bytes(THREE[0] + b'{"torn')
    assert (repair_tail(path), repair_tail(path)) == (6, 0)


@pytest.mark.parametrize("tail", [bytes(512), bytes(512) + b'half a record"}\n', b'{"a":\n'])
def test_what_a_power_cut_leaves_is_cut(tmp_path: Path, tail: bytes) -> None:
    path = tmp_path / "f"
    path.write_bytes(THREE[0] + tail)
    assert repair_tail(path) == len(tail)
    assert path.read_bytes() == THREE[0]


def test_a_tail_longer_than_a_block_is_cut(tmp_path: Path) -> None:
    path = tmp_path / "f"
    path.write_bytes(THREE[0] + b'{"a":"' + b"x" * 300_000)
    assert repair_tail(path) == 300_006
    assert path.read_bytes() == THREE[0]


@pytest.mark.parametrize("line", [b'{"a":1e999}\n', b"[" * 100_000 + b"]" * 100_000 + b"\n", b"\n"])
def test_a_whole_line_that_cannot_be_decoded_is_not_torn(tmp_path: Path, line: bytes) -> None:
    path = tmp_path / "f"
    path.write_bytes(line)
    assert repair_tail(path) == 0
    assert path.read_bytes() == line


@given(st.lists(st.dictionaries(st.text(max_size=3), st.text(max_size=5)), max_size=4), st.integers(0, 80))
def test_repair_keeps_a_prefix_of_whole_records(
    tmp_path_factory: pytest.TempPathFactory, records: list[object], cut: int
) -> None:
    path = tmp_path_factory.getbasetemp() / "repaired"
    lines = [json.dumps(record).encode() + b"\n" for record in records]
    data = b"".join(lines)
    path.write_bytes(data[: max(0, len(data) - cut)])
    repair_tail(path)
    kept = path.read_bytes().splitlines(keepends=True)
    assert kept == lines[: len(kept)]


def test_replacing_swaps_the_whole_content(tmp_path: Path) -> None:
    path = tmp_path / "f"
    replace_file(path, b"one")
    replace_file(path, b"two")
    assert path.read_bytes() == b"two"
    assert [path.name for path in tmp_path.iterdir()] == ["f"]


@pytest.mark.parametrize(
    ("path", "why"),
    [
        ("file/x/y", "/file is a file, not a folder"),
        ("folder", "/folder is a folder"),
        ("new/x", ""),
        ("file", ""),
        ("x" * 300, "too long"),
    ],
)
def test_a_place_that_cannot_be_written_is_refused_before_there_is_anything_to_write(
    tmp_path: Path, path: str, why: str
) -> None:
    (tmp_path / "file").touch()
    (tmp_path / "folder").mkdir()
    with pytest.raises(InputError, match=why) if why else nullcontext():
        must_be_writable(tmp_path / path)
    assert {one.name for one in tmp_path.iterdir()} == {"file", "folder"}


def test_what_is_no_file_is_written_to_and_stays(tmp_path: Path) -> None:
    """As root, replacing /dev/null would take it from every program on the machine."""
    pipe, link = tmp_path / "pipe", tmp_path / "stdout"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    target = os.open(tmp_path / "target", os.O_WRONLY | os.O_CREAT)
    link.symlink_to(f"/proc/self/fd/{target}")
    try:
        for path in (pipe, link):
            write_output(path, [b"one", b"two"])
        assert os.read(reader, 100) == b"onetwo"
    finally:
        os.close(reader)
        os.close(target)
    assert pipe.is_fifo()
    assert link.is_symlink()
    assert (tmp_path / "target").read_bytes() == b"onetwo"
    with pytest.raises(StorageError, match="cannot write"):  # nobody reads it
        write_output(pipe, [b"one"])
    with pytest.raises(InputError, match="expected a file, found a folder"):
        write_output(tmp_path, [b"one"])


def test_replacing_leaves_nothing_open(tmp_path: Path, descriptors: Callable[[], dict[str, str]]) -> None:
    before = descriptors()
    for content in THREE:
        replace_file(tmp_path / "f", content)
    assert not descriptors().items() - before.items()


def test_a_failed_replacement_keeps_the_old_and_leaves_nothing_behind(tmp_path: Path) -> None:
    (tmp_path / "f").mkdir()
    (tmp_path / "f" / "inside").touch()
    with pytest.raises(StorageError, match="cannot replace"):
        replace_file(tmp_path / "f", b"data")
    assert [path.name for path in tmp_path.iterdir()] == ["f"]


def test_a_file_becomes_private_and_a_device_keeps_its_mode(tmp_path: Path) -> None:
    file = tmp_path / "calls.jsonl"
    file.touch(0o644)
    private_file(file)
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    master, terminal = os.openpty()
    try:
        os.fchmod(terminal, 0o620)
        private_file(Path(os.ttyname(terminal)))
        assert stat.S_IMODE(os.fstat(terminal).st_mode) == 0o620
    finally:
        os.close(terminal)
        os.close(master)
