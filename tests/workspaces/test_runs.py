"""Runs with workspaces: whatever a system does, its artifact is stored and judged, and its folder is gone."""

import json
import os
import signal
from pathlib import Path

import pytest

import warm
from workspaces.project import make


def evalwright(folder, *words, **environment):
    return warm.run(["-m", "evalwright", *map(str, words)], cwd=folder, env={**os.environ, **environment})


def newest(folder):
    return max((folder / "runs").iterdir(), key=lambda run: run.name)


def rows(run, name):
    return [json.loads(line) for line in (run / f"{name}.jsonl").read_text().splitlines()]


def artifact(run, case):
    folder = run / "artifacts" / case / "v"
    record = json.loads((folder / "artifact.json").read_text())
    assert record["artifacts_path"] == f"artifacts/{case}/v"
    return record, folder


def verdicts(run):
    return {
        (row["case_id"], row["evaluator"]): row["error"]["type"] if row["error"] else row["passed"]
        for row in rows(run, "results")
    }


def leftovers(folder):
    return list((folder / "workspaces").iterdir()) if (folder / "workspaces").exists() else []


def test_cells_do_not_see_each_other_and_their_artifacts_say_what_they_did(tmp_path):
    make(tmp_path, ["edit", "edit", "wipe"])
    done = evalwright(tmp_path, "run", "eval.yaml")
    assert done.returncode == 1, done.stderr
    run = newest(tmp_path)
    assert {trace["output"]["final_answer"] for trace in rows(run, "traces")} == {"calc.py,keep.md"}
    record, folder = artifact(run, "c1")
    assert record["diff"]["modified"] == ["calc.py"]
    assert (folder / "before" / "calc.py").read_text() == "old\n"
    assert (folder / "after" / "calc.py").read_text() == "changed by c1\n"
    assert "+changed by c1" in (folder / "diff.txt").read_text()
    assert artifact(run, "c2")[0]["diff"]["removed"] == ["calc.py", "keep.md"]
    assert verdicts(run) == {
        ("c0", "changed"): True, ("c0", "reads"): True,
        ("c1", "changed"): True, ("c1", "reads"): True,
        ("c2", "changed"): False, ("c2", "reads"): False,
    }  # fmt: skip
    assert leftovers(tmp_path) == []


@pytest.mark.parametrize(
    ("todo", "system", "error"),
    [
        ("raise", "", "adapter_error"),
        ("hang", "", "timeout"),
        ("die", ", isolation: process", "adapter_error"),
        ("hang", ", isolation: process", "timeout"),
    ],
)
def test_the_artifact_of_a_system_that_failed_is_stored_and_judged(tmp_path, todo, system, error):
    suite = make(tmp_path, [todo], system)
    suite.write_text(suite.read_text() + "pass_criteria: {errored_cases: evaluate}\n")
    evalwright(tmp_path, "run", "eval.yaml")
    run = newest(tmp_path)
    assert [trace["error"]["type"] for trace in rows(run, "traces")] == [error]
    assert artifact(run, "c0")[1].joinpath("after", "calc.py").read_text() == "changed by c0\n"
    assert verdicts(run) == {("c0", "changed"): True, ("c0", "reads"): True}
    assert leftovers(tmp_path) == []


def test_each_try_has_a_folder_of_its_own_and_the_last_one_is_kept(tmp_path):
    make(tmp_path, ["flaky"], run=", retry: {max_attempts: 2, on: [adapter_error]}")
    assert evalwright(tmp_path, "run", "eval.yaml").returncode == 0
    assert [trace["output"]["final_answer"] for trace in rows(newest(tmp_path), "traces")] == ["calc.py,keep.md"]
    record, folder = artifact(newest(tmp_path), "c0")
    assert record["diff"]["added"] == []
    assert sorted(p.name for p in (folder / "after").iterdir()) == ["calc.py", "keep.md"]
    assert leftovers(tmp_path) == []


