from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from acceptance.projects import EVAL, TWO_SYSTEMS, Project, project, rows


@pytest.mark.parametrize(
    ("do", "code"),
    [
        ({"a": "thanks", "b": "thanks"}, 0),
        ({"a": "thanks", "b": "no"}, 1),
        ({"a": "no", "b": "raise"}, 3),
    ],
)
def test_the_exit_code_says_how_the_run_went(tmp_path: Path, do: dict[str, str], code: int) -> None:
    assert project(tmp_path, do).evalwright("run", "eval.yaml").code == code


def test_the_last_line_is_the_run_folder(tmp_path: Path) -> None:
    ended = project(tmp_path, {"a": "thanks"}).evalwright("run", "eval.yaml")
    assert (tmp_path / ended.last_line / "traces.jsonl").is_file()


def test_quiet_prints_the_run_folder_only(tmp_path: Path) -> None:
    ended = project(tmp_path, {"a": "thanks"}).evalwright("run", "eval.yaml", "--quiet")
    assert (tmp_path / ended.out.removesuffix("\n") / "traces.jsonl").is_file()
    assert ended.err == ""


def test_json_prints_one_object(tmp_path: Path) -> None:
    ended = project(tmp_path, {"a": "thanks", "b": "no"}).evalwright("run", "eval.yaml", "--json")
    document = json.loads(ended.out)
    assert document["gate"] == {"passed": False, "exit_code": 1}
    assert document["summary"]["variants"][0]["pass_rate"] == 0.5
    assert (tmp_path / document["run_dir"] / "traces.jsonl").is_file()


def test_the_table_has_rate_n_interval_and_means(tmp_path: Path) -> None:
    out = project(tmp_path, {"a": "thanks", "b": "no"}).evalwright("run", "eval.yaml").out
    line = next(line for line in out.splitlines() if line.startswith("  v "))
    assert line.split()[1:4] == ["50.0%", "9.5–90.5%", "2"]
    assert "$0.0100 (n=2)" in out


def test_failures_have_their_reason_and_errors_stand_apart(tmp_path: Path) -> None:
    out = project(tmp_path, {"a": "no", "b": "raise"}).evalwright("run", "eval.yaml").out
    failures, _, errors = out.partition("Errors (1 cell, no verdict)")
    assert "  1 × polite: " in failures
    assert failures.endswith("\n      ✗ a\n\n")
    assert re.search(r"1 × agent\.py:\d+ in \w+: \w+: the system is down\n      ! b\n", errors)


def test_the_next_command_can_be_typed(tmp_path: Path) -> None:
    made = project(tmp_path, {"a": "raise"})
    ended = made.evalwright("run", "eval.yaml")
    line = next(line for line in ended.out.splitlines() if line.startswith("Next: evalwright "))
    (tmp_path / "mended").touch()
    assert made.evalwright(*line.removeprefix("Next: evalwright ").split(), "--json").code == 1


def test_two_systems_are_compared_with_the_baseline(tmp_path: Path) -> None:
    do = {"a": {"v": "thanks", "w": "no"}, "b": {"v": "no", "w": "thanks"}, "c": "thanks"}
    out = project(tmp_path, do, TWO_SYSTEMS).evalwright("run", "eval.yaml").out  # type: ignore[arg-type]
    assert "changed in w, worse: a\n" in out
    assert "changed in w, better: b\n" in out


def test_several_trials_show_pass_at_k(tmp_path: Path) -> None:
    out = project(tmp_path, {"a": "thanks"}).evalwright("run", "eval.yaml", "--trials", "3").out
    assert "1 case × 3 trials" in out
    assert re.search(r"\n +v +1 .*\n +2 .*\n +3 +100.0% +\S+ +100.0%", out)


@pytest.mark.parametrize(
    ("choice", "cases"),
    [
        (["--case", "a*"], ["a1", "a2"]),
        (["--case", "a1", "--case", "b1"], ["a1", "b1"]),
        (["--tag", "b"], ["b1"]),
        (["--limit", "2"], ["a1", "a2"]),
    ],
)
def test_cases_can_be_chosen(tmp_path: Path, choice: list[str], cases: list[str]) -> None:
    run = project(tmp_path, {"a1": "thanks", "a2": "thanks", "b1": "thanks"}).run(*choice)
    assert sorted(row["case_id"] for row in rows(run, "traces.jsonl")) == cases


def test_out_says_where_the_run_folder_goes(tmp_path: Path) -> None:
    assert project(tmp_path, {"a": "thanks"}).run("--out", "elsewhere").parent == tmp_path / "elsewhere"


