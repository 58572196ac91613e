"""The action for GitHub: its shell steps, run as the runner runs them, with a fake `gh` and fake files."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from shutil import which
from typing import Any

import pytest
import yaml

from acceptance.projects import outputs, project

ACTION = Path(__file__).parents[2] / "action.yml"
DOCUMENT: dict[str, Any] = yaml.safe_load(ACTION.read_text())
STEPS: list[dict[str, Any]] = DOCUMENT["runs"]["steps"]
GH = """#!/bin/sh
printf '%s\\n' "$*" >> "$CALLS"
case "$*" in
  "run list"*) shift $(($# - 1)); echo "$RUNS" | jq -r "$1" ;;
  "run download 76"*) echo "no artifact" >&2; exit 1 ;;
  "run download"*) [ -n "$BASELINE_RUN" ] && mkdir -p "$RUNNER_TEMP/evalwright-baseline" \\
    && cp -R "$BASELINE_RUN" "$RUNNER_TEMP/evalwright-baseline" ;;
  *"--paginate"*) echo "$COMMENT_ID" ;;
  *"/branches/main") ;;
  *"/branches/"*) echo "gh: Branch not found (HTTP 404)" >&2; exit 1 ;;
  *) cp "$RUNNER_TEMP/evalwright-comment.md" "$CALLS.body" ;;
