"""File and line of cases, as their files tell."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from evalwright.run.case_places import case_places
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
    wanted = [*line, "no such case"]
    (tmp_path / ".git").mkdir()
    plan = a_plan(files={str(path): digest}, seal="ours")
    assert {key: (at.file, at.line) for key, at in case_places(plan, wanted).items()} == {
        key: (name, number) for key, number in line.items()
    }
    assert case_places(a_plan(files={str(path): digest}), wanted) == {}, "files of others stay closed"
    assert case_places(a_plan(files={str(path): "0" * 64}, seal="ours"), wanted) == {}, "it has changed"