def test_a_variable_goes_before_the_environment(tmp_path: Path) -> None:
    made = project(tmp_path, {"a": "please"}, EVAL.replace("[thanks]", '["${WORD:-thanks}"]'))
    assert made.evalwright("run", "eval.yaml", "--var", "WORD=please", WORD="never").code == 0


def test_a_run_without_a_suite_is_a_usage_error(tmp_path: Path) -> None:
    ended = project(tmp_path, {}).evalwright("run")
    assert ended.code == 2
    assert "Missing argument 'PATH...'" in ended.err


def test_options_that_lack_another_are_named_together(tmp_path: Path) -> None:
    ended = project(tmp_path, {}).evalwright("run", "eval.yaml", "--lease", "x", "--margin", "2pp", "--seed", "1")
    needs = ["--lease needs --shard", "--margin needs --until-decided", "--seed needs --until-decided"]
    assert (ended.code, [need for need in needs if need not in _with_single_spaces(ended.err)]) == (2, [])


def test_options_about_model_calls_are_checked_with_the_others(tmp_path: Path) -> None:
    about_models = ["--cache", "cache", "--no-cache", "--replay", "absent.jsonl"]
    ended = project(tmp_path, {}).evalwright("run", "eval.yaml", "--lease", "x", *about_models)
    mistakes = ["--lease needs --shard", "--no-cache --cache cache has no effect", "absent.jsonl does not exist"]
    assert (ended.code, [text for text in mistakes if text not in _with_single_spaces(ended.err)]) == (2, [])


@pytest.mark.parametrize("command", ["resume", "retry", "re-evaluate", "audit"])
def test_every_command_that_calls_models_checks_the_options_about_them(tmp_path: Path, command: str) -> None:
    here = project(tmp_path, {"a": "thanks"})
    options = ["--cache", "cache", "--no-cache", *(["--judges"] if command == "audit" else [])]
    ended = here.evalwright(command, str(here.run()), *options)
    assert (ended.code, "--cache cache has no effect" in ended.err) == (2, True)


JUDGE = (
    '  - {name: nice, type: llm_judge, config: {model: "python:judge:reply", rubric: "Is it nice?",'
    " scale: {min: 0, max: 1}, pass_threshold: 0.5}}\n"
)


def judged(folder: Path) -> Project:
    (folder / "judge.py").write_text("""def reply(request): return '{"score": 1, "reason": "fine"}'""")
    return project(folder, {"a": "thanks"}, EVAL.replace("output:", f"{JUDGE}output:"))


@pytest.mark.parametrize(
    ("replayed", "words"),
    [(False, ["audit", "--judges"]), (False, ["re-evaluate"]), (True, ["retry", "--include-evaluator-failures"])],
)
def test_every_command_that_calls_models_obeys_the_options_about_them(
    tmp_path: Path, replayed: bool, words: list[str]
) -> None:
    here = judged(tmp_path)
    (tmp_path / "none.jsonl").touch()
    options = ["--replay", "none.jsonl"]
    run = here.run(*(options if replayed else []))
    ended = here.evalwright(*words, str(run), *options)
    assert (ended.code, "is not recorded in none.jsonl" in _with_single_spaces(ended.out)) == (3, True)


@pytest.mark.parametrize("command", ["audit", "re-evaluate", "resume", "retry"])
def test_every_command_that_goes_on_with_a_run_may_trust_it(tmp_path: Path, command: str) -> None:
    here = judged(tmp_path)
    run = here.run()
    plan = json.loads((run / "plan.json").read_text())
    (run / "plan.json").write_text(json.dumps({**plan, "seal": ""}))
    (tmp_path / "eval.yaml").unlink()
    refused = here.evalwright(command, run)
    assert (refused.code, "is not known to be a run of your own" in refused.err) == (2, True)
    assert here.evalwright(command, run, "--trust-run").code == 0


@pytest.mark.parametrize("command", ["resume", "retry"])
def test_a_lease_is_for_shards(tmp_path: Path, command: str) -> None:
    here = project(tmp_path, {"a": "thanks"})
    ended = here.evalwright(command, str(here.run()), "--lease", "ledger.db")
    assert (ended.code, "--lease: this run is no shard" in ended.err) == (2, True)


def _with_single_spaces(text: str) -> str:
    return " ".join(text.split())


