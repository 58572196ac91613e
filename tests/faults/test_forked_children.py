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


def records(folder, name):
    (file,) = folder.glob(f"runs/*/{name}.jsonl")
    return [json.loads(line) for line in file.read_text().splitlines()]


@pytest.mark.parametrize("kind", ["def", "async def"])
@pytest.mark.parametrize(
    ("end", "status"),
    [("return {'final_answer': 'x'}", 0), ("sys.exit()", 0), ("sys.exit(3)", 3), ("sys.exit('no')", 1), ("1 / 0", 1)],
)
def test_a_forked_child_ends_where_it_would_go_on_with_the_run(tmp_path, kind, end, status):
    (tmp_path / "agent.py").write_text(AGENT.format(kind=kind, end=end))
    (tmp_path / "cases.yaml").write_text("cases: [{id: a, input: {q: 1}}, {id: b, input: {q: 2}}]")
    (tmp_path / "eval.yaml").write_text(SUITE)
    command = [sys.executable, "-m", "evalwright", "run", "eval.yaml", "-q"]
    subprocess.run(command, cwd=tmp_path, check=False, capture_output=True, timeout=60)
    said = [trace["output"]["final_answer"] for trace in records(tmp_path, "traces")]
    assert said == [f"the child ended with {status}"] * 2
    assert len(records(tmp_path, "verdicts")) == 2
