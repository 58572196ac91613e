"""The example application, evaluated with the command that its README names."""

import json
import os
import shutil
from pathlib import Path

import pytest

import warm

pytest.importorskip("openinference.instrumentation.openai", reason="needs the extra openinference")

EXAMPLE = Path(__file__).parents[2] / "examples" / "help-desk"


@pytest.fixture(scope="module")
def evaluated(tmp_path_factory):
    """The folder of the example after its command, and how that ended."""
    folder = tmp_path_factory.mktemp("example") / "help-desk"
    shutil.copytree(EXAMPLE, folder, ignore=shutil.ignore_patterns("runs", "__pycache__"))
    command = [line for line in (EXAMPLE / "README.md").read_text().splitlines() if line.startswith("$ evalwright")]
    environment = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1"}
    done = warm.run(["-m", *command[0].removeprefix("$ ").split()], cwd=folder, env=environment, timeout=120)
    return folder, done


@pytest.mark.slow("runs a whole application")
def test_all_of_its_cases_pass(evaluated):
    _, done = evaluated
    assert done.returncode == 0, done.stdout + done.stderr


def test_each_trace_has_the_steps_and_the_model_call_of_its_own_case(evaluated):
    (file,) = evaluated[0].glob("runs/*/traces.jsonl")
    traces = [json.loads(line) for line in file.read_text().splitlines()]
    asked = [[trace["input"]["user_message"] == trace["spans"][0]["input"]["question"]] for trace in traces]
    names = [[(span["name"], span["kind"]) for span in trace["spans"]] for trace in traces]
    assert asked == [[True]] * 5
    assert names == [[("ask", "span"), ("retrieve", "span"), ("small-model", "llm")]] * 5
