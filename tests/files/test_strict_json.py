"""JSON that is none, and the lines of the values of a document."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

import pytest

from evalwright.errors import Problem
from evalwright.files.key_paths import Place
from evalwright.files.strict_json import JsonFlaw, json_lines_of, repeated_json_keys, strict_json, with_json_lines


@pytest.mark.parametrize(
    ("data", "said", "line", "place"),
    [
        ('[{"a": 1},\n {"b": [0,\n NaN]}]', "NaN is not JSON", 3, (1, "b", 1)),
        ('{"a": {"x": 1},\n "a": 2}', "the key 'a' occurs more than once", 2, ("a",)),
        ('{"a": {"x": 1, "y": [{"k": 1,\n"k": 2}]}}', "'k' occurs more than once", 2, ("a", "y", 0, "k")),
        ('["1e400",\n -1e999, NaN]', "-1e999 is too large a number", 2, (1,)),
        ('["NaN", "\\ud83d\\ude00",\n\n"\\ud800"]', "has \\ud800 without", 3, (2,)),
        ('{"a": 1\n"b": 2}', "col 1", 2, ()),
        ("", "Expecting value", 1, ()),
    ],
)
def test_what_json_does_not_have_is_told_with_its_place(data: str, said: str, line: int, place: Place) -> None:
    with pytest.raises(JsonFlaw, match=said.replace("\\", r"\\")) as caught:
        strict_json(data.encode())
    assert (caught.value.line, caught.value.place) == (line, place)


def made(random: Random, depth: int) -> Any:
    kind = random.randrange(7 if depth else 5)
    if kind == 5:
        return [made(random, depth - 1) for _ in range(random.randrange(4))]
    if kind == 6:
        return {f"{random.choice('ab{é')}{i}": made(random, depth - 1) for i in range(random.randrange(4))}
    return [None, True, -1.5e3, random.randrange(99), random.choice(["", 'a"b', "{[,:]}\\", "é\n"])][kind]


def lines(value: Any, place: Place, first: int) -> Iterator[tuple[Place, int]]:
    """The line of each value of a document that is written with one on each."""
    yield place, first
    line = first + 1
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for step, inner in items:
        yield from lines(inner, (*place, step), line)
        line += json.dumps(inner, indent=1).count("\n") + 1


def test_lines_of_all_values_of_any_document() -> None:
    for seed in range(150):
        value = made(Random(seed), 4)
        data = json.dumps(value, indent=1, ensure_ascii=seed % 2 == 0).encode()
        expected = dict(lines(value, (), 1))
        assert json_lines_of(data, [*expected]) == expected


def test_what_is_not_there_has_the_line_of_the_deepest_value_on_the_way() -> None:
    data = b'{"a": [1,\n {"b": 2}]}'
    assert json_lines_of(data, [("a", 1, "c"), ("a", 5), ("z", 0)]) == {("a", 1, "c"): 2, ("a", 5): 1}
    assert json_lines_of(b"}]", [("a",)]) == {("a",): 1}


def test_every_repeated_key_has_its_line_and_place() -> None:
    data = b'{"a": [{"k": 1,\n"k": 2}],\n"b": 1, "b": 2, "b": 3}'
    assert [*repeated_json_keys(data)] == [(("a", 0, "k"), 2), (("b",), 3), (("b",), 3)]


def test_problems_of_a_document_get_the_lines_of_their_keys_and_others_stay_as_they_are(tmp_path: Path) -> None:
    for name in ("one.json", "rows.jsonl"):
        (tmp_path / name).write_text('{"a": 1,\n "b": [{"c": 1},\n {"c": 2}]}\n')
    one, rows, gone = (str(tmp_path / name) for name in ("one.json", "rows.jsonl", "gone.json"))
    keys = [(one, "b[1].c"), (one, "b.1.c"), (one, "d.e"), (one, ""), (rows, "b[1].c"), (gone, "b[1].c")]
    placed = with_json_lines([*(Problem(file, "m", key=key) for file, key in keys), Problem(one, "m", 9, "a")])
    assert [problem.line for problem in placed] == [3, 3, None, None, None, None, 9]
