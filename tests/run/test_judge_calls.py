"""What judges ask models, and what these reply, is kept with their results, whatever the suite's format."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from evalwright.formats.loading import load_suite
from evalwright.llm.choices import ModelChoices
from evalwright.llm.kept_calls import KEPT_BYTES
from evalwright.model.result import EvaluationResult
from evalwright.model.trace import Trace
from evalwright.reports.inspection import cell_lines
from evalwright.reports.text import Paint
from evalwright.run.options import RunOptions
from evalwright.run.start import run_suite
from evalwright.run.stored_run import open_run

JUDGES = """
import json, os
from evalwright.llm.failures import CallFailed
from evalwright.model.chat import ChatReply, Usage

def holds(request):
    said = {"score": 1.0, "assertions": [{"text": "x", "passed": True, "reason": os.environ["JUDGE_KEY"]}]}
    return ChatReply(json.dumps(said), "m", usage=Usage(10, 2))

def breaks(request):
    raise CallFailed("bad_request", "the judge is ill")

def long(request):
    return "é" * 300_000
"""


def results(file: Path) -> tuple[list[EvaluationResult], list[Trace]]:
    suite = load_suite(file)
    suite.out = file.parent / "runs"
    reader, _ = open_run(run_suite(suite, RunOptions(models=ModelChoices(no_cache=True))).run_dir)
    return list(reader.results(EvaluationResult)), list(reader.traces(Trace))


@pytest.fixture
def native(tmp_path, monkeypatch):
    def ran(*functions: str, **sections: object):
        (tmp_path / "cases.yaml").write_text("cases: [{id: a, input: {q: hello}}]")
        (tmp_path / "judges_here.py").write_text(JUDGES)
        (tmp_path / "agent.py").write_text("def answer(case):\n    return {'final_answer': 'hello'}\n")
        monkeypatch.setenv("JUDGE_KEY", "sesame-open-7")
        sys.modules.pop("judges_here", None)
        judges = [
            {
                "name": name,
                "type": "llm_judge",
                "config": {"model": f"python:judges_here:{name}", "nl_assertions": ["${JUDGE_KEY} is polite"]},
            }
            for name in functions
        ]
        whole = {
            "eval": {"name": "x"},
            "dataset": {"type": "yaml", "path": "cases.yaml"},
            "systems": [{"name": "agent", "adapter": "python_function", "target": "agent:answer"}],
            "evaluators": [*judges, {"name": "short", "type": "contains_text", "config": {"all_of": ["hello"]}}],
            "output": {"type": "local_files", "path": "runs"},
            **sections,
        }
        (tmp_path / "eval.yaml").write_text(json.dumps(whole))
        return results(tmp_path / "eval.yaml")

    yield ran
    sys.modules.pop("judges_here", None)


def test_calls_are_kept_in_full_masked_and_with_their_errors(native):
    (held, broke, long, short), (trace,) = native("holds", "breaks", "long")
    [call] = held.detail["judge_calls"]
    assert [message["role"] for message in call["messages"]] == ["system", "user"]
    assert "hello" in call["messages"][1]["content"]
    assert "is polite" in call["messages"][0]["content"]
    assert '"passed": true' in call["reply"]
    assert call["usage"] == {"token_input": 10, "token_output": 2}
    assert (call["error"], call["cached"], call["model"]) == (None, False, "python:judges_here:holds")
    assert "sesame" not in json.dumps(held.detail)
    assert "the judge is ill" in broke.detail["judge_calls"][0]["error"]["message"]
    reply = long.detail["judge_calls"][0]["reply"]
    assert reply.endswith("… [cut: 600,000 bytes in full]")
    assert len(reply.encode()) < KEPT_BYTES + 100
    assert "judge_calls" not in short.detail
    shown = "\n".join(cell_lines(trace, [held], "pass", Paint(False), None))
    assert "is polite" in shown
    assert "call 1" in shown
    assert '"passed": true' in shown


def test_a_suite_may_keep_no_calls(native):
    (held, _), _ = native("holds", judges={"keep_calls": False})
    assert held.detail["judge_prompt_hash"]
    assert "judge_calls" not in held.detail


def test_programs_that_judge_in_place_of_models_are_kept_as_well(tmp_path):
    (tmp_path / ".git").mkdir()
    said = json.dumps({"score": 1.0, "hits": ["fine"], "misses": [], "reasoning": "good"})
    mock = {"name": "judge", "provider": "mock", "response": said}
    targets = [{"name": "default", "provider": "mock", "response": "hello", "judge_target": "judge"}, mock]
    (tmp_path / "targets.yaml").write_text(json.dumps({"targets": targets}))
    judge = {"name": "first", "type": "llm_judge"}
    case = {"id": "a", "expected_outcome": "x", "input": "hello", "execution": {"evaluators": [judge]}}
    (tmp_path / "EVAL.yaml").write_text(json.dumps({"name": "suite", "evalcases": [case]}))
    [call] = results(tmp_path / "EVAL.yaml")[0][0].detail["judge_calls"]
    assert (call["model"], call["reply"]) == ("judge", said)
    assert "hello" in call["messages"][-1]["content"]