def test_trials_have_folders_of_their_own(tmp_path):
    make(tmp_path, ["edit"], run=", trials: 2")
    assert evalwright(tmp_path, "run", "eval.yaml").returncode == 0
    cell = newest(tmp_path) / "artifacts" / "c0" / "v"
    assert [json.loads((cell / f"trial-{n}" / "artifact.json").read_text())["trial"] for n in (0, 1)] == [0, 1]


def test_the_session_after_a_killed_one_finishes_the_run(tmp_path):
    make(tmp_path, ["edit", "kill"])
    assert evalwright(tmp_path, "run", "eval.yaml").returncode == -signal.SIGKILL
    agent = tmp_path / "agent.py"
    agent.write_text(agent.read_text().replace("os.kill(os.getpid(), 9)", "pass"))
    run = newest(tmp_path)
    resumed = evalwright(tmp_path, "resume", run)
    assert resumed.returncode == 0, resumed.stderr
    assert set(verdicts(run).values()) == {True}
    assert leftovers(tmp_path) == []


COVERED = """
  - {name: behind, type: git_diff, config: {must_modify_files: [calc.py]}, extractor: {type: last_assistant}}
  - name: within
    type: composite
    config:
      evaluators:
        - {name: changed, type: git_diff, config: {must_modify_files: [calc.py]}}
        - {name: reads, type: command, config: {cmd: [grep, -q, changed, calc.py]}, threshold: 1.0}
run:"""


def test_evaluators_behind_extractors_and_within_composites_see_the_files_too(tmp_path):
    suite = make(tmp_path, ["edit"])
    suite.write_text(suite.read_text().replace("\nrun:", COVERED))
    done = evalwright(tmp_path, "run", "eval.yaml")
    assert done.returncode == 0, done.stdout
    expected = {("c0", name): True for name in ("changed", "reads", "behind", "within")}
    assert verdicts(newest(tmp_path)) == expected
    evalwright(tmp_path, "re-evaluate", newest(tmp_path))
    assert verdicts(newest(tmp_path)) == expected


@pytest.mark.slow("two commands with copies of a workspace")
def test_stored_artifacts_are_what_is_judged_again(tmp_path):
    make(tmp_path, ["edit", "raise"])
    evalwright(tmp_path, "run", "eval.yaml")
    run = newest(tmp_path)
    before = verdicts(run)
    (tmp_path / "agent.py").unlink()
    (tmp_path / "project" / "calc.py").unlink()
    assert evalwright(tmp_path, "re-evaluate", run).returncode == 3
    assert verdicts(run) == before
    (run / "artifacts" / "c0" / "v" / "artifact.json").unlink()
    assert evalwright(tmp_path, "re-evaluate", run).returncode == 3
    assert verdicts(run)["c0", "changed"] == verdicts(run)["c0", "reads"] == "missing_artifact"


@pytest.mark.slow("three commands in a database")
def test_artifacts_of_runs_in_a_database_are_judged_again_and_shown_too(tmp_path):
    make(tmp_path, ["edit"])
    suite = (tmp_path / "eval.yaml").read_text()
    (tmp_path / "eval.yaml").write_text(
        suite.replace("type: local_files, path: runs", "type: sqlite, path: runs.sqlite")
    )
    assert evalwright(tmp_path, "run", "eval.yaml").returncode == 0
    assert "100.0%" in evalwright(tmp_path, "re-evaluate", "runs.sqlite").stdout
    assert "+changed by c0" in evalwright(tmp_path, "inspect", "runs.sqlite").stdout


def test_a_retried_cell_replaces_its_artifact(tmp_path):
    make(tmp_path, ["raise"])
    evalwright(tmp_path, "run", "eval.yaml")
    agent = tmp_path / "agent.py"
    agent.write_text(agent.read_text().replace('raise RuntimeError("boom")', '(path / "second").write_text("x")', 1))
    run = newest(tmp_path)
    assert evalwright(tmp_path, "retry", run).returncode == 0
    record, folder = artifact(run, "c0")
    assert record["attempt"] == 2
    assert record["diff"]["added"] == ["second"]
    assert (folder / "after" / "second").exists()


