"""Code of users cannot close the files of a run through `os`; its own it can."""

import os
from pathlib import Path

import pytest

from evalwright.session.open_files import DescriptorRefused, descriptors_kept


def is_open(number: int) -> bool:
    try:
        os.fstat(number)
    except OSError:
        return False
    return True


@pytest.fixture
def ours(tmp_path: Path):
    with (tmp_path / "ours").open("w") as file:
        yield file.fileno()


def test_what_was_open_before_is_closed_neither_alone_nor_in_a_range(tmp_path: Path, ours: int) -> None:
    with descriptors_kept(str(tmp_path)):
        with pytest.raises(DescriptorRefused, match="isolation: process"):
            os.close(ours)
        with pytest.raises(DescriptorRefused, match="isolation: process"):
            os.closerange(3, 2**31)
        assert is_open(ours)


def test_files_of_the_run_that_are_opened_later_are_kept_too(tmp_path: Path) -> None:
    with descriptors_kept(str(tmp_path)), (tmp_path / "later").open("w") as file:
        with pytest.raises(DescriptorRefused):
            os.close(file.fileno())
        assert is_open(file.fileno())


def test_code_closes_what_it_has_opened(tmp_path: Path, ours: int) -> None:
    with descriptors_kept(str(tmp_path / "runs")):
        ends = os.pipe()
        own = os.open(tmp_path / "own", os.O_CREAT | os.O_RDWR)
        for number in (*ends, own):
            os.close(number)
        assert not any(map(is_open, (*ends, own)))
        with pytest.raises(OSError, match="Bad file descriptor"):
            os.close(own)


@pytest.mark.parametrize("first", [0, 1])
def test_runs_of_several_threads_may_end_in_any_order(tmp_path: Path, ours: int, first: int) -> None:
    before = os.close, os.closerange
    runs = [descriptors_kept(str(tmp_path / name)) for name in "ab"]
    for run in runs:
        run.__enter__()
    runs.pop(first).__exit__(None, None, None)
    with pytest.raises(DescriptorRefused):
        os.close(ours)
    runs.pop().__exit__(None, None, None)
    assert (os.close, os.closerange) == before


def test_a_child_closes_what_it_likes(tmp_path: Path, ours: int) -> None:
    with descriptors_kept(str(tmp_path)):
        child = os.fork()
        if child == 0:
            os.closerange(3, max(64, ours + 1))
            os._exit(0 if not is_open(ours) else 1)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def test_afterwards_everything_is_as_before(tmp_path: Path) -> None:
    before = os.close, os.closerange
    with descriptors_kept(str(tmp_path)):
        kept = os.close
    assert (os.close, os.closerange) == before
    number = os.open(tmp_path, os.O_RDONLY)
    kept(number)
    assert not is_open(number)