esac
"""
needs_jq = pytest.mark.skipif(which("jq") is None, reason="needs jq, in place of the one in gh")


class Runner:
    """Runs the steps of the action one after the other: what it puts into `${{ }}` is what the runner would."""

    def __init__(self, folder: Path, inputs: dict[str, str], **environment: str) -> None:
        self.folder, self.temp = folder, folder / "temp"
        self.temp.mkdir()
        self.inputs = {name: one.get("default", "") for name, one in DOCUMENT["inputs"].items()} | inputs
        self.steps: dict[str, dict[str, str]] = {"upload": {"artifact-url": "https://e.org/artifacts/1"}}
        tools = folder / "tools"
        tools.mkdir()
        (tools / "gh").write_text(GH)
        (tools / "evalwright").write_text(f'#!/bin/sh\nexec {sys.executable} -m evalwright "$@"\n')
        for tool in tools.iterdir():
            tool.chmod(0o755)
        self.summary, self.calls = folder / "summary.md", folder / "calls"
        self.summary.touch()
        self.calls.touch()
        self.environment = {
            **os.environ,
            "PATH": f"{tools}{os.pathsep}{os.environ['PATH']}",
            "RUNNER_TEMP": str(self.temp),
            "GITHUB_STEP_SUMMARY": str(self.summary),
            "CALLS": str(self.calls),
            "RUNS": '[{"databaseId": 77, "event": "push"}]',
            **environment,
        }

    def value(self, text: str) -> str:
        def found(match: re.Match[str]) -> str:
            kind, _, rest = match[1].partition(".")
            if kind == "inputs":
                return self.inputs[rest]
            if kind == "steps":
                step, _, name = rest.partition(".outputs.")
                return self.steps.get(step, {}).get(name, "")
            return {"github.repository": "o/r", "github.event.pull_request.number": "5"}.get(match[1], "main")

        return re.sub(r"\$\{\{ ([\w.-]+) \}\}", found, str(text))

    def run(self, name: str) -> subprocess.CompletedProcess[str]:
        step = next(step for step in STEPS if step.get("name") == name)
        output = self.folder / "output"
        output.write_text("")
        ended = subprocess.run(
            ["bash", "--noprofile", "--norc", "-e", "-o", "pipefail", "-c", step["run"]],
            cwd=self.folder,
            env={
                **self.environment,
                "GITHUB_OUTPUT": str(output),
                **{key: self.value(text) for key, text in step["env"].items()},
            },
            capture_output=True,
            text=True,
            check=False,
            timeout=120,
        )
        found = dict(re.findall(r"^(\w+)=(.*)$", output.read_text(), re.MULTILINE)) | outputs(output)
        self.steps[step.get("id", name)] = found
        return ended

    def ok(self, name: str) -> str:
        ended = self.run(name)
        assert ended.returncode == 0, ended.stdout + ended.stderr
        return ended.stdout + ended.stderr


def test_every_input_is_used_and_none_reaches_a_script_but_by_the_environment() -> None:
    text = ACTION.read_text()
    for name in DOCUMENT["inputs"]:
        assert re.search(rf"inputs\.{name}\b", text), name
    for step in STEPS:
        assert "${{" not in step.get("run", "")
        if "run" in step:
            used = set(re.findall(r"\$\{?([A-Z][A-Z_]+)", step["run"]))
            known = {"RUNNER_TEMP", "GITHUB_OUTPUT", "GITHUB_STEP_SUMMARY", "PIPESTATUS"}
            assert used - known <= step["env"].keys(), step["name"]
            assert step["env"].keys() - used <= {"GH_TOKEN", "GH_REPO"}, step["name"]
        else:
            assert re.fullmatch(r"[\w./-]+@[0-9a-f]{40}", step["uses"])


def test_the_page_has_every_input_and_output_and_its_workflows_use_none_but_these() -> None:
    page = (ACTION.parent / "docs" / "ci.md").read_text()
    for name in (*DOCUMENT["inputs"], *DOCUMENT["outputs"]):
        assert f"`{name}`" in page, name
    blocks = [
        yaml.safe_load(text) for text in re.findall(r"^```yaml file=\S+\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    ]
    steps = [step for block in blocks for job in block.get("jobs", {}).values() for step in job["steps"]]
    used = [step["with"].keys() for step in steps if step.get("uses", "").startswith("OWNER/evalwright@")]
    assert len(used) == 2
    assert all(keys <= DOCUMENT["inputs"].keys() for keys in used)
    assert all(
        re.fullmatch(r"OWNER/evalwright@v1|[\w./-]+@[0-9a-f]{40}", step["uses"]) for step in steps if "uses" in step
    )


def test_what_is_installed_is_one_word(tmp_path: Path) -> None:
    (tmp_path / "bin").mkdir()
    python = tmp_path / "bin" / "python"
    python.write_text('#!/bin/sh\nfor word in "$@"; do echo "$word"; done | tail -n 1 > "$CALLS"\n')
    python.chmod(0o755)
    for version, wanted in (("", "evalwright"), ("1.2", "evalwright==1.2"), ("./x; echo no", "./x; echo no")):
        folder = tmp_path / str(len(version))
        folder.mkdir()
        runner = Runner(folder, {"suite": "eval.yaml", "version": version})
        runner.environment["PATH"] = f"{tmp_path / 'bin'}{os.pathsep}{runner.environment['PATH']}"
        runner.ok("Install evalwright")
        assert runner.calls.read_text() == f"{wanted}\n"


@needs_jq
@pytest.mark.slow("runs every step of the action")
def test_a_pull_request_that_makes_it_worse_is_compared_commented_and_fails(tmp_path: Path) -> None:
    made = project(tmp_path, {f"c{i}": "thanks" for i in range(14)})
    before = made.run("--out", "before")
    (tmp_path / "agent.py").write_text("def run(case, variant):\n    return {'final_answer': 'no'}\n")
    inputs = {"suite": "eval.yaml", "baseline": "main", "args": "--case 'c*' --concurrency 2", "budget": "1.5"}
    runner = Runner(tmp_path, inputs | {"fail-on": "regression"}, BASELINE_RUN=str(before.absolute()), COMMENT_ID="123")
    runner.ok("Fetch the baseline")
    assert "--branch main" in runner.calls.read_text()
    runner.ok("Run the suite")
    assert runner.steps["run"]["exit_code"] == "1"
    assert "A passed" in runner.ok("Compare with the baseline")
    runner.ok("Make the pages")
    pages = Path(runner.steps["run"]["out"]) / "report"
    assert (pages / "index.html").is_file()
    assert list(pages.glob("runs/*/cells/*.html"))
    assert "::error " in runner.ok("Report")
    assert runner.summary.read_text().startswith("**Worse by more than 2 pp: −100.0 pp")
    assert runner.steps["report"]["worse"] == "14"
    runner.ok("Comment")
    assert "--method PATCH repos/o/r/issues/comments/123 -F body=@" in runner.calls.read_text()
    body = Path(f"{runner.calls}.body").read_text()
    assert body.startswith("**Worse by more than 2 pp: −100.0 pp")
    assert "The run and its pages are in [this artifact](https://e.org/artifacts/1)" in body
    assert body.endswith("\n<!-- evalwright: eval.yaml -->\n")
    assert runner.run("Verdict").returncode == 1


@needs_jq
@pytest.mark.slow("runs most steps of the action")
def test_without_a_baseline_the_run_alone_is_reported(tmp_path: Path) -> None:
    made = project(tmp_path, {"a": "thanks", "b": "no"})
    runner = Runner(made.folder, {"suite": "eval.yaml", "baseline": "main"}, COMMENT_ID="")
    assert "::notice title=evalwright::no baseline" in runner.ok("Fetch the baseline")
    runner.ok("Run the suite")
    runner.ok("Report")
    assert "The run is in [this artifact](https://e.org/artifacts/1)" in runner.summary.read_text()
    runner.ok("Comment")
    assert "The run is in [this artifact](https://e.org/artifacts/1)" in Path(f"{runner.calls}.body").read_text()
    assert "--method POST repos/o/r/issues/5/comments" in runner.calls.read_text()
    codes = {}
    for wanted in ("failure", "regression", "never"):
        runner.inputs["fail-on"] = wanted
        codes[wanted] = runner.run("Verdict").returncode
    assert codes == {"failure": 1, "regression": 0, "never": 0}


@pytest.mark.parametrize(
    ("fail_on", "run", "compare", "ends"),
    [
        ("failure", "1", "0", 1),
        ("regression", "1", "0", 0),
        ("regression", "1", "1", 1),
        ("regression", "1", "2", 2),  # the runs cannot be compared
        ("regression", "3", "0", 3),  # cells in error are no regressions
        ("regression", "1", "", 0),
        ("regression", "3", "", 3),
        ("never", "3", "1", 0),
    ],
)
def test_what_fails_the_step(tmp_path: Path, fail_on: str, run: str, compare: str, ends: int) -> None:
    runner = Runner(tmp_path, {"fail-on": fail_on})
    runner.steps = {"run": {"exit_code": run}, "compare": {"code": compare}}
    assert runner.run("Verdict").returncode == ends


@pytest.mark.parametrize(
    ("taken", "code", "calls", "warns"),
    [
        ("*", 0, 1, False),
        ("*", 3, 1, False),  # a record cannot be read: the pages were made
        ("*not-passed", 0, 2, False),
        ("*not-passed", 3, 2, False),
        ("*/report?--only*", 0, 3, False),  # too many changed cases
        ("none", 0, 3, True),
    ],
)
def test_a_run_too_large_for_its_pages_is_kept_and_reported(
    tmp_path: Path, taken: str, code: int, calls: int, warns: bool
) -> None:
    runner = Runner(tmp_path, {})
    runner.steps = {"run": {"run": "a run", "out": "out"}, "compare": {"run": "before"}}
    fake = f'#!/bin/sh\necho "$*" >> "$CALLS"\ncase "$*" in {taken}) exit {code} ;; *) exit 2 ;; esac\n'
    (tmp_path / "tools" / "evalwright").write_text(fake)
    assert ("::warning::" in runner.ok("Make the pages")) is warns
    called = runner.calls.read_text().splitlines()
    assert called[0] == "view a run --bundle out/report --compare before"
    assert len(called) == calls


@needs_jq
def test_the_baseline_is_the_newest_artifact_of_the_branches_own_runs(tmp_path: Path) -> None:
    """A fork may call its branch main, too, and the newest run may have failed before it had anything to keep."""
    listed = [(75, "pull_request"), (76, "push"), (77, "schedule"), (78, "push")]
    runs = json.dumps([{"databaseId": number, "event": event} for number, event in listed])
    kept = tmp_path / "kept"
    kept.mkdir()
    (kept / "plan.json").touch()
    runner = Runner(tmp_path, {"suite": "eval.yaml", "baseline": "main"}, RUNS=runs, BASELINE_RUN=str(kept))
    runner.ok("Fetch the baseline")
    asked = [call.split()[2] for call in runner.calls.read_text().splitlines() if call.startswith("run download")]
    assert asked == ["76", "77"]
    assert runner.steps["baseline"]["run"].endswith("/evalwright-baseline/kept")


def test_a_baseline_that_is_neither_a_folder_nor_a_branch_is_refused(tmp_path: Path) -> None:
    made = project(tmp_path, {"a": "thanks"})
    ended = Runner(made.folder, {"suite": "eval.yaml", "baseline": "runs/lastt"}).run("Fetch the baseline")
    assert (ended.returncode, "neither a folder nor a branch runs/lastt" in ended.stdout) == (2, True)


def test_a_misspelt_fail_on_is_refused_before_anything_runs(tmp_path: Path) -> None:
    runner = Runner(tmp_path, {"suite": "nowhere.yaml", "fail-on": "regresion"})
    ended = runner.run("Run the suite")
    assert ended.returncode == 2
    assert "expected failure, regression or never, found regresion; nothing was run" in ended.stdout
    assert not ended.stderr


@pytest.mark.slow("starts an interpreter")
def test_a_suite_that_cannot_run_fails_at_once(tmp_path: Path) -> None:
    runner = Runner(tmp_path, {"suite": "nowhere.yaml", "fail-on": "never"})
    assert runner.run("Run the suite").returncode == 2
    assert runner.steps["run"]["exit_code"] == "2"
