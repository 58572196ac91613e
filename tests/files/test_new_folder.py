"""Folders that appear complete, or not at all."""

from __future__ import annotations

from pathlib import Path

import pytest

import warm
from evalwright.errors import InputError, StorageError
from evalwright.files.new_folder import complete_folder
from living import wait_for


def test_a_folder_appears_when_all_is_in_it(tmp_path: Path) -> None:
    place = tmp_path / "above" / "new"
    with complete_folder(place) as draft:
        (draft / "a").write_text("1")
        assert not place.exists()
    assert [path.name for path in place.iterdir()] == ["a"]
    assert [*place.parent.iterdir()] == [place]


def test_after_an_error_nothing_is_left(tmp_path: Path) -> None:
    def failing(place: Path) -> None:
        with complete_folder(place) as draft:
            (draft / "a").write_text("1")
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        failing(tmp_path / "new")
    assert [*tmp_path.iterdir()] == []


KILLED = """
import os, signal, sys
from pathlib import Path
from evalwright.files.new_folder import complete_folder

with complete_folder(Path(sys.argv[1])) as draft:
    (draft / "a").write_text("1")
    os.kill(os.getpid(), signal.SIGKILL)
"""


def test_a_process_that_is_killed_leaves_nothing(tmp_path: Path) -> None:
    assert warm.run(["-c", KILLED, "new"], cwd=tmp_path).returncode == -9
    assert wait_for(lambda: [*tmp_path.iterdir()] == [], 60)


@pytest.mark.parametrize("kind", ["file", "folder", "link"])
def test_what_is_there_stays(tmp_path: Path, kind: str) -> None:
    place = tmp_path / "there"
    if kind == "file":
        place.write_text("mine")
    elif kind == "folder":
        place.mkdir()
    else:
        place.symlink_to("nowhere")
    with pytest.raises(InputError, match="there exists already, and nothing is overwritten"), complete_folder(place):
        raise AssertionError


def test_a_folder_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises((InputError, StorageError), match="file is a file"), complete_folder(tmp_path / "file" / "new"):
        raise AssertionError
