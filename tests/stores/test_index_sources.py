"""Lines of a run folder at the places that an index has noted."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import pytest

from evalwright.stores.index.sources import FolderSource

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
