"""SIGKILL under `--until-decided`: the sequence goes on with the bets that were made, and comes to the same."""

from __future__ import annotations

import json
import signal
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from acceptance.projects import Project, project

AGENT = """
import os, signal

def answer(case, variant):
    with open("calls", "a") as file:
        file.write(case["id"] + "\\n")
    with open("calls") as file:
        number = len(file.readlines())
    if str(number) in os.environ.get("KILLED_AT", "").split(","):
        os.kill(os.getpid(), signal.SIGKILL)
    good = int(case["id"][1:]) % int(os.environ["BAD_EACH"])
    return {"final_answer": "good" if good else "bad"}
"""
SUITE = """
eval: {name: killed}
dataset: {type: jsonl, path: cases.jsonl}
systems: [{name: v, adapter: python_function, target: "killed_agent:answer"}]
evaluators: [{name: good, type: contains_text, config: {all_of: [good]}}]
run: {max_concurrency: 1, trials: 2}
output: {type: local_files, path: runs}
"""


def called(made: Project) -> Counter[str]:
    """How often each case was called since the last time that this was asked."""
    path = made.folder / "calls"
    found = Counter(path.read_text().split())
    path.unlink()
    return found


def decision_of(folder: Path) -> dict[str, Any]:
    document: dict[str, Any] = json.loads((folder / "decision.json").read_text())
    return document


@pytest.mark.slow("starts the command seven times, of which four are killed")
def test_a_run_that_is_killed_loses_no_bet_and_makes_none_twice(tmp_path: Path) -> None:
    made = project(tmp_path, {})
    (tmp_path / "killed_agent.py").write_text(AGENT)
    cases = [{"id": f"c{i}", "input": {"q": i}} | ({"group": f"g{i // 2}"} if i < 20 else {}) for i in range(120)]
    (tmp_path / "cases.jsonl").write_text("".join(json.dumps(case) + "\n" for case in cases))
    (tmp_path / "eval.yaml").write_text(SUITE)
    half = made.folder / made.evalwright("run", "eval.yaml", "--quiet", BAD_EACH="2").last_line
    called(made)
    until = ("run", "eval.yaml", "--quiet", "--until-decided", "--against", half, "--seed", "5", "--out")
    whole = made.evalwright(*until, "whole", BAD_EACH="1000")
    calls = called(made)
    assert whole.code == 0

    # within the first unit, between the trials of one, and on the last call of all
    kills = [1, 14, 31, sum(calls.values()) + 3]
    environment = {"BAD_EACH": "1000", "KILLED_AT": ",".join(map(str, kills))}
    ended = made.evalwright(*until, "killed", **environment)
    (run,) = (tmp_path / "killed").iterdir()
    units = decision_of(run)["units"]
    for _ in kills[1:]:
        assert ended.code == -signal.SIGKILL
        ended = made.evalwright("resume", run, "--quiet", **environment)
    assert ended.code == -signal.SIGKILL
    ended = made.evalwright("resume", run, "--quiet", **environment)
    assert ended.code == 0, ended.err

    found, expected = decision_of(run), decision_of(tmp_path / whole.last_line)
    assert (found["units"], found["bets"]) == (units, expected["bets"])
    assert found["decision"] == expected["decision"]
    again = called(made)
    assert again.total() == calls.total() + len(kills)
    assert again.keys() == calls.keys()  # no case that would not have been looked at
