"""Judging what became of files: git_diff and command on stored artifacts."""

import asyncio
import json
import os
import sys
import time
from pathlib import Path

import pytest

from evalwright.errors import EvaluatorError, InputError
from evalwright.evaluators.build import build_evaluator
from evalwright.model.artifact import Artifact, FileManifest, FilesystemArtifact, FilesystemDiff
from evalwright.model.snapshot import Case, Expected
from evalwright.testing import a_trace

CASE = Case("c", {})
ADDED, REMOVED, MODIFIED = ["new/a.txt"], ["gone.txt"], ["calc.py"]
DIFFS = {"calc.py": "--- a/calc.py\n+x\n", "new/a.txt": "--- a/new/a.txt\n+y\n"}


def artifact(folder=Path("nowhere"), left_out=None):
    diff = FilesystemDiff(ADDED, REMOVED, MODIFIED, DIFFS)
    nothing = FileManifest()
    record = FilesystemArtifact("c", "v", "tempdir_snapshot", nothing, nothing, diff, "artifacts/c/v", left_out or {})
    return Artifact(record, folder)


def judged(kind, config, given, case=CASE):
    return build_evaluator(kind, config).evaluate(case, a_trace(), given)


def run(config, given):
    return asyncio.run(asyncio.wait_for(judged("command", config, given), 60))


def python(program):
    return [sys.executable, "-c", program]


@pytest.mark.parametrize(
    ("config", "passed"),
    [
        ({}, True),
        ({"must_modify_files": ["calc.py", "new/a.txt"]}, True),
        ({"must_modify_files": ["gone.txt"]}, False),
        ({"must_modify_files": ["untouched"]}, False),
        ({"must_not_modify_files": ["untouched"]}, True),
        ({"must_not_modify_files": ["gone.txt"]}, False),
        ({"must_not_modify_files": ["calc.py"]}, False),
        ({"must_not_modify_files": ["new/a.txt"]}, False),
    ],
)
def test_a_removal_is_no_required_modification_but_is_a_forbidden_one(config, passed):
    evaluation = judged("git_diff", config, artifact())
    assert (evaluation.passed, evaluation.score) == (passed, float(passed))
    assert bool(evaluation.reason) is not passed


@pytest.mark.parametrize("config", [{}, {"must_modify_files": [], "must_not_modify_files": []}])
def test_empty_and_absent_lists_are_the_cases(config):
    wants = Case("c", {}, Expected(must_modify_files=["calc.py"], must_not_modify_files=["gone.txt"]))
    evaluation = judged("git_diff", config, artifact(), wants)
    assert evaluation.detail["missing"] == []
    assert evaluation.detail["forbidden"] == ["gone.txt"]


@pytest.mark.parametrize("text", ["\n".join(DIFFS.values()), "\n\n" + "\n".join(DIFFS.values()).strip()])
def test_the_patch_is_the_diffs_in_the_order_of_paths(tmp_path, text):
    (tmp_path / "want.patch").write_text(text)
    assert judged("git_diff", {"expected_patch_path": str(tmp_path / "want.patch")}, artifact()).passed


@pytest.mark.parametrize("text", [None, "", DIFFS["calc.py"]], ids=["missing", "empty", "a part"])
def test_another_patch_or_none_fails(tmp_path, text):
    if text is not None:
        (tmp_path / "want.patch").write_text(text)
    evaluation = judged("git_diff", {"expected_patch_path": str(tmp_path / "want.patch")}, artifact())
    assert not evaluation.passed
    assert "want.patch" in evaluation.reason


@pytest.mark.parametrize("place", ["dir/a.txt", "dir", "."])
def test_what_became_of_a_file_that_was_left_out_is_an_error_and_no_guess(place):
    with pytest.raises(EvaluatorError, match="unknown whether") as error:
        judged("git_diff", {"must_not_modify_files": ["dir/a.txt"]}, artifact(left_out={place: "too much"}))
    assert error.value.type == "incomplete_artifact"
    if place != ".":
        other = {"must_not_modify_files": ["dir2/a.txt"]}
        assert judged("git_diff", other, artifact(left_out={place: "too much"})).passed


@pytest.fixture
def stored(tmp_path):
    (tmp_path / "artifact" / "after").mkdir(parents=True)
    (tmp_path / "artifact" / "after" / "calc.py").write_text("changed\n")
    return artifact(tmp_path / "artifact")


def test_a_command_runs_on_a_copy_of_the_files(stored):
    program = "p = __import__('pathlib').Path('calc.py'); assert p.read_text() == 'changed\\n'; p.write_text('mine')"
    assert run({"cmd": python(program)}, stored).passed
    assert (stored.folder / "after" / "calc.py").read_text() == "changed\n"


@pytest.mark.parametrize(("code", "expected", "passed"), [(0, 0, True), (3, 3, True), (3, 0, False), (0, 3, False)])
def test_the_exit_code_decides(stored, code, expected, passed):
    config = {"cmd": python(f"import sys; sys.exit({code})"), "expected_exit_code": expected}
    evaluation = run(config, stored)
    assert (evaluation.passed, evaluation.detail["exit_code"]) == (passed, code)


