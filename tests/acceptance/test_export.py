"""`evalwright export`: a stored run as the result files of its original program."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from acceptance.projects import EVAL, Project, project

LETTA = """
name: support
dataset: data.jsonl
target: {kind: letta_agent, agent_id: agent-1, api_key: sk-of-the-server}
graders: {right: {kind: tool, function: contains}, plain: {kind: tool, function: ascii_printable_only}}
gate: {kind: simple, metric_key: right, op: gte, value: 0.3}
num_runs: 2
"""
REWARD = LETTA.partition("gate:")[0].replace("letta_agent, agent_id: agent-1", "letta_code, model_handles: [a/1, b]")
REWARD += "reward: {kind: metric, metric_key: right}\n"
ANSWERS = """
def answers(message, ctx):
    if message == "crash":
        raise RuntimeError("no server")
    return "It is Paris"
"""
SECRET = "sk-proj-4f2a9c1e7b3d5f6a8c0e"


def contents(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def results(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (folder / "results.jsonl").read_text().splitlines()]


@pytest.fixture
def letta(tmp_path: Path) -> Project:
    samples = [{"input": "of France?", "ground_truth": "Paris"}, {"input": "crash", "ground_truth": "Paris"}]
    (tmp_path / "data.jsonl").write_text("".join(json.dumps(sample) + "\n" for sample in samples))
    (tmp_path / "suite.yaml").write_text(LETTA)
    (tmp_path / "agent.py").write_text(ANSWERS)
    return Project(tmp_path)


@pytest.fixture
def shop(tmp_path: Path) -> Project:
    return project(tmp_path, {"a": "thanks", "b": "no", "c": "raise"})


@pytest.mark.parametrize(
    ("suite", "some"),
    [(LETTA, {"run_1/header.json", "run_2/results.jsonl"}), (REWARD, {"suite.json", "a-1.jsonl", "b.jsonl"})],
)
def test_the_files_are_those_that_are_written_while_the_run_works(letta: Project, suite: str, some: set[str]) -> None:
    (letta.folder / "suite.yaml").write_text(suite)
    run = letta.run("--target", "agent.py:answers", "--output", "live", name="suite.yaml")
    ended = letta.evalwright("export", run, "--format", "letta", "--out", "later")
    assert (ended.code, ended.out, ended.err) == (0, "later\n", "")
    assert contents(letta.folder / "later") == contents(letta.folder / "live")
    assert contents(letta.folder / "later").keys() >= some


def test_the_runs_own_format_and_folder_are_the_default(letta: Project) -> None:
    run = letta.run("--target", "agent.py:answers", name="suite.yaml")
    ended = letta.evalwright("export", run)
    assert (ended.code, ended.last_line) == (0, str(run / "letta"))
    assert json.loads((run / "letta" / "run_1" / "header.json").read_text())["config"]["gate"]["value"] == 0.3


def test_nothing_is_overwritten(letta: Project) -> None:
    run = letta.run("--target", "agent.py:answers", name="suite.yaml")
    letta.evalwright("export", run)
    before = contents(run)
    ended = letta.evalwright("export", run)
    assert (ended.code, ended.out) == (2, "")
    assert f"{run / 'letta'} exists already" in ended.err
    assert contents(run) == before


@pytest.mark.parametrize(("form", "file"), [("agentv", "results.jsonl"), ("promptfoo", "results.json")])
def test_a_run_of_any_suite_can_be_written_for_two_programs(shop: Project, form: str, file: str) -> None:
    run = shop.run()
    ended = shop.evalwright("export", run, "--format", form, "--out", "out")
    assert (ended.code, ended.last_line) == (0, "out")
    report = shop.evalwright("report", run, "--format", form)
    assert (shop.folder / "out" / file).read_text() == report.out


@pytest.mark.parametrize("form", ["letta", "pixie", "skills"])
def test_the_files_of_the_others_are_for_their_own_runs(shop: Project, form: str) -> None:
    ended = shop.evalwright("export", shop.run(), "--format", form, "--out", "out")
    assert (ended.code, "only" in ended.err) == (2, True)
    assert not (shop.folder / "out").exists()


def test_a_run_folder_is_what_evalh_writes(shop: Project) -> None:
    ended = shop.evalwright("export", shop.run())
    assert ended.code == 2
    assert "native has no result files besides the run folder itself" in ended.err
    assert "agentv, letta, pixie, promptfoo, skills" in ended.err


def test_a_run_in_a_database_is_written_beside_it(tmp_path: Path) -> None:
    text = EVAL.replace("{type: local_files, path: runs}", "{type: sqlite, path: runs.db}")
    made = project(tmp_path, {"a": "thanks"}, text)
    place = made.evalwright("run", "eval.yaml", "--quiet").last_line
    ended = made.evalwright("export", place, "--format", "agentv")
    assert ended.code == 0
    folder = Path(ended.last_line)
    assert folder.name == "agentv"
    assert [line["eval_id"] for line in results(folder)] == ["a"]


def test_cells_that_are_missing_are_said(shop: Project) -> None:
    run = shop.run()
    for name in ("traces.jsonl", "results.jsonl", "verdicts.jsonl"):
        lines = (run / name).read_text().splitlines(keepends=True)
        (run / name).write_text("".join(line for line in lines if '"case_id":"b"' not in line))
    ended = shop.evalwright("export", run, "--format", "agentv", "--out", "out")
    assert ended.code == 0
    assert "unfinished: 1 cell of the run not in the files yet" in ended.err


def test_what_a_format_cannot_say_is_a_warning(shop: Project) -> None:
    run = shop.run("--trials", "2")
    ended = shop.evalwright("export", run, "--format", "agentv", "--out", "out")
    assert ended.code == 0
    assert "warning: 2 trials: a line does not say of which one it is" in ended.err


def test_records_that_cannot_be_read_end_it_with_3(shop: Project) -> None:
    run = shop.run()
    with (run / "results.jsonl").open("a") as file:
        file.write("{broken\n")
    ended = shop.evalwright("export", run, "--format", "agentv", "--out", "out")
    assert (ended.code, "results.jsonl" in ended.err) == (3, True)
    assert len(results(shop.folder / "out")) == 3


def test_records_of_another_shape_are_named_and_nothing_is_left(letta: Project) -> None:
    run = letta.run("--target", "agent.py:answers", name="suite.yaml")
    text = (run / "cases.jsonl").read_text()
    (run / "cases.jsonl").write_text(text.replace('"ground_truth":"Paris"', '"ground_truth":5'))
    ended = letta.evalwright("export", run)
    assert (ended.code, "Traceback" in ended.err) == (2, False)
    assert "the records are not those of a run of Letta Evals (ValidationError: " in ended.err
    assert not [path for path in run.iterdir() if "letta" in path.name]


def test_no_secret_is_written(letta: Project) -> None:
    (letta.folder / "data.jsonl").write_text(json.dumps({"input": f"by {SECRET}", "ground_truth": "Paris"}) + "\n")
    words = ("run", "suite.yaml", "--quiet", "--target", "agent.py:answers")
    run = letta.folder / letta.evalwright(*words, OPENAI_API_KEY=SECRET).last_line
    ended = letta.evalwright("export", run, OPENAI_API_KEY=SECRET)
    assert ended.code == 0
    written = contents(run / "letta")
    assert b"It is Paris" in written["run_1/results.jsonl"]
    assert not [name for name, data in written.items() if SECRET.encode() in data or b"sk-of-the-server" in data]


def test_nothing_of_the_run_is_executed(letta: Project) -> None:
    run = letta.run("--target", "agent.py:answers", name="suite.yaml")
    for file in ("agent.py", "suite.yaml"):
        (letta.folder / file).write_text("raise SystemExit('executed')\n")
    assert letta.evalwright("export", run).code == 0
