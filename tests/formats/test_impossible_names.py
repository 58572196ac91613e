"""Names that no file can have are mistakes in every place of a suite, and long ones are not repeated in full."""

from __future__ import annotations

import copy
import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from evalwright.errors import InputError
from evalwright.files import yaml
from evalwright.formats.loading import load_suite
from formats.mutations import as_json, places

AUTHORED = Path(__file__).with_name("authored")
SUITES = (
    pytest.param("agentv/EVAL.yaml", marks=pytest.mark.slow("loads a suite with hundreds of places for each of them")),
    "agentv/files.yaml",
    "letta/suite.yaml",
    "pixie/dataset.json",
    "promptfoo/promptfooconfig.yaml",
    "skills/evals/evals.json",
)
NATIVE: dict[str, Any] = {
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
IMPOSSIBLE = {"long": "e" * 300 + ".py:F", "null": "\0.py:x", "address": "file://" + "g" * 300 + ".py"}


@pytest.mark.parametrize("name", IMPOSSIBLE.values(), ids=IMPOSSIBLE)
@pytest.mark.parametrize("suite", [*SUITES, "native/eval.yaml"])
def test_a_name_that_no_file_can_have_is_a_mistake(tmp_path: Path, suite: str, name: str) -> None:
    file = tmp_path / suite
    if suite.startswith("native"):
        file.parent.mkdir()
        document = NATIVE
    else:
        shutil.copytree(AUTHORED / Path(suite).parts[0], tmp_path / Path(suite).parts[0])
        document = as_json(yaml.load(file, "yaml12").value)
    told = 0
    for place in list(places(document)):
        changed = copy.deepcopy(document)
        inner = changed
        for step in place[:-1]:
            inner = inner[step]
        if not isinstance(inner[place[-1]], str):
            continue
        inner[place[-1]] = name
        file.write_text(json.dumps(changed), "utf-8")
        try:
            load_suite(file)
        except InputError:
            told += 1
    assert told


def test_a_long_name_is_not_repeated_in_full(tmp_path: Path) -> None:
    file = tmp_path / "eval.yaml"
    evaluators = [{"name": "code", "type": "b" * 1_000_000}]
    file.write_text(json.dumps({**NATIVE, "evaluators": evaluators}), "utf-8")
    with pytest.raises(InputError, match="Unknown evaluator") as refused:
        load_suite(file)
    assert len(str(refused.value)) < 20_000
