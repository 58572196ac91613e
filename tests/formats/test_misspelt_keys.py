"""A misspelt key that is only a warning is told beside the mistakes of its file: it is often the reason for them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from evalwright.formats.loading import load_suite
from formats.suites import CASES, SOUND, changed, refusal, write

AGENTV = """
nam: orders
execution: {targt: default, target: nowhere, threshold: 80}
evalcases:
  - {id: a, critera: polite, input: Hello}
  - {id: b, criteria: polite, inpt: Hello}
"""
PROMPTFOO = """
descripton: orders
prompts: [Say hello]
providers: [ecko]
tests: [{vras: {a: 1}, assert: [{type: contains, value: a}]}]
"""
LETTA = """
name: orders
dataset: data.jsonl
target: {kind: letta_agent, agent_file: a.af, agnt: a}
graders: {q: {kind: tool, function: contains, extractor: last_assistant, extractr: a}}
gates: {metric_key: q}
"""


def told(folder: Path, name: str, text: str) -> dict[str, int | None]:
    (folder / name).write_text(text)
    return {problem.key: problem.line for problem in refusal(lambda: load_suite(folder / name)).problems}


def test_agentv_tells_mistakes_of_all_parts_of_a_file_with_unknown_keys(tmp_path: Path) -> None:
    (tmp_path / "targets.yaml").write_text("targets: [{name: default, provider: mock, response: Hello}]")
    assert told(tmp_path, "EVAL.yaml", AGENTV) == {
        "nam": 2,
        "execution.targt": 3,
        "execution.target": 3,
        "execution.threshold": 3,
        "evalcases[0].expected_outcome": 5,
        "evalcases[0].critera": 5,
        "evalcases[1].input": 6,
        "evalcases[1].inpt": 6,
    }


def test_a_key_that_isolates_is_told_once(tmp_path: Path) -> None:
    (tmp_path / "targets.yaml").write_text("targets: [{name: default, provider: mock, response: Hello}]")
    text = "sandbox: x\nevalcases: [{id: a, criteria: polite, input: Hello}]"
    (tmp_path / "EVAL.yaml").write_text(text)
    assert [problem.key for problem in refusal(lambda: load_suite(tmp_path / "EVAL.yaml")).problems] == ["sandbox"]


def test_promptfoo_tells_unknown_keys_with_mistakes(tmp_path: Path) -> None:
    listed = told(tmp_path, "promptfooconfig.yaml", PROMPTFOO)
    assert listed == {"descripton": 2, "providers[0]": 4, "tests[0].vras": 5}


def test_letta_tells_unknown_keys_with_mistakes(tmp_path: Path) -> None:
    (tmp_path / "data.jsonl").write_text('{"input": "a", "ground_truth": "a"}\n')
    listed = told(tmp_path, "suite.yaml", LETTA)
    assert {"gate": 2, "gates": 6, "target.agnt": 4, "graders.q.extractr": 5}.items() <= listed.items()


def test_pixie_tells_unknown_keys_with_mistakes(tmp_path: Path) -> None:
    (tmp_path / "app.py").write_text("def App(text):\n    return text\n")
    entry = {"descripton": "a", "entry_kwargs": {}, "eval_input": [{"name": "p", "value": 1}], "expectaton": "b"}
    dataset = {"runnable": "app.py:App", "evaluators": ["ExactMach"], "entries": [entry]}
    listed = told(tmp_path, "dataset.json", json.dumps(dataset))
    assert {"evaluators", "entries.0.expectaton"} <= listed.keys()


@pytest.mark.parametrize("kind", ["yaml", "jsonl"])
def test_a_dataset_tells_unknown_keys_with_mistakes(tmp_path: Path, kind: str) -> None:
    records = [{"id": "a", "input": {}, "expcted": {}}, {"id": "b", "expected": {"fact": {}}}, {"id": "a", "input": {}}]
    data = "\n".join(map(json.dumps, records)) if kind == "jsonl" else json.dumps({"cases": records})
    suite = changed("dataset", {"type": kind, "path": "cases.yaml"})
    problems = refusal(lambda: list(load_suite(write(tmp_path, suite, data)).cases)).problems
    keys = [problem.key.partition("].")[2] or problem.key for problem in problems]
    assert {"expcted", "input", "expected.fact"} <= {*keys}


def test_without_a_mistake_an_unknown_key_stays_a_warning(tmp_path: Path) -> None:
    suite = load_suite(write(tmp_path, SOUND, CASES.replace("input: {}", "input: {}, expcted: {}")))
    assert len(list(suite.cases)) == 1
