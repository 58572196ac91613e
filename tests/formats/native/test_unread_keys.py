"""What a dataset says and nothing reads, and evaluators for which it says nothing."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from evalwright.formats.loading import load_suite
from formats.native.dataset_files import dataset, lines
from formats.suites import TRACE


@pytest.mark.parametrize("kind", ["yaml", "jsonl"])
def test_keys_that_nothing_reads_are_named_with_their_nearest(tmp_path: Path, kind: str) -> None:
    record = {"id": "a", "input": {}, "expcted": {}, "expected": {"fact": {}}}
    data = lines(record) if kind == "jsonl" else json.dumps({"cases": [record]})
    by_name = {p.key.removeprefix("cases[0]."): p.message for p in dataset(tmp_path, kind, data).unknown_keys()}
    assert {key: message.rpartition("; ")[2] for key, message in by_name.items()} == {
        "expcted": 'did you mean "expected"?',
        "expected.fact": 'did you mean "facts"?',
    }


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


def test_telling_what_no_evaluator_reads_does_not_double_the_start_of_a_run(tmp_path: Path) -> None:
    """As importing pydantic would, which sound files are read without."""
    (tmp_path / "cases.jsonl").write_text(lines(*[{"id": one, "input": {}, "expected": EXPECTS} for one in "ab"]))
    (tmp_path / "eval.yaml").write_text(SUITE % "{name: a, type: contains_text}")
    script = (
        "import sys; from pathlib import Path; from evalwright.formats.loading import load_suite\n"
        "dataset = load_suite(Path('eval.yaml')).cases; list(dataset)\n"
        "print(*dataset.unknown_keys(), 'pydantic' in sys.modules, sep='\\n')"
    )
    done = subprocess.run([sys.executable, "-c", script], cwd=tmp_path, capture_output=True, text=True, check=True)
    unread = "  expected.must_call_tools  no evaluator of this suite reads this key (and in 1 more place)"
    assert done.stdout == f"cases.jsonl:1{unread}\nFalse\n"


@pytest.mark.parametrize(("kind", "more"), [("jsonl", {}), ("jsonl", {"embedded_trace": TRACE}), ("yaml", {})])
def test_a_part_that_nothing_reads_is_told_once_for_all_cases(tmp_path: Path, kind: str, more: dict[str, Any]) -> None:
    records = [{"id": one, "input": {}, "expected": EXPECTS, **more} for one in "abcde"]
    data = lines(*records) if kind == "jsonl" else json.dumps({"cases": records})
    found = dataset(tmp_path, kind, data, read_of_expected=["answer_should_include"])
    assert len(list(found)) == 5
    (told,) = found.unknown_keys()
    assert (told.line, told.key.removeprefix("cases[0]."), told.more) == (1, "expected.must_call_tools", 4)


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
        ("{name: b, type: tool_called, threshold: 0.5}", ["b"]),
        ("{name: b, type: composite, config: {evaluators: [{name: c, type: tool_called}]}}", ["b"]),
        (
            "{name: b, type: composite, config: {evaluators: "
            "[{name: c, type: tool_called}, {name: d, type: answered}]}}",
            [],
        ),
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
