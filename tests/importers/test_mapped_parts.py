"""What `--map` says of a record: the value is that part of the case or of its recording, or it is refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from evalwright.errors import InputError
from importers.transcripts import imported, written

SAMPLE: dict[str, Any] = {"doc_id": 1, "arguments": [["q", ""]], "resps": [["a"]], "metrics": []}


def mapped(folder: Path, part: str, value: Any) -> dict[str, Any]:
    """The case of one record with this value, which is mapped to a part."""
    file = written(folder / "x.jsonl", [{**SAMPLE, "x": value}])
    _, (case,) = imported(folder, "lm-eval", file, mapping={part: "x"})
    return case


@pytest.mark.parametrize(("value", "id"), [("mine", "mine"), (7, "7")])
def test_a_text_or_a_whole_number_is_an_id(tmp_path: Path, value: Any, id: str) -> None:
    assert mapped(tmp_path, "id", value)["id"] == id


@pytest.mark.parametrize(("value", "reward"), [(0.5, 0.5), (1, 1.0), (True, 1.0)])
def test_a_number_or_a_truth_is_a_reward(tmp_path: Path, value: Any, reward: float) -> None:
    assert mapped(tmp_path, "reward", value)["embedded_trace"]["metrics"]["custom"]["reward"] == reward


def test_a_time_is_that_of_the_recording(tmp_path: Path) -> None:
    found = mapped(tmp_path, "started_at", "2026-03-04T09:00:08Z")
    assert found["embedded_trace"]["started_at"] == "2026-03-04T09:00:08Z"


def test_anything_is_a_value_of_the_metadata_or_of_the_extras(tmp_path: Path) -> None:
    assert mapped(tmp_path / "a", "metadata.topic", ["billing", 2])["metadata"]["topic"] == ["billing", 2]
    assert mapped(tmp_path / "b", "extra.topic", {"a": 1})["embedded_trace"]["extra"]["topic"] == {"a": 1}


@pytest.mark.parametrize(
    ("part", "value"),
    [
        ("id", ""), ("id", 1.5), ("id", True), ("trial", -1), ("trial", 1.5), ("trial", True), ("trial", "1"),
        ("reward", "good"), ("started_at", "soon"), ("finished_at", 7.5e20),
    ],
)  # fmt: skip
def test_what_cannot_be_the_part_is_refused_by_name(tmp_path: Path, part: str, value: Any) -> None:
    with pytest.raises(InputError, match=f"cannot be the {part}: found"):
        mapped(tmp_path, part, value)


def test_a_record_that_lacks_the_part_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="expected the trial of the record, found nothing"):
        mapped(tmp_path, "trial", None)
