"""File and line of cases, as their files tell."""

from __future__ import annotations

import hashlib
import sys
from pathlib import Path
from typing import Any

import pytest

from evalwright.run.case_places import CasePlaces
from evalwright.testing import a_plan


@pytest.mark.parametrize(
    ("name", "text", "line"),
    [
        ("c.yaml", "cases:\n- input: {q: 1}\n  id: \"a b\"\n- id: 'it''s'\n", {"a b": 3, "it's": 4}),
        ("c.yaml", "- {id: x, input: 1}\n- {input: 1, id: y}  # id: z\n", {"x": 1, "y": 2}),
        ("c.jsonl", '{"id": "x", "input": {"valid": 1}}\n\n{"input": 1, "id": "\\u00e4"}\n', {"x": 1, "ä": 3}),
        ("c.csv", 'q,id\n"two\nlines",x\n1,y\n', {"x": 3, "y": 4}),
        ("c.jsonl", '{"id": "x"}\n{"id": "x"}\n', {"x#1": 1, "x#2": 2}),
        ("c.txt", "id: x\n", {}),
    ],
)
def test_an_id_is_found_where_it_is_written(tmp_path: Path, name: str, text: str, line: dict[str, int]) -> None:
    path = tmp_path / name
    path.write_text(text)
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    (tmp_path / ".git").mkdir()

    def places(**fields: Any) -> CasePlaces:
        return CasePlaces(a_plan(**fields))

    ours = places(files={str(path): digest}, seal="ours")
    for key in (*line, *line, *reversed(line)):
        assert ours.get(key) == (name, line[key])
    assert ours.get("no such case") is None
    for closed in (places(files={str(path): digest}), places(files={str(path): "0" * 64}, seal="ours")):
        assert not [key for key in line if key in closed], "files of others stay closed, as do those that changed"


def test_ids_of_several_files_and_in_any_order(tmp_path: Path) -> None:
    files = {}
    for name in ("a", "b"):
        path = tmp_path / f"{name}.jsonl"
        path.write_text("".join(f'{{"input": {{"id": "in"}}, "id": "{name}{n % 3}"}}\n' for n in range(4)))
        files[str(path)] = hashlib.sha256(path.read_bytes()).hexdigest()
    (tmp_path / ".git").mkdir()
    places = CasePlaces(a_plan(files=files, seal="ours"))
    asked = {
        "b2": ("b.jsonl", 3),
        "a1": ("a.jsonl", 2),
        "b0#2": ("b.jsonl", 4),
        "b0#1": ("b.jsonl", 1),
        "a0#2": ("a.jsonl", 4),
    }
    assert {key: places.get(key) for key in asked} == asked
    assert [places.get(key) for key in ("in", "a0#3", "a0#0", "a0#x", "#", "")] == [None] * 6


def test_looking_in_another_order_keeps_no_object_per_id(tmp_path: Path) -> None:
    path = tmp_path / "c.jsonl"
    path.write_text("".join(f'{{"id": "c{n}"}}\n' for n in range(2000)))
    files = {str(path): hashlib.sha256(path.read_bytes()).hexdigest()}
    before = sys.getallocatedblocks()
    places = CasePlaces(a_plan(files=files, seal="ours"))
    assert [places[f"c{n}"].line for n in (1500, 7, 900)] == [1501, 8, 901]
    assert sys.getallocatedblocks() - before < 1000
