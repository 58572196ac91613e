"""`list`, on runs that are made once, and of what is registered."""

from __future__ import annotations

import json
import os
import shutil
from contextlib import redirect_stderr, redirect_stdout
from io import StringIO
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
import yaml

from acceptance.projects import Project, project, run_of
from evalwright.cli.commands import exit_code_of
from evalwright.cli.list import command as list_command
from evalwright.stores.local_files import LocalFiles
from evalwright.testing import a_plan
from unprivileged import as_nobody


def test_list_runs_has_a_line_for_each(made: Project) -> None:
    ended = made.evalwright("list", "runs", "a")
    assert (ended.code, ended.err) == (0, "")
    assert ended.out.splitlines()[1].endswith("complete      8  v 100.0%, w 66.7%")


def _listed_by_nobody(runs: Path) -> str:
    with redirect_stdout(StringIO()) as out, redirect_stderr(out):
        exit_code_of(list_command, ["runs", str(runs)])
    return out.getvalue()


def test_a_run_that_this_user_may_not_read_hides_no_other_and_is_named() -> None:
    with TemporaryDirectory() as name:  # not in the folders of pytest, which only their owner may enter
        runs = Path(name)
        runs.chmod(0o755)
        for run_id in ("closed", "open"):
            LocalFiles(runs).create(a_plan(run_id=run_id), [], {}).close()
            for path in (runs / run_id, *(runs / run_id).iterdir()):
                path.chmod(0o755)
        (runs / "closed").chmod(0)
        lines = as_nobody(lambda: _listed_by_nobody(runs)).splitlines()
    assert f"warning: {runs / 'closed'} cannot be read: permission denied" in lines
    assert [line.split()[0] for line in lines if "complete" in line] == ["open"]


def test_on_a_narrow_screen_the_pass_rates_of_runs_are_a_table_below(made: Project, tmp_path: Path) -> None:
    shutil.copytree(run_of(made, "a"), tmp_path / f"2026-01-02T03-04-05_{'long' * 9}")
    lines = made.evalwright("list", "runs", tmp_path, COLUMNS="80").out.splitlines()
    assert max(map(len, lines)) <= 80
    assert [line.split()[0] for line in lines if line] == ["run", lines[1].split()[0]] * 2
    assert lines[-1].endswith("v 100.0%, w 66.7%")


def test_a_run_of_many_variants_is_listed_on_one_line(made: Project, tmp_path: Path) -> None:
    run = shutil.copytree(run_of(made, "a"), tmp_path / "run")
    summary = yaml.safe_load((run / "summary.yaml").read_text())
    summary["variants"] = [{**summary["variants"][0], "name": f"model-{'x' * 50}-{n}"} for n in range(20)]
    (run / "summary.yaml").write_text(yaml.safe_dump(summary))
    line = made.evalwright("list", "runs", tmp_path, COLUMNS="200").out.splitlines()[1]
    named = ", ".join(f"model-xxxxx…xxxxxxxxxx-{n} 100.0%" for n in range(3))
    assert line.endswith(f"  {named}, 17 more")
    assert len(json.loads(made.evalwright("list", "runs", tmp_path, "--json").out)[0]["pass_rates"]) == 20


def test_list_runs_says_which_are_being_written(made: Project, tmp_path: Path) -> None:
    run = shutil.copytree(run_of(made, "a"), tmp_path / "run")
    (run / ".lock").write_text(f"{os.getpid()} {os.uname().nodename}\n")  # as a retry does
    assert " running      8  v 100.0%" in made.evalwright("list", "runs", tmp_path).out
    (run / ".lock").unlink()
    assert " complete      8  v 100.0%" in made.evalwright("list", "runs", tmp_path).out


@pytest.mark.parametrize("name", ["plan.json", "store.json"])
def test_a_document_that_is_nested_too_deeply_hides_no_other_run(made: Project, tmp_path: Path, name: str) -> None:
    for copy in ("one", "two"):
        shutil.copytree(run_of(made, "a"), tmp_path / copy)
    (tmp_path / "one" / name).write_text('{"x":' + "[" * 100_000 + "]" * 100_000 + "}")
    ended = made.evalwright("list", "runs", tmp_path)
    assert ended.code == 0
    assert "  damaged\n" in ended.out
    assert "v 100.0%, w 66.7%\n" in ended.out
    assert made.evalwright("report", tmp_path / "one").code == 2


