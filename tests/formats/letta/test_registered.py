"""Graders and extractors under the names that their decorators register."""

from contextlib import closing

import pytest

from evalwright.errors import InputError
from evalwright.formats.loading import load_suite
from evalwright.model.result import EvaluationResult
from evalwright.run.start import run_suite
from evalwright.run.stored_run import open_run

CODE = """\
import letta_evals
from letta_evals.decorators import extractor, grader
from letta_evals.models import GradeResult

print("executed")


@grader(name="half of it")
def half(sample, submission):
    return GradeResult(score=0.5)


@letta_evals.grader
async def whole(sample, submission):
    return GradeResult(score=1.0 if submission == "It" else 0.0)


@extractor(name="first word")
def first(trajectory, config):
    return trajectory[0][0].content.split()[0]


def answers(message, ctx):
    return "It is Paris"
"""
SUITE = """\
name: support
dataset: data.jsonl
target: {kind: letta_agent, agent_id: agent-1}
graders:
  named: {kind: tool, function: half of it}
  plain: {kind: tool, function: whole, extractor: first word}
  file: {kind: tool, function: "code.py:half"}
gate: {kind: simple, metric_key: named, op: gte, value: 0.5}
"""


@pytest.fixture
def suite(folder):
    (folder / "data.jsonl").write_text('{"input": "capital of France?"}\n')
    (folder / "code.py").write_text(CODE)
    (folder / "suite.yaml").write_text(SUITE)
    return folder / "suite.yaml"


def test_a_grader_is_found_by_its_registered_name_or_else_its_own(suite):
    outcome = run_suite(load_suite(suite, options={"target": "code.py:answers"}))
    reader, _ = open_run(outcome.run_dir)
    with closing(reader):
        scores = {row.evaluator: row.score for row in reader.results(EvaluationResult)}
    assert scores == {"named": 0.5, "plain": 1.0, "file": 0.5}


def test_names_are_known_without_executing_the_file(suite, capsys):
    assert load_suite(suite, to_run=False).evaluators
    assert "executed" not in capsys.readouterr().out


def test_only_files_that_the_graders_name_register_any(suite):
    suite.write_text(SUITE.replace('"code.py:half"', "contains"))
    with pytest.raises(InputError, match="no function 'half of it'") as refused:
        load_suite(suite, to_run=False)
    assert "no extractor 'first word'" in str(refused.value)


def test_a_misspelt_name_is_told_the_registered_one(suite):
    suite.write_text(SUITE.replace("half of it", "half of ti"))
    with pytest.raises(InputError, match='did you mean "half of it"'):
        load_suite(suite, to_run=False)
