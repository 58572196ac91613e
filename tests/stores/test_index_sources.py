"""Lines of a run folder at the places that an index has noted."""

from __future__ import annotations

import os
from contextlib import closing
from pathlib import Path

import pytest

from evalwright.stores.index.sources import CoveredRecords, FolderSource

LENGTHS = [10, 1, 5_000, 3, 3, 2_000_000, 7, 9_000, 4]


@pytest.mark.parametrize(
    "chosen",
    [
        pytest.param([0, 1, 3, 4, 8], id="near and far"),
        pytest.param([8, 3, 3, 0, 4], id="in any order, and twice"),
        pytest.param([4, 5, 6], id="a long one between short ones"),
        pytest.param([], id="none"),
    ],
)
def test_lines_are_those_at_their_places(tmp_path: Path, chosen: list[int]) -> None:
    lines = [bytes([97 + number]) * (length - 1) + b"\n" for number, length in enumerate(LENGTHS)]
    (tmp_path / "verdicts.jsonl").write_bytes(b"".join(lines))
    places = [(sum(LENGTHS[:number]), LENGTHS[number]) for number in chosen]

    with closing(FolderSource(tmp_path)) as source:
        assert source.lines("verdicts.jsonl", places) == [lines[number] for number in chosen]


def test_a_line_beyond_the_end_is_cut(tmp_path: Path) -> None:
    (tmp_path / "verdicts.jsonl").write_bytes(b"one\ntwo\n")

    with closing(FolderSource(tmp_path)) as source:
        assert source.lines("verdicts.jsonl", [(0, 4), (4, 9), (20, 5)]) == [b"one\n", b"two\n", b""]


def covered(source: FolderSource) -> dict[str, CoveredRecords]:
    """Everything that is there, as read."""
    with source.moment() as moment:
        return {name: moment.covered(name, end) for name, end in moment.ends.items()}


def test_records_that_were_changed_before_their_end_are_not_those_that_were_read(tmp_path: Path) -> None:
    path = tmp_path / "traces.jsonl"
    path.write_bytes(b"one\n" + b"x" * 100 + b"\n")
    with closing(FolderSource(tmp_path)) as source:
        read = covered(source)
        assert source.matches(read)
        path.write_bytes(b"two\n" + b"x" * 100 + b"\n")
        os.utime(path, ns=(0, 0))
        assert not source.matches(read)


def test_a_torn_line_behind_what_was_read_is_found(tmp_path: Path) -> None:
    path = tmp_path / "traces.jsonl"
    path.write_bytes(b"one\n")
    with closing(FolderSource(tmp_path)) as source:
        read = covered(source)
        path.write_bytes(b"one\ntwo\n")
        assert source.whole(read)
        path.write_bytes(b"one\ntw")
        assert not source.whole(read)


def test_only_whole_lines_that_were_there_at_the_moment_are_read(tmp_path: Path) -> None:
    path = tmp_path / "traces.jsonl"
    path.write_bytes(b"one\ntwo\nthr")
    with closing(FolderSource(tmp_path)) as source, source.moment() as moment:
        lines, end = moment.read(path.name, 0, 100)
        assert (lines.lines, end) == ([b"one\n", b"two\n"], 8)
        with path.open("ab") as file:
            file.write(b"ee\nfour\n")
        assert moment.read(path.name, 8, 100)[1] == 8
        assert (moment.read(path.name, 0, 1)[1], moment.read(path.name, 4, 4)[1]) == (4, 4)
