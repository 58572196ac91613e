"""Models of judges that are Python functions, called by workers: what they find there, and what a lost one costs."""

from __future__ import annotations

import sys
from pathlib import Path

import msgspec
import pytest
import yaml

from any_records import a_trace
from evalwright.formats.loading import load_suite
from evalwright.llm.choices import ModelChoices
from evalwright.model.result import EvaluationResult
from evalwright.model.trace import Output
from evalwright.run.options import RunOptions
from evalwright.run.outcomes import Outcome
from evalwright.run.start import run_suite
from evalwright.run.stored_run import open_run
from run.executors.near_end import SECRET

MODEL = """
import json, os, signal
from pathlib import Path

LEDGER = Path(os.environ["LEDGER"])

def note(word):
    with LEDGER.open("a") as file:
        file.write(f"{word} {os.getpid()}\\n")

def fair(request):
    said = request.messages[-1].content
    case = next(name for name in ("c0", "c1", "c2", "c3", "c4", "c5") if "answer of " + name in said)
    note(case)
    if os.environ["PLAIN"] == "one is lost":
        try:
            LEDGER.with_name("lost").touch(exist_ok=False)  # by one of the workers alone
            os.kill(os.getpid(), signal.SIGKILL)
        except FileExistsError:
            pass
    if os.environ["PLAIN"] == "c1 ends it" and case == "c1":
        os.kill(os.getpid(), signal.SIGKILL)
    if os.environ["PLAIN"] == "a list":
        return []
    reason = f"from {os.getcwd()} with {os.environ['KEY']}"
    return json.dumps({"assertions": [{"passed": case != "c2", "reason": reason}]})

if os.environ["PLAIN"] == "no import":
    raise RuntimeError("no card here")
"""


def judged(folder: Path, *, plain: str = "", judges: object = True, model: str = "python:model:fair", **run: object):
    """The outcome of six recorded answers that are judged by a model, with one worker of two places."""
    project = folder / "project"
    lines = [
        {"id": f"c{n}", "input": {"user_message": "hi"}, "embedded_trace": a_trace(output=Output(f"answer of c{n}"))}
        for n in range(6)
    ]
    (project / "cases.jsonl").write_bytes(b"\n".join(map(msgspec.json.encode, lines)))
    (project / "model.py").write_text(MODEL)
    variables = {"KEY": "${KEY_HERE}", "PLAIN": plain, "LEDGER": str(folder / "ledger")}
    executor = {
        "type": "ray",
        "address": "auto",
        "per_actor": 2,
        "judges": judges,
        "runtime_env": {"env_vars": variables},
    }
    judge = {"type": "llm_judge", "config": {"model": model, "nl_assertions": ["It is fair"]}}
    other = {"type": "contains_text", "config": {"all_of": ["answer"]}}
    suite = {
        "eval": {"name": "near"},
        "dataset": {"type": "jsonl", "path": "cases.jsonl", "embed_full_trace": True},
        "systems": [{"name": "main", "adapter": "replay"}],
        "evaluators": [{"name": "fair", **(judge if model else other)}],
        "run": {"max_concurrency": 6, "executor": executor, **run},
        "output": [{"type": "local_files", "path": "runs"}],
    }
    (project / "eval.yaml").write_text(yaml.safe_dump(suite))
    return run_suite(load_suite(project / "eval.yaml", None, {}), RunOptions(models=ModelChoices(no_cache=True)))


def results(outcome: Outcome) -> dict[str, EvaluationResult]:
    reader, _ = open_run(outcome.address)
    by_name = {result.case_id: result for result in reader.results(EvaluationResult)}
    reader.close()
    return by_name


def calls(folder: Path) -> list[str]:
    return [line.split()[0] for line in (folder / "ledger").read_text().splitlines()]


def test_a_model_is_called_by_a_worker_and_judged_by_the_run(tmp_path, near):
    outcome = judged(tmp_path, judges={"num_gpus": 1, "actors": 1})
    by_case = results(outcome)
    assert {name: one.passed for name, one in by_case.items()} == {f"c{n}": n != 2 for n in range(6)}
    assert sorted(calls(tmp_path)) == [f"c{n}" for n in range(6)]
    reason = by_case["c0"].detail["assertions"][0]["reason"]
    assert reason == f"from {near.copy} with ***MASKED***"
    assert by_case["c0"].detail["judge_calls"][0]["reply"].count(reason) == 1
    [worker] = near.workers
    placement = {key: value for key, value in worker.wanted.items() if key.startswith("num_")}
    assert placement == {"num_gpus": 1}
    assert outcome.exit_code == 1
    assert outcome.summary.warnings == []
    assert SECRET.encode() not in b"".join(path.read_bytes() for path in Path(outcome.run_dir).rglob("*.*"))


def test_a_lost_worker_costs_no_result(tmp_path, near):
    by_case = results(judged(tmp_path, plain="one is lost"))
    assert {name: one.passed for name, one in by_case.items()} == {f"c{n}": n != 2 for n in range(6)}
    assert 6 < len(calls(tmp_path)) <= 6 + 2  # the calls in flight are made once more


def test_a_call_that_ends_its_workers_is_an_error_of_its_own_result(tmp_path, near):
    outcome = judged(tmp_path, plain="c1 ends it")
    by_case = results(outcome)
    assert {name for name, one in by_case.items() if one.error} == {"c1"}
    assert "the worker was lost: its worker process has died (tried 3 times)" in by_case["c1"].error.message
    assert calls(tmp_path).count("c1") == 3
    assert outcome.exit_code == 3


@pytest.mark.parametrize(
    ("plain", "said"),
    [
        (
            "no import",
            "the provider 'model:fair' cannot be imported: no card here",
        ),
        ("a list", "the provider returned list, expected a ChatReply or text"),
    ],
)
def test_what_a_model_does_wrong_is_an_error_of_the_results(tmp_path, near, plain, said):
    outcome = judged(tmp_path, plain=plain, model="python:model:fair")
    errors = {result.error.message for result in results(outcome).values()}
    assert len(errors) == 1
    assert said in errors.pop()
    assert outcome.exit_code == 3


def test_a_run_whose_judges_have_no_such_model_says_that_nothing_is_placed(tmp_path, near):
    outcome = judged(tmp_path, model="")
    [warning] = outcome.summary.warnings
    assert "run.executor.judges has no effect" in warning
    assert near.workers == []


def test_without_the_key_the_run_calls_the_model_itself(tmp_path, near, monkeypatch):
    monkeypatch.setenv("LEDGER", str(tmp_path / "ledger"))
    for name in ("KEY", "PLAIN"):
        monkeypatch.setenv(name, "here")
    monkeypatch.delitem(sys.modules, "model", raising=False)
    outcome = judged(tmp_path, judges=False)
    assert sorted(calls(tmp_path)) == [f"c{n}" for n in range(6)]
    assert near.workers == []
    assert outcome.exit_code == 1
