"""Every way in which a dataset can be wrong."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from evalwright.errors import InputError, Problem
from evalwright.registry import load
from formats.native.dataset_files import cases, dataset, lines, wrong
from formats.suites import refusal

WRONG_CASES: list[tuple[str, str, list[str]]] = [
    ("{input: {}}", "cases[1].id", ["missing"]),
    ("{id: 5, input: {}}", "cases[1].id", ["string", "5"]),
    ("{id: ' ', input: {}}", "cases[1].id", ["not empty", "' '"]),
    ("{id: b, input: {x: [1, .nan]}}", "cases[1].input.x[1]", ["JSON", "nan"]),
    ("{id: b, input: {}, expected: {facts: {x: -.inf}}}", "cases[1].expected.facts.x", ["-inf"]),
    ("{id: null, input: {}}", "cases[1].id", ["null"]),
    ("{id: b}", "cases[1].input", ["missing"]),
    ("{id: b, input: text}", "cases[1].input", ["mapping", "'text'"]),
    ("word", "cases[1]", ["mapping"]),
    ("null", "cases[1]", ["mapping", "null"]),
    ("{id: b, input: {}, expected: []}", "cases[1].expected", ["mapping", "[]"]),
    ("{id: b, input: {}, expected: {must_call_tools: x}}", "cases[1].expected.must_call_tools", ["list"]),
    ("{id: b, input: {}, expected: {must_modify_files: [x, 1]}}", "cases[1].expected.must_modify_files[1]", ["string"]),
    ("{id: b, input: {}, expected: {facts: null}}", "cases[1].expected.facts", ["mapping", "null"]),
    ("{id: b, input: {}, metadata: {on: x}}", "cases[1].metadata", ["keys must be strings", "found true"]),
    ("{id: b, input: {}, tags: x}", "cases[1].tags", ["list"]),
    ("{id: a, input: {}}", "cases[1]", ["duplicate case id 'a'"]),
]  # fmt: skip


@pytest.mark.parametrize("kind", ["yaml", "fixture"])
@pytest.mark.parametrize(("case", "key", "said"), WRONG_CASES, ids=[case for case, *_ in WRONG_CASES])
def test_a_mistake_in_a_case_is_told_with_its_place(
    tmp_path: Path, kind: str, case: str, key: str, said: list[str]
) -> None:
    (problem,) = wrong(tmp_path, kind, f"cases:\n- {{id: a, input: {{}}}}\n- {case}\n")
    assert (problem.key, problem.line) == (key, 3)
    assert [word for word in said if word not in problem.message] == []


@pytest.mark.parametrize(
    ("data", "key", "line", "said"),
    [
        ("", "", None, "empty"),
        ("- 1\n", "", None, "expected a mapping"),
        ("a: 1\n", "cases", 1, "'cases' must be a list"),
        ("a: 1\ncases: {}\n", "cases", 2, "'cases' must be a list"),
        ("schema_version: 1.0\ncases: []\n", "schema_version", 1, "must be a string"),
        ("cases: []\nschema_version: '2.0'\n", "schema_version", 2, "must be 1.x, found '2.0'"),
        ("cases:\n- [\n", "", 3, "line 3"),
    ],
)
def test_a_mistake_of_the_file_is_told(tmp_path: Path, data: str, key: str, line: int | None, said: str) -> None:
    (problem,) = wrong(tmp_path, "yaml", data)
    assert (problem.key, problem.line, said in problem.message) == (key, line, True)


@pytest.mark.parametrize(
    ("line", "key", "said"),
    [
        ('{"id": "b", "input": {},}', "", "malformed JSON"),
        ('{"id": "b", "input": {},}', "", "col 25"),
        ("{", "", "malformed JSON"),
        ("[1]", "", "expected a mapping"),
        ("NaN", "", "expected a mapping"),
        ('{"id": "b", "input": "x"}', "input", "expected a mapping"),
        ('{"id": "b"}', "input", "missing"),
        ('{"id": "b", "input": {}, "expected": {"must_call_tools": [1]}}', "expected.must_call_tools[0]", "string"),
        ('{"id": "a", "input": {}}', "", "duplicate case id 'a'"),
        ('{"id": "", "input": {}}', "id", "not empty"),
        ('{"id": "b", "input": {"x": NaN}}', "input.x", "found nan"),
        ('{"id": "b", "input": {"x": 1e999}}', "input.x", "found inf"),
        ('{"id": "b", "input": {"x": "\\ud800"}}', "", "malformed JSON"),
        ('{"id": "b", "input": {"x": ' + "[" * 100_000 + "]" * 100_000 + "}}", "", "malformed JSON"),
        ('{"id": "b", "input": {"x": ' + "1" * 5000 + "}}", "", "malformed JSON"),
    ],
    ids=range(15),
)
def test_a_mistake_in_a_line_is_told_with_its_number(tmp_path: Path, line: str, key: str, said: str) -> None:
    (problem,) = wrong(tmp_path, "jsonl", f'{{"id": "a", "input": {{}}}}\n\n{line}\n')
    assert (problem.line, problem.key, said in problem.message) == (3, key, True)


def test_all_mistakes_of_a_dataset_are_told(tmp_path: Path) -> None:
    good = {"id": "a", "input": {}}
    assert [p.line for p in wrong(tmp_path, "jsonl", lines(good, {}, good, 5, good))] == [2, 2, 3, 4, 5]


def test_cases_before_a_mistake_are_given_and_the_mistake_is_told_at_the_end(tmp_path: Path) -> None:
    stream = iter(dataset(tmp_path, "jsonl", lines({"id": "a", "input": {}}, 5)))
    assert next(stream).id == "a"
    assert refusal(lambda: next(stream)).problems[0].line == 2


def test_of_very_many_mistakes_the_first_are_told_and_all_are_counted(tmp_path: Path) -> None:
    error = refusal(lambda: cases(tmp_path, "jsonl", "5\n" * 1000))
    assert (error.count, len(error.problems)) == (1000, 101)
    assert str(error.problems[-1]).endswith("cases.jsonl  and 900 more problems")


def test_unknown_keys_beside_a_mistake_are_counted_however_many_they_are(tmp_path: Path) -> None:
    rows = [json.dumps({"id": f"c{n}", "input": {}, "inpt": 2}) for n in range(300)]
    assert refusal(lambda: cases(tmp_path, "jsonl", "\n".join(["5", *rows]))).count == 301


@pytest.mark.parametrize("kind", ["yaml", "jsonl", "fixture"])
def test_a_file_that_is_gone_is_named(tmp_path: Path, kind: str) -> None:
    read = dataset(tmp_path, kind, "")
    next(tmp_path.iterdir()).unlink()
    assert "does not exist" in str(refusal(lambda: list(read)))


JSON_PARTS = st.sampled_from(
    ['{"id": "a", "input": {}}', '{"id": "b", "input": {}, ', '"expected": null}', '"embedded_trace": {}}',
     '"metadata": {"a": 1}}', "\n", "{", "}", "[", "]", '"', ",", "\\ud800", "1e999", "NaN", "\r", "\ufeff",
     "cases: ", "- "]
)  # fmt: skip


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    kind=st.sampled_from(["yaml", "jsonl", "fixture"]),
    data=st.binary() | st.lists(JSON_PARTS).map(lambda parts: "".join(parts).encode()),
)
def test_any_bytes_are_cases_or_refused(tmp_path: Path, kind: str, data: bytes) -> None:
    told: tuple[Problem, ...] = ()
    try:
        cases(tmp_path, kind, data)
    except InputError as error:
        told = error.problems
    assert all(problem.message and problem.file for problem in told)


@pytest.mark.parametrize("kind", ["yaml", "jsonl", "cases"])
def test_a_case_of_a_newer_version_is_a_mistake(tmp_path: Path, kind: str) -> None:
    record = {"id": "a", "input": {}, "schema_version": "2.0"}
    (tmp_path / "data").write_text(lines(record) if kind != "yaml" else json.dumps({"cases": [record]}))
    (problem,) = refusal(lambda: list(load("datasets", kind)(tmp_path / "data", "suite", {}))).problems
    assert (problem.key.endswith("schema_version"), "1.x" in problem.message, "2.0" in problem.message) == (True,) * 3


@pytest.mark.parametrize(
    ("encoding", "advice"), [("utf-16", "begins as UTF-16 does"), ("latin-1", "the line is not UTF-8 text")]
)
def test_lines_in_another_encoding_are_refused_with_their_encoding(tmp_path: Path, encoding: str, advice: str) -> None:
    problem, *_ = wrong(tmp_path, "jsonl", '{"id": "a", "input": {"q": "é"}}\n'.encode(encoding))
    assert (problem.line, advice in problem.message) == (1, True)