@pytest.mark.parametrize(
    ("twice", "named"),
    [
        (["run", "eval.yaml", "--target", "a", "--target", "b"], "--target"),
        (["run", "eval.yaml", "--trials", "2", "--num-runs", "3"], "--trials"),
        (["report", "runs", "--out", "a", "--out=b"], "--out"),
    ],
)
def test_an_option_of_which_only_the_last_value_would_count_is_refused(
    tmp_path: Path, twice: list[str], named: str
) -> None:
    ended = project(tmp_path, {}).evalwright(*twice)
    assert (ended.code, f"{named} takes one value" in ended.err) == (2, True)


def test_the_exit_code_can_be_left_out_of_account(tmp_path: Path) -> None:
    made = project(tmp_path, {"a": "nothing of it"})
    assert [made.evalwright("run", "eval.yaml", *more).code for more in ([], ["--exit-zero"])] == [1, 0]


def test_a_suite_that_is_not_there_is_an_input_error(tmp_path: Path) -> None:
    ended = project(tmp_path, {}).evalwright("run", "nope.yaml")
    assert ended.code == 2
    assert "nope.yaml  does not exist" in ended.err


def test_every_mistake_is_told_with_its_place_and_nothing_is_run(tmp_path: Path) -> None:
    made = project(tmp_path, {"a": "thanks"})
    (tmp_path / "cases.jsonl").write_text('{"id": "a"}\n{"id": 7, "input": {}}\nnonsense\n')
    ended = made.evalwright("run", "eval.yaml")
    assert ended.code == 2
    assert [line.split()[:2] for line in ended.err.splitlines()[:2]] == [
        ["cases.jsonl:1", "input"],
        ["cases.jsonl:2", "id"],
    ]
    assert ended.err.endswith("3 problems in cases.jsonl; nothing was run\n")
    assert not any((tmp_path / "runs").glob("*/traces.jsonl"))


def test_a_misspelt_command_is_helped(tmp_path: Path) -> None:
    ended = project(tmp_path, {}).evalwright("rnu", "eval.yaml")
    assert ended.code == 2
    assert 'did you mean "run"?' in ended.err


def test_what_the_system_prints_does_not_mix_with_our_output(tmp_path: Path) -> None:
    made = project(tmp_path, {"a": "thanks"})
    agent = tmp_path / "agent.py"
    agent.write_text(agent.read_text().replace("    if wanted", '    print("noise")\n    if wanted', 1))
    assert "noise" not in made.evalwright("run", "eval.yaml", "--json").out


def test_answers_cannot_act_on_the_terminal(tmp_path: Path) -> None:
    out = project(tmp_path, {"a\x1b[2J": "\x1b]0;title\x07\x9b31m"}).evalwright("run", "eval.yaml").out
    assert "✗ a\\x1b[2J" in out
    assert not set(out) & set("\x1b\x07\x9b")


def test_a_secret_of_the_environment_is_not_printed(tmp_path: Path) -> None:
    secret = "sk-very-secret-value"
    made = project(tmp_path, {"a": f"my key is {secret}", "b": "raise"})
    agent = tmp_path / "agent.py"
    agent.write_text(agent.read_text().replace('"the system is down"', 'os.environ["SHOP_API_KEY"]'))
    ended = made.evalwright("run", "eval.yaml", SHOP_API_KEY=secret)
    assert ended.code == 3
    assert secret not in ended.out + ended.err


def test_a_broken_pipe_is_no_error(tmp_path: Path) -> None:
    project(tmp_path, {f"c{i}": "thanks" for i in range(3)})
    process = subprocess.Popen(
        [sys.executable, "-m", "evalwright", "run", "eval.yaml"],
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert process.stdout is not None
    process.stdout.close()
    assert process.stderr is not None
    complaints = process.stderr.read()
    process.stderr.close()
    assert (process.wait(timeout=60), complaints.count(b"\n")) == (0, 1)  # the line that names the code


def test_the_first_run_of_a_suite_says_which_code_it_executes(tmp_path: Path) -> None:
    made = project(tmp_path, {"a": "thanks"})
    assert "this suite runs code on this machine: agent.py\n" in made.evalwright("run", "eval.yaml").err
    assert "runs code" not in made.evalwright("run", "eval.yaml").err


def test_what_a_system_writes_to_the_descriptor_of_standard_output_is_not_in_the_json(tmp_path: Path) -> None:
    agent = tmp_path / "agent.py"
    here = project(tmp_path, {"a": "thanks"})
    agent.write_text(
        "import os\n" + agent.read_text().replace("    if wanted", '    os.write(1, b"raw")\n    if wanted', 1)
    )
    ended = here.evalwright("run", "eval.yaml", "--json")
    assert json.loads(ended.out)["gate"] == {"passed": True, "exit_code": 0}
    assert "raw" in ended.err
