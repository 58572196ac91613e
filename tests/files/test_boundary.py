"""Files that data names: inside of the suite's repository, or nowhere."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import pytest

from evalwright.files.boundary import Boundary, OutsideError


@pytest.fixture
def suite(tmp_path: Path) -> Path:
    """A suite's folder in a repository, with a secret beside the repository."""
    folder = tmp_path / "proj" / "evals"
    folder.mkdir(parents=True)
    (tmp_path / "proj" / ".git").mkdir()
    (tmp_path / "proj" / "shared.txt").write_text("shared")
    (tmp_path / "secret.txt").write_text("secret")
    return folder


def test_the_whole_repository_may_be_named(suite: Path) -> None:
    assert Boundary(suite).read(suite / ".." / "shared.txt") == b"shared"


def test_a_pipe_keeps_nobody_waiting(suite: Path) -> None:
    os.mkfifo(suite / "pipe.txt")
    for look in (Boundary(suite).read, Boundary(suite).check):
        with pytest.raises(OutsideError, match=r"pipe\.txt' is not a regular file"):
            look(suite / "pipe.txt")


def test_without_a_repository_the_folder_alone(suite: Path) -> None:
    (suite.parent / ".git").rmdir()
    with pytest.raises(OutsideError, match="outside of the suite's folder"):
        Boundary(suite).read(suite / ".." / "shared.txt")


@pytest.mark.parametrize("named", ["../../secret.txt", "link.txt", "links/secret.txt", "{top}/secret.txt"])
def test_what_leads_outside_is_refused(suite: Path, named: str) -> None:
    top = suite.parent.parent
    (suite / "link.txt").symlink_to(top / "secret.txt")
    (suite / "links").symlink_to(top)
    for look in (Boundary(suite).read, Boundary(suite).check):
        with pytest.raises(OutsideError, match="--allow-outside"):
            look(suite / named.format(top=top))


@pytest.mark.parametrize("named", ["../shared.txt", "gone.txt"])
def test_what_lies_inside_is_the_path_that_was_named(suite: Path, named: str) -> None:
    assert Boundary(suite).check(suite / named) == suite / named


def test_a_folder_may_be_allowed(suite: Path) -> None:
    assert Boundary(suite, [suite.parent.parent]).read(suite / "../../secret.txt") == b"secret"


def test_links_inside_are_followed_and_circles_are_not(suite: Path) -> None:
    (suite / "link.txt").symlink_to("../shared.txt")
    (suite / "round.txt").symlink_to("round.txt")
    assert Boundary(suite).read(suite / "link.txt") == b"shared"
    with pytest.raises(OutsideError, match="cannot be resolved"):
        Boundary(suite).check(suite / "round.txt")


def test_a_link_that_is_turned_between_check_and_opening_gives_nothing_away(suite: Path) -> None:
    named, over = suite / "named.txt", threading.Event()
    named.symlink_to("../shared.txt")

    def turn() -> None:
        while not over.is_set():
            for target in ("../../secret.txt", "../shared.txt"):
                (suite / "next").symlink_to(target)
                (suite / "next").replace(named)

    turning = threading.Thread(target=turn)
    turning.start()
    try:
        listed = [read for _ in range(1000) if (read := _read(Boundary(suite), named)) is not None]
    finally:
        over.set()
        turning.join()
    assert set(listed) <= {b"shared"}


def _read(boundary: Boundary, path: Path) -> bytes | None:
    try:
        return boundary.read(path)
    except OutsideError:
        return None
