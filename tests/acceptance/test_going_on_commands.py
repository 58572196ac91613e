"""`resume`, `retry` and `re-evaluate`: what stays, what is done again, and what is said."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml

from acceptance.projects import EVAL, Project, interrupted, project, rows


@pytest.fixture
def stopped(tmp_path: Path) -> tuple[Project, Path]:
    """A run that Ctrl-C stopped while its second case was running."""
    made = project(tmp_path, {"a": "thanks", "b": "slow"})

    def begun() -> bool:
        return any(path.stat().st_size for path in tmp_path.glob("runs/[!.]*/verdicts.jsonl"))

    ended = interrupted(tmp_path, "run", "eval.yaml", "--quiet", "--concurrency", "1", begun=begun)
    assert ended.code == 130
    return made, tmp_path / ended.last_line


def test_an_interrupted_run_says_partial(stopped: tuple[Project, Path]) -> None:
    assert yaml.safe_load((stopped[1] / "summary.yaml").read_text())["status"] == "partial"


def test_resume_runs_what_is_missing(stopped: tuple[Project, Path]) -> None:
    made, run = stopped
    agent = made.folder / "agent.py"
    agent.write_text(agent.read_text().replace("sleep(30)", "sleep(0)"))
    (made.folder / "cases.jsonl").write_text('{"id": "a", "input": {"say": "no"}}\n')
    ended = made.evalwright("resume", run)
    assert "1 of 2 cells were already finished; changed since the run was made: cases.jsonl, agent.py" in ended.out
    assert yaml.safe_load((run / "summary.yaml").read_text())["status"] == "complete"
    assert [row["case_id"] for row in rows(run, "traces.jsonl")] == ["a", "b"]


def test_resume_of_a_finished_run_has_nothing_to_do(tmp_path: Path) -> None:
    made = project(tmp_path, {"a": "thanks"})
    ended = made.evalwright("resume", made.run())
    assert (ended.code, "nothing to do" in ended.out) == (0, True)


def test_retry_runs_errored_cells_again_and_counts_the_whole_run(tmp_path: Path) -> None:
    made = project(tmp_path, {"a": "thanks", "b": "raise", "c": "thanks"})
    run = made.run()
    agent = tmp_path / "agent.py"
    agent.write_text(agent.read_text().replace('"final_answer": wanted', '"final_answer": "thanks"'))
    (tmp_path / "mended").touch()
    ended = made.evalwright("retry", run, "--json")
    variant = json.loads(ended.out)["summary"]["variants"][0]
    assert (ended.code, variant["cells"]["pass"], variant["cells"]["error"]) == (0, 3, 0)


def test_files_that_are_as_they_were_are_not_named(tmp_path: Path) -> None:
    made = project(tmp_path, {"a": "no"})
    out = made.evalwright("retry", made.run(), "--include-evaluator-failures").out
    assert ("1 finished cell run again" in out, "changed since" in out) == (True, False)


def test_the_commands_of_evalh_exit_as_there(tmp_path: Path) -> None:
    made = project(tmp_path, {"a": "please", "b": "raise"})
    run = made.evalwright("evalh", "run", "eval.yaml", "-q", "--filter", "id=b")
    assert (run.code, [row["status"] for row in rows(made.folder / run.last_line, "verdicts.jsonl")]) == (0, ["error"])
    codes = [
        made.evalwright(*words, run.last_line, "-q").code for words in (["evalh", "retry-failed"], ["retry-failed"])
    ]
    assert (codes, rows(made.folder / run.last_line, "traces.jsonl")[-1]["attempt"]) == ([0, 3], 3)
    refused = made.evalwright("evalh", "run", "gone.yaml")
    assert (refused.code, "gone.yaml  does not exist" in refused.err) == (1, True)


def test_retry_without_errors_has_nothing_to_do(tmp_path: Path) -> None:
    made = project(tmp_path, {"a": "no"})
    assert "nothing to do" in made.evalwright("retry", made.run()).out


def test_retry_runs_failed_cells_again_when_asked(tmp_path: Path) -> None:
    made = project(tmp_path, {"a": "no", "b": "thanks"})
    run = made.run()
    made.evalwright("run", "eval.yaml", "--retry-only-failed", run, "--include-evaluator-failures")
    made.evalwright("retry", run, "--include-evaluator-failures")
    assert [row["attempt"] for row in rows(run, "traces.jsonl") if row["case_id"] == "a"] == [1, 2, 3]
    assert [row["attempt"] for row in rows(run, "traces.jsonl") if row["case_id"] == "b"] == [1]


@pytest.mark.parametrize("command", ["retry", "re-evaluate"])
def test_checks_in_a_file_beside_the_suite_are_found_from_anywhere(tmp_path: Path, command: str) -> None:
    own = '{name: polite, type: python_function, config: {function: "checks:polite"}}'
    text = EVAL.replace("{name: polite, type: contains_text, config: {all_of: [thanks]}}", own)
    made = project(tmp_path / "shop", {"a": "thanks", "b": "raise"}, text)
    (made.folder / "checks.py").write_text("def polite(output):\n    return 'thanks' in output\n")
    run = made.run()
    elsewhere = tmp_path / "elsewhere"  # `python -m` itself looks for modules where it is called
    elsewhere.mkdir()
    ended = Project(elsewhere).evalwright(command, run, "--json")
    assert json.loads(ended.out)["summary"]["variants"][0]["cells"]["pass"] == 1, ended.err


def test_a_flag_that_needs_another_says_so(tmp_path: Path) -> None:
    ended = project(tmp_path, {"a": "no"}).evalwright("run", "eval.yaml", "--include-evaluator-failures")
    assert (ended.code, "--retry-only-failed" in ended.err) == (2, True)


def test_re_evaluate_judges_again_without_the_system(tmp_path: Path) -> None:
    made = project(tmp_path, {"a": "please", "b": "thanks"})
    run = made.run()
    (tmp_path / "agent.py").write_text("raise SystemExit('must not be imported')")
    ended = made.evalwright("re-evaluate", run, "--json")
    assert (ended.code, json.loads(ended.out)["summary"]["variants"][0]["pass_rate"]) == (1, 0.5)


@pytest.mark.slow("three commands")
def test_re_evaluate_takes_the_evaluators_of_another_suite(tmp_path: Path) -> None:
    made = project(tmp_path, {"a": "please", "b": "thanks"})
    run = made.run()
    (tmp_path / "stricter.yaml").write_text(EVAL.replace("[thanks]", "[please]"))
    (tmp_path / "agent.py").write_text("raise SystemExit('must not be imported')")
    assert made.evalwright("re-evaluate", run, "--suite", "stricter.yaml").code == 1
    assert made.evalwright("re-evaluate", run, "--suite", "stricter.yaml", "--exit-zero").code == 0
    assert {row["case_id"]: row["status"] for row in rows(run, "verdicts.jsonl")} == {"a": "pass", "b": "fail"}


def test_re_evaluate_adds_an_evaluator_that_the_suite_got_since(tmp_path: Path) -> None:
    made = project(tmp_path, {"a": "thanks"})
    run = made.run()
    added = "  - {name: quick, type: latency_under, config: {max_ms: 60000}}\noutput:"
    (tmp_path / "eval.yaml").write_text(EVAL.replace("output:", added))
    assert made.evalwright("re-evaluate", run, "--add", "quick").code == 0
    assert sorted(row["evaluator"] for row in rows(run, "results.jsonl")) == ["polite", "quick"]


def test_a_run_of_ours_whose_plan_is_lost_is_not_taken_for_one_of_the_original(tmp_path: Path) -> None:
    made = project(tmp_path, {"a": "thanks", "b": "no"})
    run = made.run()
    (tmp_path / run / "plan.json").unlink()
    assert made.evalwright("re-evaluate", run).code == 1
    ended = made.evalwright("resume", run)
    assert (ended.code, "its plan.json is missing" in ended.err) == (2, True)
    (tmp_path / run / "cases.jsonl").unlink()
    assert made.evalwright("re-evaluate", run).code == 0


def test_an_evaluator_that_is_nowhere_is_an_input_error(tmp_path: Path) -> None:
    made = project(tmp_path, {"a": "thanks"})
    ended = made.evalwright("re-evaluate", made.run(), "--add", "plite")
    assert ended.code == 2
    assert 'did you mean "polite"?' in ended.err


def test_a_folder_that_is_no_run_is_an_input_error(tmp_path: Path) -> None:
    ended = project(tmp_path, {}).evalwright("resume", ".")
    assert (ended.code, "traces.jsonl" in ended.err) == (2, True)


@pytest.mark.slow("a judgement that is interrupted while it waits")
def test_an_interrupted_re_evaluation_says_so_and_keeps_the_judgements(tmp_path: Path) -> None:
    made = project(tmp_path, {"a": "thanks", "b": "no"})
    run = made.run()
    before = (run / "results.jsonl").read_bytes()
    begun = tmp_path / "begun"
    judge = {"name": "slow", "type": "code_judge", "config": {"script": f"touch {begun}; sleep 30"}}
    suite = yaml.safe_load((tmp_path / "eval.yaml").read_text()) | {"evaluators": [judge], "pass_criteria": {}}
    (tmp_path / "slow.yaml").write_text(yaml.safe_dump(suite))
    ended = interrupted(tmp_path, "re-evaluate", str(run), "--suite", "slow.yaml", begun=begun.exists)
    assert (ended.code, (run / "results.jsonl").read_bytes()) == (130, before)
    assert "Task" not in ended.err


NEEDS_TOO_MUCH_SPACE = """
import resource
def run(case, variant):
    resource.setrlimit(resource.RLIMIT_FSIZE, (5000, resource.RLIM_INFINITY))
    return {"final_answer": 5000 * "thanks"}
