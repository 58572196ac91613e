"""Temporary folders: those in use stay, and those of processes that are gone go."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from evalwright.files.temporary import PREFIX, TemporaryFolder


def test_a_folder_whose_process_is_gone_is_removed_by_the_next_one(tmp_path: Path) -> None:
    left = TemporaryFolder(tmp_path)
    assert left._lock is not None
    os.close(left._lock)
    made = TemporaryFolder(tmp_path)
    assert [*tmp_path.iterdir()] == [made.path]
    made.close()


@pytest.mark.parametrize("name", ["other", f"{PREFIX}analysis", f"{PREFIX}0123456789abcdef-notes"])
def test_a_folder_of_the_user_stays_whatever_its_name_begins_with(tmp_path: Path, name: str) -> None:
    (tmp_path / name).mkdir()
    TemporaryFolder(tmp_path).close()
    assert [*tmp_path.iterdir()] == [tmp_path / name]


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
        (tmp_path / f"{PREFIX}{name * 16}").mkdir()
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
