"""What a writer leaves that was killed is removed by the next one; what a living writer is writing stays."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

import warm
from dying import killed_at
from evalwright.files.drafts import open_draft
from evalwright.files.durable import replace_file

_KILLED = """
import os, signal
from pathlib import Path
from evalwright.files.drafts import open_draft

file = open_draft(Path("report.html"), 0o666)
file.write(b"half")
file.flush()
os.kill(os.getpid(), signal.SIGKILL)
"""


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


@pytest.fixture
def killed(tmp_path: Path) -> Path:
    """A folder in which a process died while it wrote report.html."""
    assert warm.run(["-c", _KILLED], cwd=tmp_path).returncode == -signal.SIGKILL
    assert len(names(tmp_path)) == 1
    return tmp_path


def test_the_next_writer_of_a_file_removes_what_a_killed_one_left(killed: Path) -> None:
    replace_file(killed / "report.html", b"whole")
    assert names(killed) == ["report.html"]


def test_the_writer_of_another_file_removes_nothing(killed: Path) -> None:
    before = names(killed)
    replace_file(killed / "html", b"whole")
    assert names(killed) == sorted([*before, "html"])


def test_what_another_writer_is_writing_stays(tmp_path: Path) -> None:
    path = tmp_path / "report.html"
    with open_draft(path, 0o666) as other:
        replace_file(path, b"mine")
        other.write(b"theirs")
        other.flush()
        Path(other.name).rename(path)
    assert path.read_bytes() == b"theirs"
    assert names(tmp_path) == ["report.html"]


def test_a_pipe_with_the_name_of_a_draft_keeps_no_writer_waiting(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / ".report.html.00112233.tmp")
    replace_file(tmp_path / "report.html", b"whole")
    assert names(tmp_path) == [".report.html.00112233.tmp", "report.html"]


def test_a_link_with_the_name_of_a_draft_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "mine").write_text("kept")
    (tmp_path / ".report.html.00112233.tmp").symlink_to("mine")
    replace_file(tmp_path / "report.html", b"whole")
    assert (tmp_path / "mine").read_text() == "kept"


def test_a_folder_that_cannot_be_listed_can_be_written_to(tmp_path: Path) -> None:
    tmp_path.chmod(0o300)
    try:
        replace_file(tmp_path / "report.html", b"whole")
    finally:
        tmp_path.chmod(0o700)
    assert names(tmp_path) == ["report.html"]


def test_an_import_removes_what_a_killed_import_left(tmp_path: Path) -> None:
    (tmp_path / "chat.json").write_text('{"messages": [{"role": "user", "content": "hi"}]}')
    words = ["import", "chat.json", "--out", "out"]
    assert killed_at(1, words, tmp_path, "os.rename")
    assert names(tmp_path / "out") != []
    assert warm.run(["-m", "evalwright", *words], cwd=tmp_path).returncode == 0
    assert names(tmp_path / "out") == ["cases.jsonl", "eval.yaml"]
