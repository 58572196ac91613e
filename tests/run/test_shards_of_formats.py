"""Suites of every format can be shared out; the merged run is that on one machine, with the totals of the original."""

import json

import pytest

from evalwright.formats.loading import load_suite
from evalwright.model.plan import Shard
from evalwright.run.merge import merge
from evalwright.run.options import RunOptions
from evalwright.run.start import run_suite
from run.merging import RECORDS, records, summary

ANSWER = 'def answer(message, ctx):\n    return "It is Paris or " + str(message)\n'
APP = (
    "from pydantic import BaseModel\n"
    "class Args(BaseModel):\n    text: str\n"
    "class Echo:\n    @classmethod\n    def create(cls):\n        return cls()\n"
    "    async def setup(self):\n        pass\n"
    "    async def run(self, args: Args):\n"
    "        import pixie\n"
    '        return pixie.wrap(args.text, purpose="output", name="reply")\n'
    "    async def teardown(self):\n        pass\n"
)
WORDS = ["Paris", "Rome", "Oslo", "Paris", "Bonn"]
CASES_OF_AGENTV = [
    {
        "id": f"c{i}",
        "criteria": "says it",
        "input": f"Where is {word}?",
        "assert": [
            {"name": f"names{i % 2}", "type": "contains", "value": word[: 2 + i]},
            {"name": "lower", "type": "regex", "value": "[a-z]", "weight": 0.3},
        ],
    }
    for i, word in enumerate(WORDS)
]
CONVERSATIONS = [
    {
        "id": "" if i == 1 else f"c{i % 3}",  # repeated and empty ids, as upstream allows
        "messages": [{"role": "user", "content": "?"}, {"role": "assistant", "content": f"It is {word}."}],
        "expected": {"contains": "Paris", "max_tool_calls": 0},
        "metrics": {"latency_ms": 100 + i, "cost_usd": 0.1 * i},
    }
    for i, word in enumerate(WORDS)
]
GIVEN = [{"name": "x", "value": 1}]
ENTRIES = [
    {"description": word, "entry_kwargs": {"text": word}, "eval_input": GIVEN, "expectation": "Paris"} for word in WORDS
]
PROMPTFOO = {
    "prompts": ["Where is {{city}}?", "{{city}}!"],
    "providers": ["echo"],
    "derivedMetrics": [{"name": "all", "value": "form + 1"}],
    "tests": [
        {
            "vars": {"city": word},
            "assert": [
                {"type": "contains", "value": "Paris", "weight": 0.7, "metric": f"names{i % 2}"},
                {"type": "regex", "value": "^Where", "metric": "form"},
            ],
        }
        for i, word in enumerate(WORDS)
    ],
}
NATIVE = (
    "eval: {name: n}\ndataset: {type: yaml, path: cases.yaml}\n"
    'systems: [{name: s, adapter: cli, command: [cat], stdin_template: "{{ input.q }}"}]\n'
    "evaluators: [{name: e, type: contains_text, config: {all_of: [Paris]}}]\n"
    "gate: {metric_key: e, aggregation: avg_score, op: gte, value: 0.5}\noutput: {type: local_files, path: runs}\n"
)
SUITES = {
    "evalh": {
        "eval.yaml": NATIVE,
        "cases.yaml": json.dumps({"cases": [{"id": f"c{i}", "input": {"q": word}} for i, word in enumerate(WORDS)]}),
    },
    "letta": {
        "suite.yaml": "name: c\ndataset: data.csv\nnum_runs: 2\ntarget: {kind: python, callable: 'agent.py:answer'}\n"
        "graders: {same: {kind: tool, function: contains}}\n"
        "gate: {metric_key: same, aggregation: avg_score, op: gte, value: 0.5}\n",
        "data.csv": "input,ground_truth\n" + "".join(f"Capital {i}?,{word}\n" for i, word in enumerate(WORDS)),
        "agent.py": ANSWER,
    },
    "agentv": {
        "EVAL.yaml": json.dumps({"name": "orders", "tests": CASES_OF_AGENTV}),
        "targets.yaml": json.dumps(
            {"targets": [{"name": "default", "provider": "mock", "response": "Pari or Romeo or Oslo"}]}
        ),
    },
    "northstar": {"support.json": json.dumps(CONVERSATIONS)},
    "pixie": {
        "dataset.json": json.dumps({"runnable": "app.py:Echo", "evaluators": ["ExactMatch"], "entries": ENTRIES}),
        "app.py": APP,
    },
    "promptfoo": {"promptfooconfig.yaml": json.dumps(PROMPTFOO)},
}


@pytest.mark.slow("three runs of a suite of each format")
@pytest.mark.parametrize("name", SUITES)
def test_a_suite_of_each_format_is_shared_out_and_merged(tmp_path, name, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for file, text in SUITES[name].items():
        (tmp_path / file).write_text(text)
    path = tmp_path / next(iter(SUITES[name]))

    def run(out: str, shard: Shard | None = None):
        return run_suite(load_suite(path), RunOptions(out=tmp_path / out, shard=shard))

    one = run("one")
    assert one.summary.cells_total >= len(WORDS)
    parts = [run("shards", Shard(k, 3)) for k in (3, 1, 2)]
    assert [part.exit_code for part in parts] == [0, 0, 0]
    assert [part.summary.gate for part in parts] == [None] * 3
    (parts[1].run_dir / "manifest.json").unlink()
    (parts[1].run_dir / "verdicts.jsonl").write_bytes(b"")
    with monkeypatch.context() as elsewhere:  # a new container has no key of this account
        elsewhere.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
        assert run("shards", Shard(1, 3)).run_dir == parts[1].run_dir
    merged = merge([part.run_dir for part in parts], tmp_path / "merged")
    assert merged.plan.dialect == name
    assert summary(merged.run_dir) == summary(one.run_dir)
    assert merged.exit_code == one.exit_code
    for kind in RECORDS:
        assert sorted(records(merged.run_dir, kind)) == sorted(records(one.run_dir, kind))
    files = [{p.relative_to(r.run_dir).as_posix() for p in r.run_dir.rglob("*") if p.is_file()} for r in (one, merged)]
    assert files[1] - files[0] == {"manifest.json"}
    assert files[0] - files[1] == set()
