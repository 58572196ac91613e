"""Which cases of a dataset are run: those that a filter keeps, and a sample of them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from formats.native.dataset_files import cases, lines

TEN = "cases:\n" + "".join(f"- {{id: c{i}, input: {{}}, metadata: {{odd: {i % 2}}}}}\n" for i in range(10))


@pytest.mark.parametrize(
    ("wanted", "ids"),
    [
        ({"id": "c3"}, ["c3"]),
        ({"id": ["c3", "c1", "none"]}, ["c1", "c3"]),
        ({"metadata.odd": 1, "id": ["c1", "c2"]}, ["c1"]),
        ({"metadata.even": 1}, []),
        ({"metadata.odd.deeper": 1}, []),
        ({"nothing": None}, []),
        ({"metadata.odd": True, "id": ["c1"]}, ["c1"]),
        ({}, [f"c{i}" for i in range(10)]),
    ],
)
def test_a_filter_keeps_the_cases_for_which_all_holds(tmp_path: Path, wanted: dict[str, Any], ids: list[str]) -> None:
    assert [case.id for case in cases(tmp_path, "yaml", TEN, filter=wanted)] == ids


def test_a_filter_reaches_into_what_is_expected(tmp_path: Path) -> None:
    data = lines({"id": "a", "input": {}, "expected": {"facts": {"n": 1}}}, {"id": "b", "input": {}})
    assert [case.id for case in cases(tmp_path, "jsonl", data, filter={"expected.facts.n": 1})] == ["a"]


def sampled(folder: Path, **config: Any) -> list[str]:
    return [case.id for case in cases(folder, "yaml", TEN, **config)]


@pytest.mark.parametrize("size", [10, 11, 1000])
def test_a_sample_of_all_is_all_in_order(tmp_path: Path, size: int) -> None:
    assert sampled(tmp_path, sample=size) == [f"c{i}" for i in range(10)]


def test_a_sample_keeps_the_order_and_is_the_same_every_time(tmp_path: Path) -> None:
    chosen = sampled(tmp_path, sample=4)
    assert (len(chosen), chosen == sorted(chosen), chosen == sampled(tmp_path, sample=4)) == (4, True, True)


def test_a_seed_chooses_the_sample(tmp_path: Path) -> None:
    assert len({tuple(sampled(tmp_path, sample=4, seed=seed)) for seed in range(10)}) > 1


def test_a_sample_is_taken_after_the_filter(tmp_path: Path) -> None:
    chosen = sampled(tmp_path, sample=3, filter={"metadata.odd": 1})
    assert (len(chosen), set(chosen) <= {"c1", "c3", "c5", "c7", "c9"}) == (3, True)


def test_a_sample_of_none_is_empty(tmp_path: Path) -> None:
    assert sampled(tmp_path, sample=0) == []