"""


def test_a_run_that_cannot_be_written_says_how_it_continues(tmp_path: Path) -> None:
    made = project(tmp_path, {"a": "thanks"})
    (tmp_path / "agent.py").write_text(NEEDS_TOO_MUCH_SPACE)
    ended = made.evalwright("run", "eval.yaml")
    [run] = (tmp_path / "runs").iterdir()
    assert (ended.code, ended.err.splitlines()[-1]) == (5, f"Next: evalwright resume runs/{run.name}")


MOVES_ITS_RUN_FOLDER = """
import pathlib
def run(case, variant):
    [run] = pathlib.Path("runs").iterdir()
    run.rename("moved")
    return {"final_answer": "thanks"}
"""


def test_a_run_whose_folder_was_moved_continues_at_its_new_place(tmp_path: Path) -> None:
    made = project(tmp_path, {"a": "thanks"})
    (tmp_path / "agent.py").write_text(MOVES_ITS_RUN_FOLDER)
    ended = made.evalwright("run", "eval.yaml")
    last = "The run is gone. If it was moved: evalwright resume NEW_PLACE"
    assert (ended.code, ended.err.splitlines()[-1]) == (5, last)
    assert made.evalwright("resume", "moved").code == 0


def test_a_run_whose_traces_were_deleted_names_no_command_that_could_not_continue_it(tmp_path: Path) -> None:
    made = project(tmp_path, {"a": "thanks"})
    (tmp_path / "agent.py").write_text(
        MOVES_ITS_RUN_FOLDER.replace('run.rename("moved")', '(run / "traces.jsonl").unlink()')
    )
    ended = made.evalwright("run", "eval.yaml")
    assert ended.code == 5
    assert ended.err.splitlines()[-1].endswith("traces.jsonl: it was deleted or replaced")