def test_a_command_gets_no_variable_but_those_that_are_named(stored, monkeypatch):
    monkeypatch.setenv("SECRET_TOKEN", "s")
    monkeypatch.setenv("WANTED", "w")
    config = {"cmd": python("import json, os; print(json.dumps(dict(os.environ)))")}
    seen = json.loads(run(config, stored).detail["stdout"])
    assert (seen["PATH"], "SECRET_TOKEN" in seen, "WANTED" in seen) == (os.environ["PATH"], False, False)
    assert json.loads(run({**config, "env": ["WANTED"]}, stored).detail["stdout"])["WANTED"] == "w"
    with pytest.raises(EvaluatorError, match="not set: NOWHERE"):
        run({**config, "env": ["NOWHERE"]}, stored)


def test_a_signal_is_no_exit_code(stored):
    evaluation = run({"cmd": python("import os; os.kill(os.getpid(), 11)")}, stored)
    assert not evaluation.passed
    assert "SIGSEGV" in evaluation.reason


def test_the_first_64_kib_of_each_stream_are_kept_and_the_end_of_stderr_is_shown(stored):
    program = "import sys; print('x' * 100_000); sys.stderr.write('why\\n'); sys.exit(1)"
    evaluation = run({"cmd": python(program)}, stored)
    assert len(evaluation.detail["stdout"]) == 65_536
    assert evaluation.detail["stdout_bytes"] == 100_001
    assert evaluation.reason.endswith(": why")


def test_nothing_is_kept_if_configured(stored):
    evaluation = run({"cmd": python("print('hi')"), "capture_output": False}, stored)
    assert evaluation.passed
    assert "stdout" not in evaluation.detail


@pytest.mark.parametrize(
    ("config", "type_"),
    [
        ({"cmd": ["no-such-binary-xyz"]}, "command_not_found"),
        ({"cmd": ["/etc/hostname"]}, "os_error"),
        ({"cmd": ["true"], "cwd": "does/not/exist"}, "missing_cwd"),
    ],
)
def test_what_cannot_be_started_is_an_error(stored, config, type_):
    with pytest.raises(EvaluatorError) as error:
        run(config, stored)
    assert error.value.type == type_
    assert error.value.detail["cmd"] == config["cmd"]


def test_a_late_command_is_killed_with_its_children(stored, tmp_path):
    sleeper = f"import os, time; open({str(tmp_path / 'pid')!r}, 'w').write(str(os.getpid())); time.sleep(600)"
    program = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {sleeper!r}])"
    with pytest.raises(EvaluatorError) as error:
        run({"cmd": python(program), "timeout_seconds": 1.5}, stored)
    assert error.value.type == "timeout"
    child = int((tmp_path / "pid").read_text())
    until = time.monotonic() + 5
    while Path(f"/proc/{child}").exists() and "Z" not in Path(f"/proc/{child}/stat").read_text():
        assert time.monotonic() < until
        time.sleep(0.02)


@pytest.mark.parametrize("kind", ["git_diff", "command"])
def test_without_an_artifact_there_is_nothing_to_judge(kind):
    config = {"cmd": ["true"]} if kind == "command" else {}
    with pytest.raises(EvaluatorError) as error:
        run(config, None) if kind == "command" else judged(kind, config, None)
    assert error.value.type == "missing_artifact"


def test_a_folder_of_its_own_needs_no_artifact(tmp_path):
    evaluation = run({"cmd": python("import os; print(os.getcwd())"), "cwd": str(tmp_path)}, None)
    assert evaluation.detail["stdout"].strip() == os.path.realpath(tmp_path)


def test_a_command_does_not_run_on_a_part_of_the_files(stored):
    with pytest.raises(EvaluatorError) as error:
        run({"cmd": ["true"]}, artifact(stored.folder, {"big": "too much"}))
    assert error.value.type == "incomplete_artifact"
    assert run({"cmd": ["true"]}, artifact(stored.folder, {"/diff.txt": "too long"})).passed


REFUSED = {
    "cmd: text": ("command", {"cmd": "ls -l"}, "cmd"),
    "cmd: missing": ("command", {}, "cmd"),
    "cmd: empty": ("command", {"cmd": []}, "cmd"),
    "cmd: NUL": ("command", {"cmd": ["a\0b"]}, "cmd"),
    "timeout 0": ("command", {"cmd": ["true"], "timeout_seconds": 0}, "timeout_seconds"),
    "timeout a bool": ("command", {"cmd": ["true"], "timeout_seconds": True}, "timeout_seconds"),
    "exit code a text": ("command", {"cmd": ["true"], "expected_exit_code": "0"}, "expected_exit_code"),
    "capture": ("command", {"cmd": ["true"], "capture_output": "yes"}, "capture_output"),
    "files a text": ("git_diff", {"must_modify_files": "a.py"}, "must_modify_files"),
    "files no texts": ("git_diff", {"must_not_modify_files": [1]}, "must_not_modify_files[0]"),
    "patch": ("git_diff", {"expected_patch_path": 1}, "expected_patch_path"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_a_bad_configuration_is_refused_by_key(name):
    kind, config, key = REFUSED[name]
    with pytest.raises(InputError) as refused:
        build_evaluator(kind, config)
    assert [problem.key for problem in refused.value.problems] == [key]