def test_a_retried_cell_that_got_no_workspace_has_no_artifact_of_before(tmp_path):
    make(tmp_path, ["raise"])
    evalwright(tmp_path, "run", "eval.yaml")
    (tmp_path / "project" / ("x" * 200)).mkdir()
    inner = os.open(tmp_path / "project" / ("x" * 200), os.O_RDONLY)
    for _ in range(20):
        os.mkdir("x" * 200, dir_fd=inner)
        outer, inner = inner, os.open("x" * 200, os.O_RDONLY, dir_fd=inner)
        os.close(outer)
    os.close(inner)
    run = newest(tmp_path)
    retried = evalwright(tmp_path, "retry", run)
    assert "workspace_error" in retried.stdout, retried.stderr
    assert not (run / "artifacts" / "c0" / "v").exists()


def test_no_secret_is_in_any_stored_file(tmp_path):
    make(tmp_path, ["secret"])
    evalwright(tmp_path, "run", "eval.yaml", SHOP_API_KEY="sk-canary-7316")
    run = newest(tmp_path)
    stored = [path for path in run.rglob("*") if path.is_file()]
    assert (run / "artifacts" / "c0" / "v" / "after" / "log") in stored
    assert [path for path in stored if b"canary" in path.read_bytes()] == []


def test_a_command_works_in_its_cell(tmp_path):
    make(tmp_path, ["x"])
    suite = (tmp_path / "eval.yaml").read_text()
    command = '[/bin/sh, -c, "echo changed > calc.py; echo $PWD = $EVALWRIGHT_WORKSPACE"]'
    suite = suite.replace('adapter: python_function, target: "agent:edit"', f"adapter: cli, command: {command}")
    (tmp_path / "eval.yaml").write_text(suite)
    assert evalwright(tmp_path, "run", "eval.yaml").returncode == 0
    folder, _, told = rows(newest(tmp_path), "traces")[0]["output"]["final_answer"].partition(" = ")
    assert folder == told
    assert Path(folder).is_relative_to(tmp_path.resolve() / "workspaces")


def test_what_was_changed_is_shown_unless_it_is_not_wanted(tmp_path):
    make(tmp_path, ["edit"])
    evalwright(tmp_path, "run", "eval.yaml")
    run = newest(tmp_path)
    shown = evalwright(tmp_path, "inspect", run).stdout
    assert "~ calc.py" in shown
    assert "+changed by c0" in shown
    assert "calc.py" not in evalwright(tmp_path, "inspect", run, "--no-artifacts").stdout.replace("calc.py,keep.md", "")


def test_a_suite_without_the_folder_to_copy_is_refused_with_its_line(tmp_path):
    make(tmp_path, ["edit"])
    (tmp_path / "eval.yaml").write_text(
        (tmp_path / "eval.yaml").read_text().replace("copy_from: project", "copy_from: x")
    )
    refused = evalwright(tmp_path, "run", "eval.yaml")
    assert refused.returncode == 2
    assert "eval.yaml:6  workspace.copy_from" in refused.stderr
    assert not (tmp_path / "runs").exists()


def test_paths_of_evaluators_lead_from_the_folder_of_the_suite(tmp_path):
    suite = tmp_path / "suite"
    suite.mkdir()
    make(suite, ["edit"])
    (suite / "tools").mkdir()
    (suite / "want.patch").write_text("something else")
    checks = (
        "  - {name: patch, type: git_diff, config: {expected_patch_path: want.patch}}\n"
        "  - {name: there, type: command, config: {cmd: [/bin/pwd], cwd: tools}}\n"
    )
    text = (suite / "eval.yaml").read_text().replace("base_path: workspaces", f"base_path: {tmp_path}")
    (suite / "eval.yaml").write_text(text.replace("evaluators:\n", f"evaluators:\n{checks}"))
    ended = evalwright(tmp_path, "run", "suite/eval.yaml")
    assert ended.returncode == 1, ended.stderr
    by_name = {row["evaluator"]: row for row in rows(newest(tmp_path), "results")}
    assert by_name["patch"]["reason"].startswith("the changes differ from the patch")
    assert by_name["there"]["detail"]["stdout"] == f"{suite.resolve() / 'tools'}\n"
