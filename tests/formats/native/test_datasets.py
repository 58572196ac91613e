"""The datasets of `eval.yaml`: which cases there are, and every way in which they can be wrong."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from evalwright.errors import InputError, Problem
from evalwright.formats.loading import load_suite
from evalwright.model.case import EvalCase
from evalwright.model.snapshot import snapshot
from evalwright.registry import load
from formats.suites import TRACE, refusal

TEN = "cases:\n" + "".join(f"- {{id: c{i}, input: {{}}, metadata: {{odd: {i % 2}}}}}\n" for i in range(10))


def dataset(folder: Path, kind: str, data: str | bytes, **config: Any) -> Any:
    path = folder / ("cases.jsonl" if kind == "jsonl" else "cases.yaml")
    path.write_bytes(data if isinstance(data, bytes) else data.encode())
    return load("datasets", kind)(path, "suite", config)


def cases(folder: Path, kind: str, data: str | bytes, **config: Any) -> list[EvalCase]:
    return list(dataset(folder, kind, data, **config))


def wrong(folder: Path, kind: str, data: str | bytes, **config: Any) -> tuple[Problem, ...]:
    return refusal(lambda: cases(folder, kind, data, **config)).problems


def lines(*records: object) -> str:
    return "".join(json.dumps(record) + "\n" for record in records)


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
    ("{id: b, input: {}, expected: []}", "cases[1].expected", ["mapping", "list"]),
    ("{id: b, input: {}, expected: {must_call_tools: x}}", "cases[1].expected.must_call_tools", ["list"]),
    ("{id: b, input: {}, expected: {must_modify_files: [x, 1]}}", "cases[1].expected.must_modify_files[1]", ["string"]),
    ("{id: b, input: {}, expected: {facts: null}}", "cases[1].expected.facts", ["mapping", "null"]),
    ("{id: b, input: {}, metadata: {on: x}}", "cases[1].metadata", ["keys must be strings", "True"]),
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


def test_a_fixture_has_no_version(tmp_path: Path) -> None:
    assert cases(tmp_path, "fixture", "schema_version: 2.0\ncases: []\n") == []


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
    assert (len(error.problems), error.headline.startswith("1,000 problems")) == (100, True)


@pytest.mark.parametrize("kind", ["yaml", "jsonl", "fixture"])
def test_a_file_that_is_gone_is_named(tmp_path: Path, kind: str) -> None:
    found = dataset(tmp_path, kind, "")
    next(tmp_path.iterdir()).unlink()
    assert "cannot be read" in str(refusal(lambda: list(found)))


@pytest.mark.parametrize("mark", ["\u2028", "\u0085", "\x0c"])
def test_only_a_line_feed_ends_a_case(tmp_path: Path, mark: str) -> None:
    record = json.dumps({"id": "a", "input": {"x": "1MARK2"}}).replace("MARK", mark if ord(mark) > 31 else "\\f")
    (case,) = cases(tmp_path, "jsonl", record)
    assert case.input["x"] == f"1{mark}2"


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


def recorded(folder: Path, kind: str, trace: Any, key: str = "embedded_trace", embed: bool = True) -> Any:
    record = {"id": "a", "input": {}, key: trace}
    data = lines(record) if kind == "jsonl" else json.dumps({"cases": [record]})
    (case,) = cases(folder, kind, data, embed_full_trace=embed)
    return case.recorded


@pytest.mark.parametrize("key", ["embedded_trace", "recorded"])
@pytest.mark.parametrize("kind", ["fixture", "jsonl"])
def test_an_embedded_trace_is_recorded_with_its_defaults(tmp_path: Path, kind: str, key: str) -> None:
    trace = recorded(tmp_path, kind, TRACE, key)
    assert (trace["output"]["final_answer"], trace["tool_calls"]) == ("hello", [])


@pytest.mark.parametrize("kind", ["fixture", "jsonl"])
def test_a_list_of_traces_is_one_for_each_trial(tmp_path: Path, kind: str) -> None:
    assert [trace["trial"] for trace in recorded(tmp_path, kind, [TRACE, {**TRACE, "trial": 1}])] == [0, 1]


@pytest.mark.parametrize(("kind", "taken"), [("yaml", False), ("fixture", False), ("jsonl", True)])
def test_without_being_asked_only_json_lines_take_an_embedded_trace(tmp_path: Path, kind: str, taken: bool) -> None:
    assert (recorded(tmp_path, kind, TRACE, embed=False) is not None) == taken


def test_times_of_a_hand_written_trace_are_utc(tmp_path: Path) -> None:
    data = f"cases:\n- id: a\n  input: {{}}\n  embedded_trace: {json.dumps(TRACE)}\n"
    data = data.replace('"2026-05-01T10:00:00Z"', "2026-05-01 10:00:00")
    (case,) = cases(tmp_path, "fixture", data, embed_full_trace=True)
    assert case.recorded["started_at"] == "2026-05-01T10:00:00Z"


@pytest.mark.parametrize(
    ("trace", "key", "said"),
    [
        ({}, "embedded_trace", "case_id"),
        ("text", "embedded_trace", "not a trace"),
        ([], "embedded_trace", "empty list"),
        ([TRACE, {**TRACE, "latency_ms": "x"}], "embedded_trace[1].latency_ms", "int"),
        ({**TRACE, "messages": [{"role": 1}]}, "embedded_trace.messages[0].role", "str"),
        ({**TRACE, "started_at": "yesterday"}, "embedded_trace.started_at", "datetime"),
        (None, "embedded_trace", "embed_full_trace"),
    ],
)
@pytest.mark.parametrize("kind", ["fixture", "jsonl"])
def test_what_is_no_trace_is_told_with_its_field(tmp_path: Path, kind: str, trace: Any, key: str, said: str) -> None:
    (problem,) = refusal(lambda: recorded(tmp_path, kind, trace)).problems
    assert problem.key == (key if kind == "jsonl" else f"cases[0].{key}")
    assert said in problem.message


@pytest.mark.parametrize("kind", ["yaml", "jsonl"])
def test_keys_that_nothing_reads_are_named_with_their_nearest(tmp_path: Path, kind: str) -> None:
    record = {"id": "a", "input": {}, "expcted": {}, "expected": {"fact": {}}}
    data = lines(record) if kind == "jsonl" else json.dumps({"cases": [record]})
    found = {p.key.removeprefix("cases[0]."): p.message for p in dataset(tmp_path, kind, data).unknown_keys()}
    assert {key: message.rpartition("; ")[2] for key, message in found.items()} == {
        "expcted": 'did you mean "expected"?',
        "expected.fact": 'did you mean "facts"?',
    }


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


@pytest.mark.parametrize("kind", ["yaml", "jsonl", "cases"])
def test_a_case_of_a_newer_version_is_a_mistake(tmp_path: Path, kind: str) -> None:
    record = {"id": "a", "input": {}, "schema_version": "2.0"}
    (tmp_path / "data").write_text(lines(record) if kind != "yaml" else json.dumps({"cases": [record]}))
    (problem,) = refusal(lambda: list(load("datasets", kind)(tmp_path / "data", "suite", {}))).problems
    assert (problem.key.endswith("schema_version"), "1.x" in problem.message, "2.0" in problem.message) == (True,) * 3


@pytest.mark.parametrize("recorded", [{"schema_version": "2.0"}, [{"schema_version": 2}]])
def test_a_recorded_trace_of_a_newer_version_is_a_mistake(tmp_path: Path, recorded: object) -> None:
    (tmp_path / "data").write_text(lines({"id": "a", "input": {}, "embedded_trace": recorded}))
    reading = load("datasets", "jsonl")(tmp_path / "data", "suite", {"embed_full_trace": True})
    (problem,) = refusal(lambda: list(reading)).problems
    assert re.fullmatch(r"embedded_trace.*schema_version", problem.key)


SUITE = """
eval: {name: t}
dataset: {type: jsonl, path: cases.jsonl}
systems: [{name: s, adapter: replay}]
evaluators: [%s]
output: {type: local_files, path: runs}
"""
EXPECTS = {"answer_should_include": ["x"], "must_call_tools": ["t"]}


@pytest.mark.parametrize(
    ("evaluators", "unread"),
    [
        ("{name: a, type: contains_text}", ["must_call_tools"]),
        ("{name: a, type: contains_text, config: {all_of: [y]}}", ["answer_should_include", "must_call_tools"]),
        ("{name: a, type: tool_called}, {name: b, type: contains_text}", []),
        ("{name: a, type: latency_under, config: {max_ms: 5}}", ["answer_should_include", "must_call_tools"]),
        (
            "{name: a, type: tool_called}, {name: b, type: exact_match, config: {field: a, expected_from: n}}",
            [],
        ),
    ],
)
def test_what_is_expected_and_read_by_no_evaluator_is_told(tmp_path: Path, evaluators: str, unread: list[str]) -> None:
    (tmp_path / "cases.jsonl").write_text(
        lines({"id": "a", "input": {}}, {"id": "b", "input": {}, "expected": EXPECTS})
    )
    (tmp_path / "eval.yaml").write_text(SUITE % evaluators)
    told = list(load_suite(tmp_path / "eval.yaml").cases.unknown_keys())  # type: ignore[union-attr]
    assert sorted(problem.key for problem in told) == [f"expected.{key}" for key in unread]
    assert all(problem.line == 2 for problem in told)


def test_keys_of_the_dataset_and_its_neighbours_that_nothing_reads_are_told(tmp_path: Path) -> None:
    (tmp_path / "cases.jsonl").write_text(lines({"id": "a", "input": {}}))
    text = (SUITE % "{name: a, type: contains_text}").replace("cases.jsonl}", "cases.jsonl, fliter: {tags: x}}")
    (tmp_path / "eval.yaml").write_text(text.replace("path: runs}", "path: runs, pth: x}"))
    told = {warning.key: warning.message for warning in load_suite(tmp_path / "eval.yaml").warnings}
    assert told.keys() == {"dataset.fliter", "output[0].pth"}
    assert 'did you mean "filter"?' in told["dataset.fliter"]


@pytest.mark.parametrize(
    ("evaluators", "idle"),
    [
        ("{name: a, type: contains_text}, {name: b, type: tool_called}", ["b"]),
        ("{name: b, type: tool_called, config: {tool_name: find}}", []),
        ("{name: b, type: contains_text, config: {none_of: [y]}}", []),
        ("{name: b, type: contains_text, config: {all_of: [], any_of: [y]}}", []),
        ("{name: b, type: contains_text, config: {all_of: [], none_of: null}}", ["b"]),
    ],
)
def test_an_evaluator_for_which_no_case_expects_anything_is_told(
    tmp_path: Path, evaluators: str, idle: list[str]
) -> None:
    expected = {"answer_should_include": ["x"], "must_call_tools": []}
    (tmp_path / "cases.jsonl").write_text(
        lines({"id": "a", "input": {}}, {"id": "b", "input": {}, "expected": expected})
    )
    (tmp_path / "eval.yaml").write_text(SUITE % evaluators)
    told = list(load_suite(tmp_path / "eval.yaml").cases.unknown_keys())  # type: ignore[union-attr]
    assert [name for problem in told for name in idle if repr(name) in problem.message] == idle
    assert sum("passes whatever" in problem.message for problem in told) == len(idle)