def test_list_finds_the_runs_of_a_suite_that_keeps_them_elsewhere(tmp_path: Path) -> None:
    suite = project(tmp_path, {"a": "thanks"})
    text = (tmp_path / "eval.yaml").read_text()
    (tmp_path / "eval.yaml").write_text(text.replace("path: runs", "path: kept"))
    assert suite.evalwright("list", "runs").out.startswith("no runs here; `evalwright list runs FOLDER`")
    assert suite.evalwright("run", "eval.yaml", "-q").out.startswith("kept/")
    assert suite.evalwright("list", "runs").out.count(" complete ") == 1


def test_list_of_a_folder_without_runs_says_so(made: Project) -> None:
    (made.folder / "empty").mkdir()
    assert made.evalwright("list", "runs", "empty").out == "no runs in empty\n"
    ended = made.evalwright("list", "runs", "nowhere")
    assert ended.code == 2
    assert "nowhere  there is no such folder" in ended.err


@pytest.mark.parametrize(
    ("kind", "name"),
    [
        ("evaluators", "contains_text"),
        ("targets", "python_function"),
        ("formats", "letta"),
        ("dialects", "native"),
        ("stores", "local_files"),
        ("datasets", "jsonl"),
        ("importers", "openai-messages"),
        ("reports", "markdown"),
    ],
)
def test_list_names_what_there_is_with_a_sentence(made: Project, kind: str, name: str) -> None:
    out = made.evalwright("list", kind).out
    assert any(line.split()[:1] == [name] and len(line.split()) > 2 for line in out.splitlines())


def test_list_evaluators_fits_80_columns_and_names_the_neighbour(made: Project) -> None:
    out = made.evalwright("list", "evaluators").out
    assert max(map(len, out.splitlines())) <= 80
    assert "\nlimits\n" in out
    assert "see cost (≤ the limit)" in out
    assert "in_test" not in out


def test_list_of_one_evaluator_has_its_keys_and_an_example_that_validates(made: Project, tmp_path: Path) -> None:
    out = made.evalwright("list", "evaluators", "tool_called").out
    assert ["tool_name", "a", "string"] in [line.split() for line in out.splitlines()]
    assert ["must_appear", "true", "a", "boolean"] in [line.split() for line in out.splitlines()]
    suite = tmp_path / "eval.yaml"
    (tmp_path / "cases.yaml").write_text("cases: [{id: a, input: {q: x}}]")
    head = (
        "eval: {name: x}\ndataset: {type: yaml, path: cases.yaml}\nsystems: [{name: s, adapter: cli, command: [cat]}]\n"
    )
    suite.write_text(f"{head}output: {{type: local_files, path: runs}}\n{out[out.index('evaluators:') :]}")
    ended = made.evalwright("validate", suite)
    assert (ended.code, ended.err) == (0, "")


def test_list_of_an_unknown_evaluator_names_the_nearest(made: Project) -> None:
    ended = made.evalwright("list", "evaluators", "cost_undr")
    assert ended.code == 2
    assert 'did you mean "cost_under"' in ended.err


def test_lists_as_json_are_whole(made: Project) -> None:
    listed = {entry["name"]: entry for entry in json.loads(made.evalwright("list", "evaluators", "--json").out)}
    assert listed["cost_under"]["see"]["cost"] == "≤ the limit"
    one = json.loads(made.evalwright("list", "evaluators", "cost_under", "--json").out)
    assert one["keys"] == [{"name": "max_usd", "type": "a number", "required": True, "default": None}]
    [run] = json.loads(made.evalwright("list", "runs", "a", "--json").out)
    assert (run["status"], run["cells"]) == ("complete", 8)
    assert "pixie_app" not in [entry["name"] for entry in json.loads(made.evalwright("list", "targets", "--json").out)]


def test_lists_say_what_each_thing_is_in_a_sentence(made: Project) -> None:
    about_its_code = ("Keys: ", "`", "Raises ", "The import format ")
    found = {
        (kind, entry["name"]): entry["description"]
        for kind in ("targets", "datasets", "stores", "mirrors", "exports", "importers", "workspaces", "reports")
        for entry in json.loads(made.evalwright("list", kind, "--json").out)
    }
    assert {key: said for key, said in found.items() if not said.endswith(".") or said.startswith(about_its_code)} == {}


def test_a_suite_is_no_run(tmp_path: Path) -> None:
    ended = project(tmp_path, {"a": "thanks"}).evalwright("inspect", "eval.yaml")
    assert (ended.code, "eval.yaml  is neither a run folder" in ended.err) == (2, True)
