"""A child that a system or an evaluator forks does not become a second run.

All that a child may do is done in one run, by a system or an evaluator each: a run costs as much as all of its cells.
"""

import json
import subprocess
import sys

import pytest

KINDS = ("def", "async def")
FORKS = """
import os, sys

def forked():
    child = os.fork()
    if not child:
        return None
    _, status = os.waitpid(child, 0)
    return os.waitstatus_to_exitcode(status)

def fine(case, variant):
    return {"final_answer": "fine"}
"""
ANSWERS = """
{kind} {name}(case, variant):
    status = forked()
    if status is None:
        {end}
    return {{"final_answer": f"the child ended with {{status}}"}}
"""
CHECKS = """
{kind} {name}(output):
    status = forked()
    if status is None:
        {end}
    return status == {status}
"""
SYSTEM_ENDS = [
    ("return {'final_answer': 'x'}", 0), ("sys.exit()", 0), ("sys.exit(3)", 3), ("sys.exit('no')", 1), ("1 / 0", 1)
]  # fmt: skip
EVALUATOR_ENDS = [("return True", 0), ("sys.exit(3)", 3), ("raise TimeoutError", 1), ("1 / 0", 1)]
SAYS = {"name": "says", "type": "contains_text", "config": {"all_of": ["the child ended"]}}


def system(name):
    return {"name": name, "adapter": "python_function", "target": f"agent:{name}", "timeout_seconds": 20}


def records(folder, name):
    (file,) = folder.glob(f"runs/*/{name}.jsonl")
    return [json.loads(line) for line in file.read_text().splitlines()]


def evalwright(folder, *arguments):
    command = [sys.executable, "-m", "evalwright", *arguments, "-q"]
    subprocess.run(command, cwd=folder, check=False, capture_output=True, timeout=60)


def ran(folder, template, ends, systems, evaluators):
    """Run two cases; returns by name how the child of each function ends."""
    made = {f"f{n}": (kind, end, status) for n, (kind, (end, status)) in enumerate((k, e) for k in KINDS for e in ends)}
    functions = [
        template.format(name=name, kind=kind, end=end, status=status) for name, (kind, end, status) in made.items()
    ]
    (folder / "agent.py").write_text(FORKS + "".join(functions))
    suite = {
        "eval": {"name": "t"},
        "dataset": {"type": "yaml", "path": "cases.yaml"},
        "systems": systems(made),
        "evaluators": evaluators(made),
        "output": {"type": "local_files", "path": "runs"},
    }
    (folder / "eval.yaml").write_text(json.dumps(suite))
    (folder / "cases.yaml").write_text("cases: [{id: a, input: {q: 1}}, {id: b, input: {q: 2}}]")
    evalwright(folder, "run", "eval.yaml")
    return made


def test_a_forked_child_ends_where_it_would_go_on_with_the_run(tmp_path):
    made = ran(tmp_path, ANSWERS, SYSTEM_ENDS, lambda names: [*map(system, names)], lambda _: [SAYS])
    said = sorted((record["variant_name"], record["output"]["final_answer"]) for record in records(tmp_path, "traces"))
    assert said == sorted((name, f"the child ended with {status}") for name, (*_, status) in made.items() for _ in "ab")
    assert len(records(tmp_path, "verdicts")) == 2 * len(made)


@pytest.mark.slow("a run in an interpreter of its own")
def test_a_child_that_an_evaluator_forks_records_nothing(tmp_path):
    def evaluators(names):
        return [{"name": name, "type": "python_function", "config": {"function": f"agent:{name}"}} for name in names]

    made = ran(tmp_path, CHECKS, EVALUATOR_ENDS, lambda _: [system("fine")], evaluators)
    passed = sorted((name, True) for name in made for _ in "ab")
    assert sorted((record["evaluator"], record["passed"]) for record in records(tmp_path, "results")) == passed
    (run,) = tmp_path.glob("runs/*")
    evalwright(tmp_path, "re-evaluate", str(run))
    assert sorted((record["evaluator"], record["passed"]) for record in records(tmp_path, "results")) == passed
    assert len(records(tmp_path, "verdicts")) == 2
