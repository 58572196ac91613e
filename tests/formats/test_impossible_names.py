"""Names that no file can have are mistakes in every place of a suite, and long ones are not repeated in full."""

from __future__ import annotations

import copy
import json
import shutil
from pathlib import Path

import pytest

from evalwright.errors import InputError
from evalwright.files import yaml
from evalwright.formats.loading import load_suite
from formats.mutations import as_json, places

AUTHORED = Path(__file__).with_name("authored")
SUITES = (
    "agentv/EVAL.yaml",
    "agentv/files.yaml",
    "letta/suite.yaml",
    "northstar/cases.json",
    "pixie/dataset.json",
    "promptfoo/promptfooconfig.yaml",
    "skills/evals/evals.json",
)
NATIVE = {
    "eval": {"name": "names"},
    "dataset": {"type": "csv", "path": "cases.csv"},
    "systems": [
        {"name": "a", "adapter": "python_function", "target": "agent.py:answer"},
        {"name": "b", "adapter": "command", "command": "echo", "cwd": "."},
        {"name": "c", "adapter": "replay", "traces_path": "traces.jsonl"},
    ],
    "evaluators": [
        {"name": "code", "type": "code_judge", "config": {"script": "judge.py"}},
        {"name": "python", "type": "python_grader", "config": {"function": "grade.py:grade"}},
    ],
    "metrics": {"price_table_path": "prices.yaml"},
    "output": {"type": "local_files", "path": "runs"},
}
IMPOSSIBLE = ("e" * 300 + ".py:F", "a" * 5_000, "\0.py:x", "~nobody-of-this-name/x", "file://" + "g" * 300 + ".py")


@pytest.mark.parametrize("suite", [*SUITES, "native/eval.yaml"])
def test_a_name_that_no_file_can_have_is_a_mistake(tmp_path: Path, suite: str) -> None:
    file = tmp_path / suite
    if suite.startswith("native"):
        file.parent.mkdir()
        document = NATIVE
    else:
        shutil.copytree(AUTHORED / Path(suite).parts[0], tmp_path / Path(suite).parts[0])
        document = as_json(yaml.load(file, "yaml12").value)
    told = []
    for place in list(places(document)):
        for name in IMPOSSIBLE:
            changed = copy.deepcopy(document)
            inner = changed
            for step in place[:-1]:
                inner = inner[step]
            inner[place[-1]] = name
            file.write_text(json.dumps(changed), "utf-8")
            try:
                load_suite(file)
            except InputError as error:
                told.append(len(str(error)))
    assert told
    assert max(told) < 30_000
