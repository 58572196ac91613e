"""A child that a system forks does not become a second run."""

import json
import subprocess
import sys

import pytest

AGENT = """
import os, sys

def forked():
    child = os.fork()
    if not child:
        return None
    _, status = os.waitpid(child, 0)
    return f"the child ended with {{os.waitstatus_to_exitcode(status)}}"

{kind} answer(case, variant):
    said = forked()
    if said is None:
        {end}
    return {{"final_answer": said}}
"""
SUITE = """
eval: {name: t}
dataset: {type: yaml, path: cases.yaml}
systems: [{name: s, adapter: python_function, target: "agent:answer", timeout_seconds: 20}]
evaluators: [{name: says, type: contains_text, config: {all_of: [the child ended]}}]
output: {type: local_files, path: runs}
"""


FORKING = "type: python_function, config: {function: 'agent:forks'}"
CHECKS = """
import os, sys

def answer(case, variant):
    return {{"final_answer": "fine"}}

{kind} forks(output):
    child = os.fork()
    if child == 0:
        {end}
    _, status = os.waitpid(child, 0)
    return os.waitstatus_to_exitcode(status) == {status}
"""


def records(folder, name):
    (file,) = folder.glob(f"runs/*/{name}.jsonl")
    return [json.loads(line) for line in file.read_text().splitlines()]


def evalwright(folder, *arguments):
    command = [sys.executable, "-m", "evalwright", *arguments, "-q"]
    subprocess.run(command, cwd=folder, check=False, capture_output=True, timeout=60)


@pytest.mark.parametrize("kind", ["def", "async def"])
@pytest.mark.parametrize(
    ("end", "status"),
    [("return {'final_answer': 'x'}", 0), ("sys.exit()", 0), ("sys.exit(3)", 3), ("sys.exit('no')", 1), ("1 / 0", 1)],
)
def test_a_forked_child_ends_where_it_would_go_on_with_the_run(tmp_path, kind, end, status):
    (tmp_path / "agent.py").write_text(AGENT.format(kind=kind, end=end))
    (tmp_path / "cases.yaml").write_text("cases: [{id: a, input: {q: 1}}, {id: b, input: {q: 2}}]")
    (tmp_path / "eval.yaml").write_text(SUITE)
    evalwright(tmp_path, "run", "eval.yaml")
    said = [trace["output"]["final_answer"] for trace in records(tmp_path, "traces")]
    assert said == [f"the child ended with {status}"] * 2
    assert len(records(tmp_path, "verdicts")) == 2


@pytest.mark.parametrize("kind", ["def", "async def"])
@pytest.mark.parametrize(
    ("end", "status"), [("return True", 0), ("sys.exit(3)", 3), ("raise TimeoutError", 1), ("1 / 0", 1)]
)
def test_a_child_that_an_evaluator_forks_records_nothing(tmp_path, kind, end, status):
    (tmp_path / "agent.py").write_text(CHECKS.format(kind=kind, end=end, status=status))
    (tmp_path / "cases.yaml").write_text("cases: [{id: a, input: {q: 1}}, {id: b, input: {q: 2}}]")
    suite = SUITE.replace("type: contains_text, config: {all_of: [the child ended]}", FORKING)
    (tmp_path / "eval.yaml").write_text(suite)
    evalwright(tmp_path, "run", "eval.yaml")
    assert [result["passed"] for result in records(tmp_path, "results")] == [True, True]
    (run,) = tmp_path.glob("runs/*")
    evalwright(tmp_path, "re-evaluate", str(run))
    assert [result["passed"] for result in records(tmp_path, "results")] == [True, True]
    assert len(records(tmp_path, "verdicts")) == 2
