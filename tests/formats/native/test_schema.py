"""The JSON Schemas accept what `validate` accepts, and refuse what it calls wrong by keys or types."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from yaml import safe_load

from evalwright.cli.schema import schemas, text_of
from evalwright.errors import InputError
from evalwright.files import yaml
from evalwright.formats.loading import load_suite
from evalwright.formats.native.prices import read_prices
from evalwright.importers.labels import read_labels
from formats.mutations import as_json, mutated

ROOT = Path(__file__).parents[3]
FENCE = re.compile(r"^```(\w*)([^\n]*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
DRAFT_7_ONLY = ("$defs", "unevaluatedProperties", "prefixItems", "dependentRequired", "minContains")

FULL = """
schema_version: "1.0"
eval: {name: shop, description: text, owner: me, tags: [a, b]}
metadata: {team: x}
dataset: {type: yaml, path: cases.yaml, filter: {tags: [a]}, sample: 2, seed: 7}
systems:
  - name: one
    adapter: http
    endpoint: http://127.0.0.1:9/ask
    timeout_seconds: 30
    concurrency: 2
    trials: 2
    metadata: {a: 1}
    isolation: none
  - {name: two, adapter: python_function, target: "agent:answer"}
evaluators:
  - name: says
    type: contains_text
    config: {all_of: [a], none_of: [b]}
  - {name: tools, type: tool_called, config: {tool_name: refund}}
  - {name: quick, type: latency_under, config: {max_ms: 500}, threshold: 0.5, threshold_op: gte}
  - {name: last, type: contains_text, extractor: {type: last_turn, config: {}}}
pass_criteria: {all_required: [says], any_required: [], errored_cases: error}
trace: {capture: []}
run:
  max_concurrency: 4
  baseline_variant: one
  cost_limit_usd: 1.5
  trials: 2
  evaluator_timeout_seconds: 5
  retry: {max_attempts: 2, "on": [timeout], backoff_seconds: 0.5}
output:
  - {type: local_files, path: runs}
