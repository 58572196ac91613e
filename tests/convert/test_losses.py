"""What is said to be left out of a conversion: the keys that nothing reads, and nothing else."""

import json

import pytest
import yaml

from evalwright.convert.conversion import convert
from evalwright.convert.losses import unread_keys
from evalwright.errors import InputError
from evalwright.formats.loading import load_suite

CASES = "cases:\n- {id: a, input: {q: hi}, colour: red}\n"
AGENTV = {
    "colour": "red",
    "execution": {"target": "default", "colour": "red"},
    "tests": [{"id": "a", "criteria": "x", "input": "hi", "colour": "red", "assertions": [{"type": "is-json"}]}],
}
LETTA = {
    "name": "n",
    "dataset": "data.csv",
    "target": {"kind": "letta_code", "backend": "app.py:answer", "colour": "red"},
    "graders": {"g": {"kind": "tool", "function": "exact_match", "extractor": "last_assistant", "colour": "red"}},
    "gate": {"metric_key": "g", "op": "gte", "value": 1, "colour": "red"},
    "colour": "red",
}
PROMPTFOO = {
    "prompts": ["{{q}}"],
    "providers": ["echo"],
    "tests": [{"vars": {"q": "hi"}, "colour": "red", "assert": [{"type": "contains", "value": "h"}]}],
    "colour": "red",
    "sharing": True,
    "evaluateOptions": {"colour": "red"},
}
SKILL = {"skill_name": "s", "colour": "red", "evals": [{"id": 1, "prompt": "p", "expected_output": "x", "colour": 1}]}
PIXIE = {
    "runnable": "app.py:App",
    "nam": "n",
    "evaluators": ["ExactMatch"],
    "entries": [
        {
            "entry_kwargs": {},
            "description": "d",
            "eval_input": [{"name": "q", "value": "hi"}],
            "expectation": "hi",
            "expectatio": "ho",
        }
    ],
}
NATIVE = {
    "eval": {"name": "n", "warnings": ["nothing reads the manual, which has no effect"]},
    "dataset": {"type": "yaml", "path": "cases.yaml", "seed": 1},
    "systems": [{"name": "s", "adapter": "replay", "cost_limit_usd": 1}],
    "evaluators": [{"name": "e", "type": "contains_text"}],
    "run": {"retry": {"max_attempts": 1, "on": ["timeout"]}, "executor": {"type": "local", "colour": "red"}},
    "output": [{"type": "local_files", "path": "runs"}],
}
FILES = {
    "cases.yaml": CASES,
    "data.csv": "input,ground_truth\nhi,ho\n",
    "app.py": "def answer(text):\n    return text\n",
}


@pytest.mark.parametrize(
    ("name", "suite", "keys"),
    [
        (
            "eval.yaml",
            NATIVE,
            "cases[0].colour dataset.seed run.executor.colour run.retry.on systems[0].cost_limit_usd",
        ),
        ("EVAL.yaml", AGENTV, "colour execution.colour tests[0].colour"),
        ("suite.yaml", LETTA, "colour gate.colour graders.g.colour target.colour"),
        ("promptfooconfig.yaml", PROMPTFOO, "colour evaluateOptions.colour sharing tests[0].colour"),
        ("evals/evals.json", SKILL, "colour evals[0].colour"),
        ("set.json", PIXIE, "entries.0.expectatio nam"),
    ],
)
def test_the_keys_that_nothing_reads_are_listed(tmp_path, name, suite, keys):
    for file, text in FILES.items():
        (tmp_path / file).write_text(text)
    (tmp_path / "SKILL.md").write_text("---\nname: s\ndescription: d\n---\n")
    path = tmp_path / name
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps(suite) if name.endswith("json") else yaml.safe_dump(suite))
    unread = unread_keys(load_suite(path, to_run=False))
    assert sorted({one.key for one in unread}) == keys.split()


def test_defaults_of_variables_in_templates_are_listed(tmp_path):
    tones = "{{q}} {{ env.TONE or 'mild' }} {{ env['PLACE'] | default('here') }} {{env.NEEDED}}"
    path = tmp_path / "promptfooconfig.yaml"
    path.write_text(yaml.safe_dump({**PROMPTFOO, "prompts": [tones]}))
    with pytest.raises(InputError) as refused:
        convert(path, "native", tmp_path / "out")
    listed = [problem.message for problem in refused.value.problems if "default" in problem.message]
    assert listed == [f"the default in ${{{one}}} is not written" for one in ("PLACE:-here", "TONE:-mild")]
