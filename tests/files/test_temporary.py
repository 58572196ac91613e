"""Temporary folders: those in use stay, and those of processes that are gone go."""

from __future__ import annotations

import fcntl
from collections.abc import Callable
from pathlib import Path

import pytest

from evalwright.files.temporary import PREFIX, TemporaryFolder


def test_a_folder_whose_process_is_gone_is_removed_by_the_next_one(tmp_path: Path) -> None:
    left = tmp_path / f"{PREFIX}left"
    left.mkdir()
    (tmp_path / "other").mkdir()
    made = TemporaryFolder(tmp_path)
    assert {*tmp_path.iterdir()} == {made.path, tmp_path / "other"}
    made.close()
    assert [*tmp_path.iterdir()] == [tmp_path / "other"]


def test_the_folder_around_it_is_made_if_need_be(tmp_path: Path) -> None:
    made = TemporaryFolder(tmp_path / "new" / "folder")
    assert made.path.parent == tmp_path / "new" / "folder"
    made.close()
    assert not made.path.exists()


@pytest.fixture
def opened(tmp_path: Path, descriptors: Callable[[], dict[str, str]]) -> Callable[[], list[str]]:
    """What this process has open in the test's folder; other tests of the process open and close files elsewhere."""
    return lambda: sorted(name for name in descriptors().values() if name.startswith(f"{tmp_path}/"))


def test_a_folder_in_use_stays_and_looking_at_it_leaves_nothing_open(
    tmp_path: Path, opened: Callable[[], list[str]]
) -> None:
    used = TemporaryFolder(tmp_path)
    before = opened()
    for _ in range(3):
        TemporaryFolder(tmp_path).close()
    assert (used.path.is_dir(), opened()) == (True, before)
    used.close()


def test_removing_folders_of_processes_that_are_gone_leaves_nothing_open(
    tmp_path: Path, opened: Callable[[], list[str]]
) -> None:
    for name in "abc":
        (tmp_path / f"{PREFIX}{name}").mkdir()
    TemporaryFolder(tmp_path).close()
    assert ([*tmp_path.iterdir()], opened()) == ([], [])


def test_a_folder_that_another_run_takes_for_a_leftover_is_left_to_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    flock = fcntl.flock

    def taken(descriptor: int, operation: int) -> None:
        monkeypatch.setattr(fcntl, "flock", flock)
        raise BlockingIOError

    monkeypatch.setattr(fcntl, "flock", taken)
    made = TemporaryFolder(tmp_path)
    TemporaryFolder(tmp_path).close()
    assert made.path.is_dir()
    made.close()