"""
CASES = "cases:\n  - {id: a, input: {q: 1}, tags: [a]}\n  - {id: b, input: {q: 1}, tags: [a]}\n"


def checker(name: str) -> jsonschema.Draft7Validator:
    return jsonschema.Draft7Validator(json.loads(text_of(name)))


@pytest.fixture(scope="module")
def suite_schema() -> jsonschema.Draft7Validator:
    return checker("eval")


def without_texts(value: Any) -> Any:
    """Versions of pydantic name things in other ways."""
    if isinstance(value, dict):
        return {key: without_texts(one) for key, one in value.items() if not (key == "title" and isinstance(one, str))}
    return [without_texts(one) for one in value] if isinstance(value, list) else value


@pytest.mark.parametrize("name", schemas())
def test_the_files_in_the_repository_are_current_and_of_draft_7(name: str) -> None:
    text = text_of(name)
    stored = (ROOT / "schemas" / f"evalwright-{name}-1.json").read_text()
    current = f"evalwright schema {name} --out schemas/evalwright-{name}-1.json"
    assert without_texts(json.loads(stored)) == without_texts(json.loads(text)), current
    jsonschema.Draft7Validator.check_schema(json.loads(text))
    assert json.loads(text)["$id"].endswith(f"evalwright-{name}-1.json")
    assert not any(f'"{word}":' in text for word in DRAFT_7_ONLY)


def suites() -> Iterator[tuple[str, str]]:
    for folder in ("examples", "src/evalwright/demo", "src/evalwright/cli/starter"):
        for path in sorted((ROOT / folder).rglob("*.yaml")):
            yield path.name, path.read_text()
    for page in sorted((ROOT / "docs").glob("*.md")):
        for language, words, text in FENCE.findall(page.read_text()):
            if language == "yaml" and "file=" in words and not re.search("input: three|name: wrong", text):
                yield page.name, text


def test_every_example_passes(suite_schema: jsonschema.Draft7Validator, tmp_path: Path) -> None:
    cases = checker("cases")
    seen = {"eval": 0, "cases": 0}
    for where, text in suites():
        path = tmp_path / "file.yaml"
        path.write_text(text)
        value = yaml.load(path).value
        if not isinstance(value, dict) or value.get("evaluators", "") is None:  # which a later block goes on with
            continue
        kind = "eval" if {"eval", "systems", "evaluators"} <= value.keys() else "cases"
        if kind == "cases" and not (
            value.keys() <= {"cases", "schema_version"} and isinstance(value.get("cases"), list)
        ):
            continue
        seen[kind] += 1
        listed = [error.message for error in (suite_schema if kind == "eval" else cases).iter_errors(as_json(value))]
        assert listed == [], f"{where}: {text[:200]}"
    assert seen["eval"] > 15
    assert seen["cases"] > 8


BY_KEYS_OR_TYPES = re.compile(
    r"unknown key|should be|expected a|expected an|is missing|must be|empty list|must not|needs |should have"
)


@pytest.mark.slow("reads two hundred files")
def test_what_is_wrong_by_keys_or_types_is_refused_and_nothing_else(
    suite_schema: jsonschema.Draft7Validator, tmp_path: Path
) -> None:
    path = tmp_path / "eval.yaml"
    path.write_text(FULL)
    (tmp_path / "cases.yaml").write_text(CASES)
    document = yaml.load(path).value
    assert [error.message for error in suite_schema.iter_errors(document)] == []
    load_suite(path, to_run=False)
    wrong, missed, too_strict = 0, [], []
    for name, changed in islice(mutated(document), 0, None, 5):
        path.write_text(json.dumps(changed))
        accepted = suite_schema.is_valid(changed)
        try:
            load_suite(path, to_run=False)
        except InputError as error:
            if all(BY_KEYS_OR_TYPES.search(problem.message) for problem in error.problems):
                wrong += 1
                if accepted:
                    missed.append(f"{name}: {error.problems[0].message}")
        else:
            if not accepted:
                too_strict.append(name)
    assert too_strict == []
    assert wrong > 60
    assert len(missed) <= wrong // 10, missed


@pytest.mark.parametrize(
    ("change", "refused"),
    [
        ({"evaluator": []}, True),
        ({"run": {"max_concurency": 4}}, True),
        ({"run": {"max_concurrency": "${N:-4}"}}, False),
        ({"run": {"max_concurrency": "many"}}, True),
        ({"evaluators": [{"name": "a", "type": "contains_text", "config": {"al_of": ["x"]}}]}, True),
        ({"evaluators": [{"name": "a", "type": "from_a_plug_in", "config": {"any": 1}}]}, False),
        ({"evaluators": [{"name": "a", "type": "latency_under"}]}, True),
        ({"systems": [{"name": "a", "adapter": "http", "endpoit": "http://x"}]}, True),
        ({"systems": [{"name": "a", "adapter": "of_a_plug_in", "anything": 1}]}, False),
        ({"output": {"type": "local_files", "path": "runs"}}, False),
        ({"output": []}, True),
        ({"dataset": {"type": "yaml", "path": "x", "embed_full_trace": "${FULL}"}}, False),
        ({"dataset": {"path": "cases.yaml"}}, True),
        ({"dataset": {"path": "a/b.CSV.gz"}}, False),
        ({"dataset": {"path": ["a.ndjson", "b"]}}, False),
        ({"dataset": {"path": "${CASES}"}}, False),
        ({"dataset": {"type": "yaml", "path": ["a.yaml"]}}, True),
        ({"output": {"type": "local_files"}}, True),
        ({"output": [{"type": "local_files", "path": "runs"}, {"type": "sqlite"}]}, False),
        ({"systems": [{"name": "a", "adapter": "http", "matrix": {"model": "x"}}]}, True),
        ({"gate": True}, True),
        ({"gate": {"op": "gte", "value": 0.9, "agregation": "min"}}, True),
        ({"gate": {"op": "above", "value": 0.9}}, True),
        ({"gate": {"op": "${OP}", "value": "${LEAST}"}}, False),
        ({"gate": [{"op": "gte", "value": 0.9}, {"at_least": 0.9, "alpha": 0.05}]}, False),
    ],
)
def test_keys_and_types(suite_schema: jsonschema.Draft7Validator, change: dict[str, Any], refused: bool) -> None:
    assert suite_schema.is_valid({**safe_load(FULL), **change}) is not refused


def test_a_schema_of_labels_accepts_what_their_reader_does(tmp_path: Path) -> None:
    label, path = checker("label"), tmp_path / "labels.jsonl"
    right = {"case_id": "a", "evaluator": "says", "verdict": "pass"}
    rows: list[dict[str, Any]] = [
        right, {**right, "verdict": "NO"}, {**right, "verdict": True}, {**right, "verdict": 0}, {**right, "trial": "2"},
        {"Case Id": "a", "evaluator": "says", "human score": 0.5}, {"id": "a", "evaluator": "says", "score": "1e-1"},
        {**right, "verdict": "unsure", "labelled_at": "x"}, {"case": "a", "evaluator": "b", "labelled_at": "x"},
        {**right, "verdict": "", "labelled_at": "x"}, {**right, "note": "mine"}, {**right, "score": None},
    ]  # fmt: skip
    wrong: list[dict[str, Any]] = [
        {**right, "verdict": "maybe"}, {**right, "verdict": 2}, {**right, "case_id": 3}, {**right, "score": "high"},
        {**right, "trial": -1}, {"case_id": "a", "verdict": "pass"}, {"case_id": "a", "evaluator": "says"},
    ]  # fmt: skip
    for row in [*rows, *wrong]:
        path.write_text(json.dumps(row) + "\n")
        assert bool(read_labels(path)[1]) is (row in wrong), row
        assert label.is_valid(row) is (row in rows), row


def test_a_schema_of_prices_accepts_what_their_reader_does(tmp_path: Path) -> None:
    prices, path = checker("prices"), tmp_path / "prices.yaml"
    model = {"input_per_million_tokens": 1.5, "output_per_million_tokens": "2"}
    table: dict[str, Any] = {"table_version": "1", "freshness_date": "2026-11-22", "models": {"m": model}}
    right = [table, {**table, "models": {}}, {**table, "models": {"m": {**model, "thinking_per_million_tokens": 3}}}]
    wrong = [
        {**table, "table_version": 1}, {**table, "mine": 1}, {"models": {}}, {**table, "models": {"m": {}}},
        {**table, "models": {"m": {**model, "input_per_million_tokens": -1}}},
        {**table, "models": {"m": {**model, "x": 1}}},
    ]  # fmt: skip
    for value in [*right, *wrong]:
        path.write_text(json.dumps(value))
        try:
            read_prices(path)
            read = True
        except InputError:
            read = False
        assert (read, prices.is_valid(value)) == (value in right, value in right), value


def test_cases_are_checked_too() -> None:
    case = checker("case")
    assert case.is_valid({"id": "a", "input": {"q": 1}, "expected": None, "mine": 1})
    for wrong in ({"input": {}}, {"id": " ", "input": {}}, {"id": 3, "input": {}}, {"id": "a", "input": "q"}):
        assert not case.is_valid(wrong), wrong
    assert not checker("cases").is_valid([{"id": "a", "input": {}}])
