"""Workspaces of AgentV, and keys that ask for isolation which is not to be had."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from evalwright.errors import InputError
from evalwright.formats.loading import load_suite
from evalwright.model.result import CaseVerdict
from evalwright.model.snapshot import case_digest, snapshot
from evalwright.model.trace import Trace
from evalwright.run.options import RunOptions
from evalwright.run.start import run_suite
from evalwright.run.stored_run import open_run

AGENT = "cat start.txt; echo gone > start.txt; echo more > more.txt; echo gone > linked.txt"
CASE = {"id": "a", "expected_outcome": "x", "input": "hi"}
EQUALS = {"name": "equals", "type": "equals", "value": "mine"}
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


def test_a_file_of_the_case_is_found_from_a_workspace(folder: Path) -> None:
    asked = [{"role": "user", "content": [{"type": "file", "value": "keep.txt"}]}]
    for workspace, named in ((None, "keep.txt"), ({}, str(folder / "keep.txt"))):
        target = {"command_template": "printf %s {PROMPT}"}
        trace, _ = ran(folder, {"workspace": workspace}, target, input=asked, evaluators=[EQUALS])
        assert trace.output.final_answer == f'<file: path="{named}">'


def test_a_case_with_a_file_is_the_same_wherever_its_suite_lies(tmp_path: Path) -> None:
    asked = [{"role": "user", "content": [{"type": "text", "value": "read"}, {"type": "file", "value": "note.txt"}]}]
    digests = set()
    for place in ("here", "there"):
        folder = tmp_path / place / "evals"
        folder.mkdir(parents=True)
        (folder / "note.txt").write_text("hello")
        (case,) = load_suite(written(folder, {"workspace": {}}, {}, input=asked)).cases
        digests.add(case_digest(snapshot(case)))
    assert len(digests) == 1


@pytest.mark.parametrize("level", ["file", "case", "of its own"])
@pytest.mark.parametrize(
    "space",
    [{}, {"template": None}, {"mode": "temp"}, {"isolation": "per_test"}, {"hooks": {"enabled": False}}, {"repos": []}],
)
def test_a_workspace_without_a_template_is_an_empty_folder(folder: Path, space: dict[str, Any], level: str) -> None:
    if level == "of its own":
        (folder / "space.yaml").write_text(json.dumps(space))
    said = {"workspace": "space.yaml" if level == "of its own" else space}
    target = {"command_template": "ls -A; rm -f keep.txt; touch new.txt"}
    head, case = ({}, said) if level == "case" else (said, {})
    trace, _ = ran(folder, head, target, **case, evaluators=[EQUALS])
    assert (trace.error, trace.output.final_answer) == (None, "")
    assert (folder / "keep.txt").read_text() == "mine"
    assert not (folder / "new.txt").exists()


@pytest.mark.parametrize("level", ["file", "case"])
def test_the_command_that_judges_works_apart_too(folder: Path, level: str) -> None:
    head, case = ({}, {"workspace": {}}) if level == "case" else ({"workspace": {}}, {})
    reply = json.dumps({"score": 1.0, "hits": [], "misses": [], "reasoning": "ok"})
    _, verdict = ran(folder, head, {"command_template": f"rm -f keep.txt; echo '{reply}'"}, **case)
    assert (verdict.status, (folder / "keep.txt").read_text()) == ("pass", "mine")


def test_a_workspace_that_is_null_is_none(folder: Path) -> None:
    target = {"command_template": "cat keep.txt"}
    trace, _ = ran(folder, {"workspace": None}, target, workspace=None, evaluators=[EQUALS])
    assert trace.output.final_answer == "mine"


@pytest.mark.parametrize(
    ("head", "target", "case"),
    [
        ({"environment": {"type": "docker"}}, {}, {}),
        ({"workspace": {"docker": {"image": "python"}}}, {}, {}),
        ({"workspace": {"mode": "static", "path": "."}}, {}, {}),
        ({"workspace": {"template": "./template", "hooks": {"before": {"command": "x"}}}}, {}, {}),
        ({"workspace": {"hooks": {"before_all": {"command": "x", "sandbox": True}}}}, {}, {}),
        ({"workspace": {"repos": [{"path": "a", "repo": "o/n", "network": "none"}]}}, {}, {}),
        ({"execution": {"sandbox": True}}, {}, {}),
        ({"hooks": {"before_all": "x"}}, {}, {}),
        ({}, {"isolation": "docker"}, {}),
        ({}, {"settings": {"sandbox": "read-only"}}, {}),
        ({}, {"max_turns": 3}, {}),
        ({}, {"workspaceTemplat": "./template"}, {}),
        ({}, {"workspace_template": "./nowhere"}, {}),
        ({}, {"workspace_template": "./template", "provider": "python", "callable": "json:loads"}, {}),
        ({}, {"workspace_template": "./template", "provider_batching": True}, {}),
        ({}, {}, {"workspace": {"docker": {"image": "python"}}}),
        ({"workspace": {"hooks": {"before_all": {"command": "x"}}}}, {"provider": "python", "callable": "a:b"}, {}),
        ({}, {}, {"execution": {"docker": "image"}}),
        ({}, {}, {"set-up": "prepare.sh"}),
        ({"cwd": "./sub"}, {}, {}),
        ({"execution": {"cwd": "./sub"}}, {}, {}),
        ({"execution": {"image": "python:3"}}, {}, {}),
        ({"defaults": {"workspace": {"template": "./template"}}}, {}, {}),
        ({}, {"work_dir": "./sub"}, {}),
        ({}, {"workingDirectory": "./sub"}, {}),
        ({}, {"image": "python:3"}, {}),
        ({}, {"user": "nobody"}, {}),
        ({}, {"volumes": ["./sub:/work"]}, {}),
        ({}, {}, {"cwd": "./sub"}),
        ({}, {}, {"execution": {"user": "nobody"}}),
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


def test_words_for_programs_are_data_in_a_case(folder: Path) -> None:
    case = {"user": "alice", "image": "cat.png", "offline": True}
    suite = load_suite(written(folder, {"execution": {"keep_workspaces": True}}, {}, **case))
    assert [case.id for case in suite.cases] == ["a"]


def test_a_key_that_asks_for_no_isolation_is_a_warning_at_most(folder: Path) -> None:
    suite = load_suite(written(folder, {"sandbox": False, "environment": None}, {}))
    assert [case.id for case in suite.cases] == ["a"]


@pytest.mark.parametrize(
    ("workspace", "said"),
    [
        ("nowhere.yaml", "no file"),
        ({"template": ".."}, "workspace_template: "),
        ({"repos": [{"path": "../up", "repo": "o/n"}]}, "within the workspace"),
        ({"repos": [{"path": "a", "repo": "--upload-pack=x"}]}, "address of a repository"),
        ({"repos": [{"path": "a", "repo": "o/n", "commit": "-x"}]}, "commit"),
        ({"hooks": {"before_each": {"timeout_ms": 5}}}, "command"),
        ({"template": 5}, "expected a folder"),
        ([], "expected a mapping"),
    ],
)
def test_mistakes_in_a_workspace_are_told(folder: Path, workspace: Any, said: str) -> None:
    with pytest.raises(InputError, match=said):
        load_suite(written(folder, {"workspace": workspace}, {}))


def hook(text: str) -> dict[str, Any]:
    return {"command": ["sh", "-c", f"{text}; cat >> {{{{workspace_path}}}}/stdin.txt"]}


def test_commands_run_around_a_workspace_in_their_order(folder: Path) -> None:
    names = ("before_all", "before_each", "after_each", "after_all")
    hooks = {name: hook(f"echo {name} >> seen.txt") for name in names}
    (folder / "space.yaml").write_text(json.dumps({"template": "./template", "hooks": hooks}))
    target = {"command_template": "cat start.txt stdin.txt; echo new > new.txt"}
    trace, verdict = ran(folder, {"workspace": "space.yaml"}, target, evaluators=[{**LOOKED, "script": SEES_NEW}])
    assert verdict.status == "pass", verdict
    assert (folder / "seen.txt").read_text().split() == list(names)
    given = str(trace.output.final_answer)
    assert [part in given for part in ("start", '"test_id": "__before_all__"', '"test_id": "a"')] == [True] * 3
    assert "diff --git a/new.txt b/new.txt\nnew file\n--- /dev/null\n" in trace.extra["file_changes"]
    assert "stdin.txt" not in trace.extra["file_changes"]


LOOKED = {"name": "looks", "type": "code_judge"}
SEES_NEW = [
    sys.executable,
    "-c",
    "import json, sys; print(json.dumps({'score': 1.0 * ('+new' in json.load(sys.stdin)['file_changes'])}))",
]


def test_a_command_that_fails_after_all_is_a_warning_of_the_run(folder: Path) -> None:
    hooks = {"after_all": {"command": "echo still mounted >&2; exit 3"}}
    suite = load_suite(written(folder, {"workspace": {"hooks": hooks}}, {"command_template": "true"}))
    outcome = run_suite(suite, RunOptions(out=folder / "runs"))
    (said,) = outcome.summary.warnings
    assert "the hook after_all of the workspace failed: still mounted" in said
    assert said in outcome.notes


@pytest.mark.parametrize("when", ["before_all", "before_each"])
def test_a_command_that_fails_before_is_the_error_of_the_case(folder: Path, when: str) -> None:
    hooks = {when: {"command": "echo no disk >&2; exit 3"}}
    trace, verdict = ran(folder, {"workspace": {"hooks": hooks}}, {"command_template": "true"})
    assert (verdict.status, trace.error and trace.error.type) == ("error", "workspace_error")
    assert f"{when} of the workspace failed: no disk" in str(trace.error)


@pytest.mark.parametrize(
    ("env", "missing"),
    [
        ({"required_commands": ["sh", "no-such-command"]}, "there is no command no-such-command"),
        ({"required_python_modules": ["json", "no_such_module"]}, "failed: No module named "),
        ({"required_commands": ["sh"], "required_python_modules": ["json"]}, ""),
    ],
)
def test_what_a_workspace_requires_must_be_there_before_anything_runs(
    folder: Path, env: dict[str, Any], missing: str
) -> None:
    trace, verdict = ran(folder, {"workspace": {"template": "./template", "env": env}}, {"command_template": "echo hi"})
    assert (trace.error is None, verdict.status == "error") == (not missing, bool(missing))
    assert missing in str(trace.error)


def test_other_requirements_of_a_workspace_are_refused(folder: Path) -> None:
    for env in ({"required_commmands": ["sh"]}, {"required_commands": "sh"}, ["sh"]):
        with pytest.raises(InputError, match="env"):
            load_suite(written(folder, {"workspace": {"env": env}}, {"command_template": "true"}))


def test_a_command_that_fails_afterwards_is_a_warning(folder: Path) -> None:
    hooks = {"after_each": {"command": "exit 3"}, "before_each": {"command": "exit 1"}}
    off = {"workspace": {"template": "./template", "hooks": {"enabled": False, **hooks}}}
    trace, _ = ran(folder, off, {})
    assert "warnings" not in trace.extra
    head = {"workspace": {"hooks": {"after_each": hooks["after_each"]}}}
    trace, _ = ran(folder, head, {"command_template": "echo hi"})
    assert (trace.output.final_answer, len(trace.extra["warnings"])) == ("hi", 1)


def test_a_case_and_a_target_add_to_the_workspace_of_the_file(folder: Path) -> None:
    (folder / "own").mkdir()
    (folder / "own" / "start.txt").write_text("own")
    head = {
        "workspace": {"template": "./template", "hooks": {"before_each": {"command": "echo file >> seen.txt"}}},
        "execution": {
            "targets": [
                {
                    "name": "variant",
                    "use_target": "default",
                    "hooks": {"before_each": {"command": "echo target >> seen.txt"}},
                }
            ]
        },
    }
    trace, _ = ran(folder, head, {"command_template": "cat start.txt"}, workspace={"template": "own"})
    assert (trace.output.final_answer, (folder / "seen.txt").read_text().split()) == ("own", ["file", "target"])


def test_repositories_are_checked_out_at_their_commits(folder: Path) -> None:
    origin = folder / "origin"
    origin.mkdir()

    def git(*words: str) -> None:
        who = ["-c", "user.name=a", "-c", "user.email=a@b"]
        subprocess.run(["git", "-C", str(origin), *who, *words], check=True, capture_output=True)

    git("init", "--quiet")
    for text in ("first", "second"):
        (origin / "text.txt").write_text(text)
        git("add", "--all")
        git("commit", "--quiet", "--message", text)
    repos = [
        {"path": "now", "repo": str(origin)},
        {"path": "./then", "source": {"type": "git", "url": str(origin)}, "checkout": {"ref": "HEAD", "ancestor": 1}},
    ]
    trace, _ = ran(folder, {"workspace": {"repos": repos}}, {"command_template": "cat now/text.txt then/text.txt"})
    assert trace.output.final_answer == "secondfirst"
    trace, verdict = ran(folder, {"workspace": {"repos": [{"path": "a", "repo": str(folder / "none")}]}}, {})
    assert verdict.status == "error"
    assert "cannot be fetched" in str(trace.error)


@pytest.mark.parametrize("level", ["file", "case"])
def test_a_file_with_a_workspace_has_variables(folder: Path, level: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SHOP_TEMPLATE", "./template")
    (folder / "space.yaml").write_text("template: ${{ SHOP_TEMPLATE }}\n")
    head, case = ({}, {"workspace": "space.yaml"}) if level == "case" else ({"workspace": "space.yaml"}, {})
    path = written(folder, head, {"command_template": "cat start.txt"}, **case, evaluators=[EQUALS])
    path.write_text(path.read_text().replace('"evalcases"', '"tests"'))
    reader, _ = open_run(run_suite(load_suite(path), RunOptions(out=folder / "runs")).run_dir)
    assert [trace.output.final_answer for trace in reader.traces(Trace)] == ["start"]


@pytest.mark.parametrize("level", ["file", "case"])
def test_a_file_with_a_workspace_may_lie_in_an_allowed_folder(folder: Path, level: str) -> None:
    suite, elsewhere = folder / "suite", folder / "elsewhere"
    suite.mkdir()
    elsewhere.mkdir()
    (elsewhere / "space.yaml").write_text("mode: temp\n")
    said = {"workspace": "../elsewhere/space.yaml"}
    head, case = ({}, said) if level == "case" else (said, {})
    path = written(suite, head, {}, **case, evaluators=[EQUALS])
    assert len(list(load_suite(path, options={"allow_outside": (elsewhere,)}).cases)) == 1
    with pytest.raises(InputError, match="lies outside of the suite's folder"):
        load_suite(path)
