"""Files, folders and globs in one command."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from acceptance.projects import EVAL, Project, interrupted, project, rows


@pytest.fixture
def both(tmp_path: Path) -> Project:
    """Two suites whose systems are modules of the same name, and a file that is none."""
    project(tmp_path / "one", {"a": "thanks"})
    project(tmp_path / "deep" / "two", {"b": "no"})
    (tmp_path / "one" / "notes.yaml").write_text("x: 1\n")
    (tmp_path / "one" / ".hidden").mkdir()
    (tmp_path / "one" / ".hidden" / "eval.yaml").write_text("eval: 5\n")
    return Project(tmp_path)


def cases(folder: Path, out: str) -> list[list[str]]:
    return [[row["case_id"] for row in rows(folder / line, "traces.jsonl")] for line in out.splitlines()]


ANOTHER_WAY = pytest.mark.slow("a run of each suite again")


@pytest.mark.slow("a run for each of several suites")
@pytest.mark.parametrize(
    "paths",
    [
        pytest.param(["one", "deep"], marks=ANOTHER_WAY),
        pytest.param(["one/eval.yaml", "**/two/*.yaml"], marks=ANOTHER_WAY),
        ["one", "one", "deep/*"],
    ],
)
def test_each_suite_gets_a_run(both: Project, paths: list[str]) -> None:
    ended = both.evalwright("run", "--quiet", *paths)
    assert (cases(both.folder, ended.out), ended.code) == ([["a"], ["b"]], 1)
    assert "2 suites: 1 passed, 1 did not pass" in ended.err


@pytest.mark.slow("a run for each of two suites")
def test_suites_that_did_not_pass_are_named_at_the_end(both: Project) -> None:
    *_, counts, which = both.evalwright("run", "--quiet", "one", "deep").err.splitlines()
    assert (counts.startswith("2 suites"), which.split()) == (True, ["did", "not", "pass", "deep/two/eval.yaml"])


@pytest.mark.slow("two commands over two suites")
def test_options_are_those_of_each_run(both: Project) -> None:
    out = both.evalwright("run", "one", "deep", "--quiet", "--trials", "2", "--tag", "a", "--tag", "b").out
    assert cases(both.folder, out) == [["a", "a"], ["b", "b"]]


@pytest.mark.slow("several runs")
def test_each_run_gets_the_choices_that_fit_it(both: Project) -> None:
    ended = both.evalwright("run", "one", "deep", "--quiet", "--case", "a", "--case", "b*")
    assert (cases(both.folder, ended.out), ended.code) == ([["a"], ["b"]], 1)


@pytest.mark.slow("several runs")
def test_files_in_which_no_case_fits_are_left_out(both: Project) -> None:
    assert cases(both.folder, both.evalwright("run", ".", "--quiet", "--case", "b*").out) == [["b"]]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ([".", "--case", "zzz"], "no case matches zzz"),
        ([".", "--case", "a", "--case", "zzz", "--tag", "b"], "no case matches a, zzz, tag b"),
        (["one", "deep", "--case", "?", "--case", "zzz"], "no case matches zzz"),
        (["one/*.toml"], "contains no suite"),
        (["one", "gone"], "gone"),
        (["one", "deep", "--retry-only-failed", "x"], "one suite"),
        (["one", "deep", "--output", "x"], "--output takes one suite"),
    ],
)
def test_what_means_nothing_is_refused(both: Project, arguments: list[str], said: str) -> None:
    ended = both.evalwright("run", *arguments)
    assert (ended.code, said in ended.err) == (2, True)


def test_mistakes_of_all_are_told_before_anything_runs(both: Project) -> None:
    for place in ("one", "deep/two"):
        (both.folder / place / "eval.yaml").write_text("eval: {name: shop}\nsystms: []\n")
    ended = both.evalwright("run", ".")
    assert (ended.code, "one/eval.yaml" in ended.err, "two/eval.yaml" in ended.err) == (2, True, True)
    assert ended.out == ""


def test_missing_keys_of_all_are_told_before_anything_runs(both: Project) -> None:
    judge = "{name: judge, type: llm_judge, config: {model: MODEL, nl_assertions: [fine]}}\noutput:"
    for place, model in (("deep/two", "gpt-4o-mini"), ("three", "claude-sonnet-4-5")):
        project(both.folder / place, {"a": "thanks"}, EVAL.replace("output:", f"  - {judge.replace('MODEL', model)}"))
    ended = both.evalwright("run", ".", OPENAI_API_KEY="", ANTHROPIC_API_KEY="")
    assert (ended.code, ended.out) == (2, "")
    assert ["_API_KEY is not set" in line for line in ended.err.splitlines()] == [True, True, False]
    assert not [*both.folder.rglob("runs")]


def test_what_fits_no_format_is_named(both: Project) -> None:
    assert "notes.yaml: format not recognised" in both.evalwright("validate", ".").err
    cases = "cases:\n  - {id: a, input: {do: thanks}}\n"
    (both.folder / "cases.yaml").write_text(cases)
    suite = EVAL.replace("type: jsonl, path: cases.jsonl", "type: yaml, path: cases.yaml")
    (both.folder / "of_yaml.yaml").write_text(suite)
    assert "cases.yaml" not in both.evalwright("validate", ".").err


def test_the_dataset_of_a_suite_is_not_named_as_fitting_no_format(tmp_path: Path) -> None:
    its = project(tmp_path, {"a": "thanks"})
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "cases.yaml").write_text("cases:\n  - {id: a, input: {do: thanks}}\n")
    suite = EVAL.replace("type: jsonl, path: cases.jsonl", "type: yaml, path: data/cases.yaml")
    (tmp_path / "eval.yaml").write_text(suite)
    (tmp_path / "notes.yaml").write_text("hello: there\n")
    for command in (["run", "."], ["run", ".", "--dry-run"], ["dataset", "lint", "."]):
        ended = its.evalwright(*command)
        assert ("notes.yaml: format not recognised" in ended.err, "cases.yaml" in ended.err) == (True, False), command


def test_copies_of_suites_in_stored_runs_are_no_suites(both: Project) -> None:
    both.evalwright("run", "one")
    assert "runs" not in both.evalwright("validate", ".").out


def test_folders_are_checked(both: Project) -> None:
    (both.folder / "deep" / "two" / "eval.yaml").write_text("eval: {name: shop}\nsystms: []\n")
    ended = both.evalwright("validate", "one", "deep")
    assert (ended.code, "ok: one/eval.yaml: 1 case" in ended.out) == (2, True)


def test_folders_are_checked_as_one_object(both: Project) -> None:
    document = json.loads(both.evalwright("validate", ".", "--json").out)
    assert (document["cases"], document["variants"]) == (2, 2)


@pytest.mark.slow("a run that is interrupted while it waits")
def test_an_interrupt_ends_all(tmp_path: Path) -> None:
    project(tmp_path / "one", {"a": "slow"})
    project(tmp_path / "two", {"b": "thanks"})
    ended = interrupted(tmp_path, "run", "one", "two", "-q", begun=lambda: any(tmp_path.rglob("plan.json")))
    assert (ended.code, "1 not run" in ended.err) == (130, True)


@pytest.mark.slow("several runs")
def test_variables_of_one_suite_reach_no_other(tmp_path: Path) -> None:
    case = {"id": "a", "input": "x", "expected_outcome": "y"}
    for name in ("one", "two"):
        judged = {**case, "execution": {"evaluators": [{"name": "c", "type": "contains", "value": name}]}}
        (tmp_path / name).mkdir()
        (tmp_path / name / "EVAL.yaml").write_text(json.dumps({"name": name, "evalcases": [judged]}))
        target = {"name": "default", "provider": "mock", "response": "${{ ANSWER }}"}
        (tmp_path / name / "targets.yaml").write_text(json.dumps({"targets": [target]}))
        (tmp_path / name / ".env").write_text(f"ANSWER={name}\n")
    assert "2 suites: 2 passed" in Project(tmp_path).evalwright("run", "one", "two", "--quiet").err
