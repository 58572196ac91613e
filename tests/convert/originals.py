"""Small suites of every format that has one of its own, and what a run of a suite gives."""

import json

from evalwright.formats.loading import load_suite
from evalwright.model.result import CaseVerdict, EvaluationResult
from evalwright.run.start import run_suite
from evalwright.run.stored_run import open_run

JUDGE = """\
import json, sys

given = json.load(sys.stdin)
good = given["candidate_answer"] == given["config"]["wanted"]
print(json.dumps({"score": float(good), "hits": [], "misses": [] if good else ["other"], "reasoning": ""}))
"""
ANSWER = json.dumps(
    {
        "output_messages": [
            {"role": "assistant", "tool_calls": [{"tool": "search", "input": {"q": "x"}}]},
            {"role": "assistant", "content": '{"name": "Alice"}'},
        ],
        "token_usage": {"input": 10, "output": 5},
        "cost_usd": 0.01,
        "duration_ms": 30,
    }
)
EVALUATORS = """\
  - {name: script, type: code_judge, script: [python3, judge.py], config: {wanted: '{"name": "Alice"}'}}
  - {name: judged, type: llm_judge, prompt: "{{ candidate_answer }} ${HOME} $x"}
  - {name: both, type: composite, aggregator: {type: minimum}, evaluators: [
      {name: a, type: latency, threshold: 60000}, {name: b, type: cost, budget: 0.001}]}
  - {name: calls, type: tool_trajectory, mode: in_order, expected: [{tool: search, args: {q: x}}]}
  - {name: fields, type: field_accuracy, fields: [{path: name, match: exact}]}
  - {name: metrics, type: execution_metrics, max_tool_calls: 1, max_tokens: 3, weight: 2}
  - {name: quick, type: latency, threshold: 60000}
  - {name: cheap, type: cost, budget: 0.02, required: true}
  - {name: tokens, type: token_usage, max_total: 100}
"""
AGENTV = f"""\
execution:
  evaluators:
{EVALUATORS}
evalcases:
  - {{id: all, expected_outcome: x, input: hi, expected_output: {{name: Alice}}, rubrics: [polite, short]}}
  - {{id: other, expected_outcome: y, input: ho, expected_output: {{name: Bob}}, rubrics: [rude], note: n}}
"""
LETTA = """\
name: shop
description: Answers
dataset: data.csv
target: {kind: letta_code, backend: "app.py:answer"}
graders:
  same: {kind: tool, function: exact_match, extractor: last_assistant}
  own: {kind: tool, function: "graders.py:short"}
gate: {metric_key: same, op: gte, value: 0.5}
num_runs: 2
"""
CONVERSATIONS = [
    {
        "id": f"c{i}",
        "messages": [{"role": "user", "content": "hi"}, {"role": "assistant", "content": text}],
        "expected": {"contains": ["hello"], "max_tool_calls": 1},
        "metrics": {"latency_ms": 12.5, "cost_usd": 0.1},
        "metadata": {"n": i},
    }
    for i, text in enumerate(["hello you", "bye"])
]
CONVERSATIONS.append({**CONVERSATIONS[0], "metadata": {"again": True}})
PIXIE = {
    "name": "qa",
    "runnable": "app.py:run",
    "evaluators": ["ExactMatch", "checks.py:long"],
    "entries": [
        {
            "entry_kwargs": {"q": q},
            "eval_input": [{"name": "x", "value": 1}],
            "description": q,
            "expectation": "A",
            **more,
        }
        for q, more in (("a", {}), ("b", {"evaluators": ["...", "LevenshteinMatch"]}))
    ],
}
FILES = {
    "agentv": {
        "EVAL.yaml": AGENTV,
        "judge.py": JUDGE,
        "targets.yaml": json.dumps(
            {
                "targets": [
                    {"name": "default", "provider": "cli", "command": ["cat", "answer.json"], "judge_target": "judge"},
                    {"name": "judge", "provider": "mock", "response": '{"score": 0.7, "checks": []}'},
                ]
            }
        ),
        "answer.json": ANSWER,
    },
    "letta": {
        "suite.yaml": LETTA,
        "data.csv": 'id,input,ground_truth,tags\na,hi,hi,"[""x""]"\nb,ho,hm,\n',
        "app.py": "def answer(message, context):\n    return message\n",
        "graders.py": "from letta_evals.decorators import grader\nfrom letta_evals.models import GradeResult\n\n"
        "@grader\ndef short(sample, submission):\n"
        "    return GradeResult(score=float(len(submission) < 9), rationale='')\n",
    },
    "northstar": {"talks.json": json.dumps(CONVERSATIONS)},
    "pixie": {
        "data.json": json.dumps(PIXIE),
        "app.py": "async def run(args):\n    return args['q'].upper()\n",
        "checks.py": "from pixie import Evaluation\n\ndef long(evaluable):\n"
        "    return Evaluation(score=float(len(str(evaluable.eval_output)) > 3), reasoning='')\n",
    },
}


def made(project, dialect):
    for name, text in FILES[dialect].items():
        (project / name).write_text(text)
    return project / next(iter(FILES[dialect]))


def judged(path, dialect=None):
    """Verdicts and results of a run of the suite, and its totals."""
    suite = load_suite(path, dialect)
    suite.out = path.parent / "runs"
    outcome = run_suite(suite)
    reader, _ = open_run(outcome.run_dir)
    rows = [
        (r.case_id, r.trial, r.evaluator, r.score, r.passed, r.skipped, r.error and r.error.type)
        for r in reader.results(EvaluationResult)
    ]
    verdicts = [(v.case_id, v.variant_name, v.trial, v.status, v.score) for v in reader.verdicts(CaseVerdict)]
    return sorted(rows, key=str), sorted(verdicts), outcome.summary.native, outcome.summary.gate
