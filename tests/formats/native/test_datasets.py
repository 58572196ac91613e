"""The datasets of `eval.yaml`: which cases there are."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from evalwright.errors import InputError
from evalwright.model.snapshot import snapshot
from formats.native.dataset_files import cases, lines, wrong


def test_a_case_needs_only_id_and_input(tmp_path: Path) -> None:
    (case,) = cases(tmp_path, "yaml", "cases:\n- {id: a, input: {x: 1}}\n")
    assert (case.id, case.input, case.expected.facts, case.metadata, case.tags) == ("a", {"x": 1}, {}, {}, [])


@pytest.mark.parametrize("kind", ["yaml", "jsonl"])
def test_null_is_empty_where_empty_is_allowed(tmp_path: Path, kind: str) -> None:
    record = {"id": "a", "input": {}, "expected": None, "metadata": None, "tags": None}
    data = lines(record) if kind == "jsonl" else json.dumps({"cases": [record]})
    (case,) = cases(tmp_path, kind, data)
    assert (case.expected.must_call_tools, case.metadata, case.tags) == ([], {}, [])


@pytest.mark.parametrize("kind", ["yaml", "jsonl"])
def test_no_cases_are_legal(tmp_path: Path, kind: str) -> None:
    assert cases(tmp_path, kind, "cases: []\n" if kind == "yaml" else "") == []


def test_keys_that_nothing_reads_are_no_mistake(tmp_path: Path) -> None:
    data = "owner: me\ndataset: {name: d}\ncases:\n- {id: a, input: {}, notes: x, expected: {more: 1}}\n"
    assert [case.id for case in cases(tmp_path, "yaml", data)] == ["a"]


def test_cases_are_plain_yaml_1_1_and_hold_what_json_holds(tmp_path: Path) -> None:
    (case,) = cases(
        tmp_path,
        "yaml",
        "cases:\n- {id: a, input: {sent: yes, on_day: 2026-05-01, k: {null: x}}}\n",
    )
    assert case.input == {"sent": True, "on_day": "2026-05-01", "k": {"None": "x"}}


def test_a_fixture_has_no_version(tmp_path: Path) -> None:
    assert cases(tmp_path, "fixture", "schema_version: 2.0\ncases: []\n") == []


@pytest.mark.parametrize("mark", ["\u2028", "\u0085", "\x0c"])
def test_only_a_line_feed_ends_a_case(tmp_path: Path, mark: str) -> None:
    record = json.dumps({"id": "a", "input": {"x": "1MARK2"}}).replace("MARK", mark if ord(mark) > 31 else "\\f")
    (case,) = cases(tmp_path, "jsonl", record)
    assert case.input["x"] == f"1{mark}2"


_TEXTS = st.text(max_size=3) | st.sampled_from(["1.0", "1.7", "2.0", " "])


_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | _TEXTS,
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(_TEXTS, inner, max_size=2),
    max_leaves=5,
)


_LISTS = st.lists(_TEXTS, max_size=2) | _VALUES


_EXPECTED = st.fixed_dictionaries({}, optional={"must_call_tools": _LISTS, "facts": _VALUES, "other": _VALUES})


_MAPPINGS = st.dictionaries(_TEXTS, _VALUES, max_size=2) | _VALUES


_OPTIONAL = {
    "expected": _EXPECTED | _VALUES,
    "metadata": _MAPPINGS,
    "tags": _LISTS,
    "group": _TEXTS,
    "more": _VALUES,
    "schema_version": _TEXTS,
    "description": _TEXTS,
    "extra": _MAPPINGS,
}


_CASES = st.fixed_dictionaries({"id": _TEXTS | st.integers(), "input": _MAPPINGS}, optional=_OPTIONAL)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(record=_CASES)
def test_a_line_that_is_read_at_once_is_the_case_that_is_read_with_care(tmp_path: Path, record: Any) -> None:
    def outcome(line: str) -> list[Any]:
        try:
            return [msgspec.json.encode(snapshot(case)) for case in cases(tmp_path, "jsonl", line)]
        except InputError as error:
            return [(problem.key, problem.message) for problem in error.problems]

    assert outcome(lines(record)) == outcome(lines({**record, "recorded": None}))  # a key that only pydantic knows


def test_values_are_read_as_deep_as_pydantic_reads_them(tmp_path: Path) -> None:
    def line(depth: int) -> str:
        return '{"id": "a", "input": {"x": ' + "[" * depth + "]" * depth + "}}\n"

    assert cases(tmp_path, "jsonl", line(150))
    assert "recursion limit" in wrong(tmp_path, "jsonl", line(400))[0].message
