"""AgentEvals files in a folder of their own, run, and what became of their cases."""

import json
import sys
from shlex import quote

from evalwright.formats.loading import load_suite
from evalwright.model.result import CaseVerdict, EvaluationResult
from evalwright.run.start import run_suite
from evalwright.run.stored_run import open_run

EVAL = """\
name: shop
evalcases:
  - id: greets
    expected_outcome: Greets Alice
    input: Hello, I am Alice
    execution:
      evaluators:
        - {name: short, type: latency, threshold: 60000}
        - {name: named, type: field_accuracy, fields: [{path: name}]}
    expected_output: {name: Alice}
"""
TARGETS = """\
targets:
  - {name: default, provider: mock, response: '{"name": "Alice"}'}
  - {name: other, provider: mock, responses: [{pattern: Bob, response: hi Bob}], response: '{"name": "Bob"}'}
"""


def run(project, text=EVAL, name="EVAL.yaml", **options):
    (project / name).write_text(text)
    suite = load_suite(project / name, "agentv", options=options)
    suite.out = project / "runs"
    return run_suite(suite)


def results(outcome):
    reader, _ = open_run(outcome.run_dir)
    return {(row.case_id, row.evaluator): row for row in reader.results(EvaluationResult)}


def verdicts(outcome):
    reader, _ = open_run(outcome.run_dir)
    return {v.case_id: v for v in reader.verdicts(CaseVerdict)}


def case(evaluators, **more):
    listed = {"id": "a", "expected_outcome": "x", "input": "hi", "execution": {"evaluators": evaluators}, **more}
    return json.dumps({"evalcases": [listed]})


def agent(project, code):
    (project / "agent.py").write_text("import json, sys\n" + code)
    command = f"{quote(sys.executable)} agent.py {{EVAL_ID}} {{OUTPUT_FILE}} {{PROMPT}}"
    target = {"name": "default", "provider": "cli", "command_template": command, "timeout_seconds": 5}
    (project / "targets.yaml").write_text(json.dumps({"targets": [target]}))


def judged(project, replies, evaluator, **more):
    """A judge that gives its replies in turn."""
    code = (
        "import pathlib\n"
        "state = pathlib.Path('asked'); n = len(state.read_text()) if state.exists() else 0\n"
        f"replies = {replies!r}\nstate.write_text('x' * (n + 1))\n"
        "open(sys.argv[2], 'w').write(json.dumps({'text': replies[min(n, len(replies) - 1)]}))\n"
    )
    (project / "judge.py").write_text("import json, sys\n" + code)
    command = f"{quote(sys.executable)} judge.py {{EVAL_ID}} {{OUTPUT_FILE}} {{PROMPT}}"
    targets = [
        {"name": "default", "provider": "mock", "response": "an answer", "judge_target": "judge"},
        {"name": "judge", "provider": "cli", "command_template": command},
    ]
    (project / "targets.yaml").write_text(json.dumps({"targets": targets}))
    return run(project, case([evaluator] if evaluator else [], **more))


def with_block(**block):
    case = {"id": "a", "expected_outcome": "x", "input": [{"role": "user", "content": [block]}]}
    return json.dumps({"name": "suite", "evalcases": [case]})
