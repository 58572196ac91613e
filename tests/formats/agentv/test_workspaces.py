"""Workspaces of AgentV, and keys that ask for isolation which is not to be had."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from evalwright.errors import InputError
from evalwright.formats.loading import load_suite
from evalwright.model.result import CaseVerdict
from evalwright.model.trace import Trace
from evalwright.run.options import RunOptions
from evalwright.run.start import run_suite
from evalwright.run.stored_run import open_run

AGENT = "cat start.txt; echo gone > start.txt; echo more > more.txt; echo gone > linked.txt"
CASE = {"id": "a", "expected_outcome": "x", "input": "hi"}
LOOKS = """
import json, os
found = sorted(os.listdir(os.environ["AGENTV_WORKSPACE_PATH"]))
print(json.dumps({"score": 1.0 * (found == ["linked.txt", "more.txt", "start.txt"])}))
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "template" / ".git").mkdir(parents=True)
    (tmp_path / "template" / "start.txt").write_text("start")
    (tmp_path / "keep.txt").write_text("mine")
    (tmp_path / "template" / "linked.txt").symlink_to(tmp_path / "keep.txt")
    return tmp_path


def ran(folder: Path, head: dict[str, Any], target: dict[str, Any], **case: Any) -> tuple[Trace, CaseVerdict]:
    suite = load_suite(written(folder, head, target, **case))
    reader, _ = open_run(run_suite(suite, RunOptions(out=folder / "runs")).run_dir)
    return next(iter(reader.traces(Trace))), next(iter(reader.verdicts(CaseVerdict)))


def written(folder: Path, head: dict[str, Any], target: dict[str, Any], **case: Any) -> Path:
    target = {"name": "default", "provider": "cli", "command_template": AGENT, **target}
    (folder / "targets.yaml").write_text(json.dumps({"targets": [target, {"name": "other", "provider": "mock"}]}))
    (folder / "EVAL.yaml").write_text(json.dumps({"name": "space", **head, "evalcases": [{**CASE, **case}]}))
    return folder / "EVAL.yaml"


@pytest.mark.parametrize(
    ("head", "target"),
    [({}, {"workspace_template": "./template"}), ({"workspace": {"template": "./template"}}, {"cwd": "."})],
)
def test_a_command_works_in_a_fresh_copy_of_the_template(
    folder: Path, head: dict[str, Any], target: dict[str, Any]
) -> None:
    judge = {"name": "looks", "type": "code_judge", "script": [sys.executable, "-c", LOOKS]}
    trace, verdict = ran(folder, head, target, evaluators=[judge])
    assert (trace.output.final_answer, verdict.status) == ("start", "pass")
    assert (folder / "keep.txt").read_text() == "mine"
    assert sorted(path.name for path in (folder / "template").iterdir()) == [".git", "linked.txt", "start.txt"]
    assert (folder / "template" / "start.txt").read_text() == "start"
    assert not Path(trace.extra["workspace_path"]).exists()


@pytest.mark.parametrize(
    ("head", "target", "case"),
    [
        ({"environment": {"type": "docker"}}, {}, {}),
        ({"workspace": {"template": "./template", "hooks": {}}}, {}, {}),
        ({"execution": {"sandbox": True}}, {}, {}),
        ({"hooks": {"before_all": "x"}}, {}, {}),
        ({}, {"isolation": "docker"}, {}),
        ({}, {"settings": {"sandbox": "read-only"}}, {}),
        ({}, {"max_turns": 3}, {}),
        ({}, {"workspaceTemplat": "./template"}, {}),
        ({}, {"workspace_template": "./nowhere"}, {}),
        ({}, {"workspace_template": "./template", "provider": "python", "callable": "json:loads"}, {}),
        ({}, {"workspace_template": "./template", "provider_batching": True}, {}),
        ({}, {}, {"workspace": {"template": "./template"}}),
        ({}, {}, {"execution": {"docker": "image"}}),
        ({}, {}, {"set-up": "prepare.sh"}),
    ],
)
def test_a_key_that_isolates_and_is_not_understood_refuses_the_suite(
    folder: Path, head: dict[str, Any], target: dict[str, Any], case: dict[str, Any]
) -> None:
    with pytest.raises(InputError, match=r"so nothing is run|workspace_template: "):
        load_suite(written(folder, head, target, **case))


def test_a_key_that_isolates_in_a_target_that_is_not_used_is_no_mistake(folder: Path) -> None:
    suite = load_suite(written(folder, {"execution": {"target": "other"}}, {"sandbox": True}))
    assert [case.id for case in suite.cases] == ["a"]


def test_a_key_that_asks_for_no_isolation_is_a_warning_at_most(folder: Path) -> None:
    suite = load_suite(written(folder, {"sandbox": False, "environment": None}, {}))
    assert [case.id for case in suite.cases] == ["a"]
