"""The pre-made evaluators by their names in every format."""

import asyncio
import json
import os
from pathlib import Path

import pytest

from evalwright import registry
from evalwright.errors import EvaluatorError, InputError
from evalwright.evaluators.build import build_evaluator
from evalwright.formats.loading import load_suite
from evalwright.llm.models import LiveModels
from evalwright.model.result import EvaluationResult
from evalwright.model.snapshot import Case, Expected
from evalwright.model.trace import TraceError
from evalwright.run.start import run_suite
from evalwright.run.stored_run import open_run
from evalwright.session import Session
from evalwright.testing import a_trace
from llm.models import openai
from targets.loopback import serving

AGENT = "def answer(case, variant):\n    return {'final_answer': 'cat'}\n\ndef said(message, ctx):\n    return 'cat'\n"
NATIVE = """\
eval: {name: suite}
dataset: {type: yaml, path: cases.yaml}
systems: [{name: s, adapter: python_function, target: "animals:answer"}]
evaluators: [{name: near, type: LevenshteinMatch}]
output: {type: local_files, path: runs}
"""
CASES = "cases:\n- {id: a, input: {}, expected: {facts: {ground_truth: cut}}}\n"
LETTA = """\
name: suite
dataset: data.jsonl
target: {kind: letta_agent, agent_id: a}
graders: {near: {kind: tool, function: LevenshteinMatch}}
gate: {kind: simple, metric_key: near, op: gte, value: 0.5}
"""
DATA = '{"input": "q", "ground_truth": "cut"}\n'
AGENTV = """\
name: suite
evalcases:
  - id: a
    expected_outcome: names the animal
    input: which animal?
    expected_output: cut
    execution: {evaluators: [{name: near, type: LevenshteinMatch}]}
"""
NORTHSTAR = {
    "id": "a",
    "messages": [{"role": "user", "content": "which?"}, {"role": "assistant", "content": "cat"}],
    "expected": {"ground_truth": "cut"},
}
NORTHSTAR_GRADERS = '{"graders": [{"name": "near", "type": "LevenshteinMatch"}]}'
PIXIE = {
    "runnable": "app.py:run",
    "evaluators": ["LevenshteinMatch"],
    "entries": [
        {
            "description": "d",
            "entry_kwargs": {},
            "eval_input": [{"name": "q", "value": "which?"}],
            "expectation": "cut",
        }
    ],
}
FORMATS = {
    "evalh": ({"eval.yaml": NATIVE, "cases.yaml": CASES}, {}),
    "letta": ({"suite.yaml": LETTA, "data.jsonl": DATA}, {"target": "animals.py:said"}),
    "agentv": ({"EVAL.yaml": AGENTV, "targets.yaml": "targets: [{name: default, provider: mock, response: cat}]"}, {}),
    "northstar": (
        {"d.json": json.dumps([NORTHSTAR]), "config.json": NORTHSTAR_GRADERS},
        {"graders": Path("config.json")},
    ),
    "pixie": ({"d.json": json.dumps(PIXIE), "app.py": "def run(kwargs):\n    return 'cat'\n"}, {}),
}  # fmt: skip


@pytest.mark.parametrize("dialect", FORMATS)
def test_every_format_knows_them_by_name(dialect, tmp_path, monkeypatch):
    files, options = FORMATS[dialect]
    monkeypatch.chdir(tmp_path)
    (tmp_path / ".git").mkdir()
    (tmp_path / "animals.py").write_text(AGENT)
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    suite = load_suite(tmp_path / next(iter(files)), dialect, options=options)
    suite.out = tmp_path / "runs"
    reader, _ = open_run(run_suite(suite).run_dir)
    (row,) = [row for row in reader.results(EvaluationResult) if row.evaluator_type == "LevenshteinMatch"]
    assert (row.error, row.score) == (None, pytest.approx(2 / 3))


@pytest.mark.parametrize("name", registry.PREMADE)
def test_a_misspelt_setting_is_refused(name):
    with pytest.raises(InputError, match="unknown key 'modle'"):
        build_evaluator(name, {"modle": "m"})


def judged(name, config, case, answer="cat", replies=(), error=None):
    """What an evaluator says, and what it asked the service on loopback."""
    trace = a_trace(output={"final_answer": answer}, error=error)

    async def ask():
        async with serving(*replies) as server:
            environment = {**os.environ, "OPENAI_BASE_URL": f"http://127.0.0.1:{server.port}/v1"}
            with Session(models=lambda: LiveModels(environment=environment)) as session:
                try:
                    return await build_evaluator(name, config).evaluate(case, trace), server
                finally:
                    await session.aclose()

    return asyncio.run(ask())


def test_a_schema_that_is_none_is_refused_before_anything_runs():
    with pytest.raises(InputError) as caught:
        build_evaluator("ValidJSON", {"schema": {"type": "objct"}})
    assert [problem.key for problem in caught.value.problems] == ["schema.type"]


def test_judges_ask_the_model_that_is_configured_and_see_the_criteria_of_the_case():
    case = Case("a", "which?", metadata={"criteria": "is an animal"})
    evaluation, server = judged("ClosedQA", {"model": "m"}, case, replies=[openai('{"reasons": "so", "choice": "Y"}')])
    body = json.loads(server.requests[0]["body"])
    assert (evaluation.passed, evaluation.reason, body["model"]) == (True, "so", "m")
    assert "is an animal" in json.dumps(body["messages"])


def test_settings_reach_the_scorer():
    case = Case("a", "q", expected=Expected(facts={"ground_truth": ["a"]}))
    evaluation, _ = judged("ValidJSON", {"schema": {"type": "number"}}, case, answer="12")
    assert evaluation.score == 1.0


def test_an_absent_answer_fails_and_a_failed_system_is_not_judged():
    evaluation, _ = judged("ExactMatch", {}, Case("a", "q"), answer=None)
    assert (evaluation.passed, evaluation.reason) == (False, "output.final_answer is absent")
    with pytest.raises(EvaluatorError, match="had an error: down"):
        judged("ExactMatch", {}, Case("a", "q"), error=TraceError("http_5xx", "down"))
