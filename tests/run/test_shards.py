"""A run whose cases are shared out: which cells a shard has, how it is begun again, and what it leaves."""

import hashlib
import json
import shutil
from contextlib import contextmanager
from pathlib import Path

import pytest

from evalwright import built_in
from evalwright.errors import InputError, RunLockedError
from evalwright.llm.choices import ModelChoices
from evalwright.model.plan import EvaluatorSpec, Plugin, Shard, Variant
from evalwright.run.forecast import forecast
from evalwright.run.merge import merge
from evalwright.run.options import RunOptions
from evalwright.run.re_evaluation import re_evaluate
from evalwright.run.resumption import resume, retry
from evalwright.run.schedulers import shard_from
from evalwright.run.shards import limits_of, share_of
from evalwright.run.start import run_suite
from evalwright.run.stored_run import open_run
from run.merging import indexed
from run.stored import cut, rows_of, stored
from run.suites import suite

TEXTS = ["done", "no", "done", "done", "no", "done", "done"]


def shard(tmp_path, index, of, texts=TEXTS, out="out", **settings):
    options = RunOptions(shard=Shard(index, of), out=tmp_path / out)
    return run_suite(suite(tmp_path, texts, **settings), options)


@pytest.mark.parametrize(
    ("text", "environ", "expected"),
    [
        ("2/8", {}, (2, 8)),
        ("auto/16", {"JOB_COMPLETION_INDEX": "0"}, (1, 16)),
        ("auto", {"SLURM_ARRAY_TASK_ID": "7", "SLURM_ARRAY_TASK_MIN": "5", "SLURM_ARRAY_TASK_COUNT": "4"}, (3, 4)),
        ("auto", {"CI_NODE_INDEX": "4", "CI_NODE_TOTAL": "4"}, (4, 4)),
        ("auto", {"CLOUD_RUN_TASK_INDEX": "1", "CLOUD_RUN_TASK_COUNT": "3"}, (2, 3)),
        ("auto/3", {"AWS_BATCH_JOB_ARRAY_INDEX": "2"}, (3, 3)),
        ("auto", {"JOB_COMPLETION_INDEX": "1", "CI_NODE_INDEX": "2", "CI_NODE_TOTAL": "5"}, (2, 5)),
        ("auto/9", {"AWS_BATCH_JOB_ARRAY_INDEX": "2", "CI_NODE_INDEX": "3", "CI_NODE_TOTAL": "5"}, (3, 9)),
    ],
)
def test_a_shard_is_named_or_is_that_of_the_schedulers_task(text, environ, expected):
    found = shard_from(text, environ)
    assert (found.index, found.of) == expected


@pytest.mark.parametrize(
    ("text", "environ", "said"),
    [
        ("0/4", {}, "from 1 to 4, found 0"),
        ("5/4", {}, "from 1 to 4, found 5"),
        ("1/0", {}, "expected 1 shard or more, found 0"),
        ("half", {}, "expected k/n"),
        ("2/auto", {}, "expected k/n"),
        ("auto/4", {}, "JOB_COMPLETION_INDEX, SLURM_ARRAY_TASK_ID"),
        ("auto", {"JOB_COMPLETION_INDEX": "0"}, "SLURM_ARRAY_TASK_COUNT, CI_NODE_TOTAL"),
        (
            "auto/4",
            {"JOB_COMPLETION_INDEX": "0", "CI_NODE_INDEX": "3"},
            "INDEX says 1, CI_NODE_INDEX says 3",
        ),
        (
            "auto",
            {"SLURM_ARRAY_TASK_ID": "2", "SLURM_ARRAY_TASK_MIN": "1", "CI_NODE_TOTAL": "4"},
            "SLURM_ARRAY_TASK_ID and CI_NODE_TOTAL are variables of different schedulers",
        ),
        ("auto/4", {"SLURM_ARRAY_TASK_ID": "2"}, "SLURM_ARRAY_TASK_MIN should be a whole number"),
        ("auto/4", {"JOB_COMPLETION_INDEX": "x"}, "JOB_COMPLETION_INDEX should be a whole number, found 'x'"),
    ],
)
def test_a_shard_that_is_not_said_clearly_is_refused(text, environ, said):
    with pytest.raises(InputError, match="--shard") as refused:
        shard_from(text, environ)
    assert said in str(refused.value)


def test_a_shard_has_all_cells_of_its_cases_and_the_plan_of_the_whole_run(tmp_path, agents):
    outcome = shard(tmp_path, 2, 3, trials=2)
    folder = outcome.run_dir
    assert sorted(agents.calls) == ["c1", "c1", "c4", "c4"]
    assert folder.name.endswith("_test-shard-2")
    assert outcome.exit_code == 0  # both cases failed: that is for the merged run to say
    assert outcome.summary.shard == "shard 2 of 3"
    assert (outcome.summary.cases_total, outcome.summary.cells_total, outcome.summary.cells_missing) == (2, 4, 0)
    cases = (folder / "cases.jsonl").read_bytes()
    assert len(cases.splitlines()) == len(TEXTS)
    described = stored(folder, "shard.json")
    assert described.items() >= {"index": 2, "of": 3, "by": "case", "cases_total": 7, "cells": 4}.items()
    assert described["cases_sha256"] == hashlib.sha256(cases).hexdigest()
    manifest = stored(folder, "manifest.json")
    assert manifest["cells"] == {"pass": 0, "borderline": 0, "fail": 4, "skip": 0, "error": 0}
    for name, mark in manifest["files"].items():
        data = (folder / name).read_bytes()
        assert (mark["bytes"], mark["sha256"]) == (len(data), hashlib.sha256(data).hexdigest())
    assert [manifest["files"][f"{name}.jsonl"]["records"] for name in ("traces", "results", "verdicts")] == [4, 4, 4]


def test_a_shard_ends_with_3_while_cells_are_left_and_with_0_once_it_is_finished(tmp_path):
    broken = suite(tmp_path, ["x"] * 8, "agents:broken", stop_after_errors=1, max_concurrency=1)
    left = run_suite(broken, RunOptions(shard=Shard(1, 2)))
    assert (left.exit_code, left.summary.cells_missing) == (3, 3)
    assert not (left.run_dir / "manifest.json").exists(), "a merge would take it for finished"
    finished = resume(left.run_dir, keep_going=True)
    assert (finished.exit_code, finished.summary.variants[0].cells["error"]) == (0, 4)


def test_more_shards_than_cases_leave_empty_ones(tmp_path, agents):
    outcome = shard(tmp_path, 4, 5, ["done", "done"])
    assert (outcome.exit_code, agents.calls) == (0, [])
    assert stored(outcome.run_dir, "manifest.json")["files"]["cases.jsonl"]["records"] == 2


def test_the_same_command_line_resumes_a_shard_and_then_has_nothing_to_do(tmp_path, agents):
    folder = shard(tmp_path, 1, 2, max_concurrency=1).run_dir
    for name in ("traces", "results", "verdicts"):
        cut(folder / f"{name}.jsonl", 2)
    (folder / "manifest.json").unlink()
    agents.calls.clear()
    again = shard(tmp_path, 1, 2)
    assert (again.run_dir, sorted(agents.calls), again.exit_code) == (folder, ["c4", "c6"], 0)
    before = (folder / "manifest.json").read_bytes()
    agents.calls.clear()
    idle = shard(tmp_path, 1, 2)
    assert (agents.calls, idle.exit_code) == ([], 0)
    assert any("nothing to do" in note for note in idle.notes)
    assert (folder / "manifest.json").read_bytes() == before
    assert shard(tmp_path, 2, 2).run_dir.parent == folder.parent  # another shard of the same run may lie beside it


@pytest.mark.parametrize("index", [1, 2, 3])
@pytest.mark.parametrize("left", [0, 1, 2])
def test_a_shard_with_an_index_is_resumed_where_it_stopped(tmp_path, agents, index, left):
    """Its index has the numbers that the cells have in the whole run."""
    folder = indexed(shard(tmp_path, index, 3, trials=2, max_concurrency=1).run_dir)
    made = [(row["case_id"], row["trial"]) for row in rows_of(folder, "verdicts")]
    for name in ("results", "verdicts"):
        cut(folder / f"{name}.jsonl", left)
    cut(folder / "traces.jsonl", left + 1)  # one answer that is only to be judged
    (folder / "manifest.json").unlink()
    agents.calls.clear()
    again = shard(tmp_path, index, 3, trials=2, max_concurrency=1)
    assert agents.calls == [case for case, _ in made[left + 1 :]]
    assert sorted((row["case_id"], row["trial"]) for row in rows_of(folder, "verdicts")) == made
    assert again.summary.cells_missing == 0
    assert any("nothing to do" in note for note in shard(tmp_path, index, 3, trials=2).notes)
    agents.calls.clear()
    retry(folder, evaluator_failures=True)
    failed = [row["case_id"] for row in rows_of(folder, "verdicts")[: len(made)] if row["status"] == "fail"]
    assert sorted(agents.calls) == sorted(failed)


def test_records_of_another_shard_are_left_alone_with_an_index_too(tmp_path, agents):
    folder, other = shard(tmp_path, 1, 2).run_dir, shard(tmp_path, 2, 2).run_dir
    for name in ("traces", "results", "verdicts"):
        with (folder / f"{name}.jsonl").open("ab") as file:
            file.write((other / f"{name}.jsonl").read_bytes())
    (folder / "manifest.json").unlink()
    agents.calls.clear()
    again = resume(indexed(folder))
    assert (agents.calls, again.exit_code) == ([], 0)
    assert any("nothing to do" in note for note in again.notes)
    retry(folder, evaluator_failures=True)
    assert agents.calls == ["c4"]


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"texts": [*TEXTS, "done"]}, "cases_total"),
        ({"texts": ["done", *TEXTS[1:-1], "other"]}, "cases_sha256"),
        ({"evaluators": [EvaluatorSpec("other", "contains_text", {"all_of": ["done"]})]}, "evaluators"),
        ({"trials": 3}, "trials"),
        ({"target": "agents:quick"}, "systems"),
    ],
)
def test_a_folder_with_a_shard_of_another_run_is_refused(tmp_path, change, said):
    folder = shard(tmp_path, 1, 2).run_dir
    with pytest.raises(InputError, match="but from another run") as refused:
        shard(tmp_path, 1, 2, **change)
    assert said in str(refused.value)
    assert folder.name in str(refused.value)
    with pytest.raises(InputError, match="of is 2, not 4"):
        shard(tmp_path, 1, 4)


def test_of_two_copies_of_a_shard_the_newer_one_is_gone_on_with(tmp_path):
    folder = shard(tmp_path, 1, 2).run_dir
    for name in ("1999", "9999"):
        shutil.copytree(folder, folder.with_name(name + folder.name[4:]))
    assert shard(tmp_path, 1, 2).run_dir.name == "9999" + folder.name[4:]


class Meanwhile(list):
    """Cases; the first time that they are read, something else happens before."""

    def __init__(self, cases, happens):
        super().__init__(cases)
        self._happens = [happens]

    def __iter__(self):
        while self._happens:
            self._happens.pop()()
        return super().__iter__()


def test_a_shard_that_another_process_is_beginning_is_not_begun_twice(tmp_path, agents):
    options = RunOptions(shard=Shard(1, 2), out=tmp_path / "deep" / "out")
    mine, refused = suite(tmp_path, TEXTS), []

    def at_once():
        with pytest.raises(RunLockedError, match=r"shard 1 of 2 in .* is being written by process") as error:
            run_suite(suite(tmp_path, TEXTS), options)
        refused.append(error)
        raise InputError("and then a case cannot be read")

    mine.cases = Meanwhile(mine.cases, at_once)
    with pytest.raises(InputError, match="and then"):
        run_suite(mine, options)
    assert (len(refused), agents.calls) == (1, [])
    assert not (tmp_path / "deep").exists()
    assert run_suite(mine, options).exit_code == 0
    assert len([*(tmp_path / "deep" / "out").iterdir()]) == 1


def test_whole_runs_may_lie_beside_a_shard(tmp_path):
    whole = run_suite(suite(tmp_path, TEXTS), RunOptions(out=tmp_path / "out")).run_dir
    folder = shard(tmp_path, 1, 2).run_dir
    assert folder.parent == whole.parent
    assert shard(tmp_path, 1, 2).run_dir == folder


def test_cases_that_were_changed_are_not_gone_on_with(tmp_path):
    folder = shard(tmp_path, 1, 2).run_dir
    (folder / "manifest.json").unlink()
    cases = folder / "cases.jsonl"
    cases.write_text(cases.read_text().replace('"done"', '"gone"', 1))
    with pytest.raises(InputError, match="was changed since the shard was begun"):
        shard(tmp_path, 1, 2)


def test_a_manifest_is_stale_before_anything_is_appended(tmp_path, agents):
    outcome = shard(tmp_path, 1, 2)
    manifest = outcome.run_dir / "manifest.json"
    first = manifest.read_bytes()
    resume(outcome.run_dir)
    assert manifest.read_bytes() == first
    agents.calls.clear()
    retry(outcome.run_dir, evaluator_failures=True)
    assert agents.calls == ["c4"]
    assert manifest.read_bytes() != first
    second = manifest.read_bytes()
    re_evaluate(outcome.run_dir)
    assert manifest.read_bytes() != second


def test_a_finished_shard_keeps_its_manifest_which_tells_of_what_was_changed_since(tmp_path):
    folder = shard(tmp_path, 1, 2).run_dir
    before = (folder / "manifest.json").read_bytes()
    traces = folder / "traces.jsonl"
    traces.write_text(traces.read_text().replace("done", "gone", 1))
    assert resume(folder).exit_code == 0
    assert (folder / "manifest.json").read_bytes() == before
    with pytest.raises(InputError, match="was changed or damaged"):
        merge([folder], tmp_path / "merged", partial=True)


def test_only_the_cells_of_a_shard_are_forecast(tmp_path):
    expected = forecast(suite(tmp_path, TEXTS), RunOptions(shard=Shard(1, 3)))
    assert expected.cells == 3


@pytest.mark.parametrize("limit", [1.0, 0.1, 1e-9, 12.345678901])
@pytest.mark.parametrize(("cases", "of"), [(7, 3), (3, 5), (100, 7)])
def test_the_shares_of_a_limit_are_the_limit(limit, cases, of):
    shares = [share_of(limit, Shard(k, of), cases) for k in range(1, of + 1)]
    assert sum(round(share * 1e9) for share in shares) == round(limit * 1e9)
    assert all(share >= 0 for share in shares)


def test_a_shard_has_its_share_of_each_limit(tmp_path):
    outcome = shard(tmp_path, 1, 3, cost_limit_usd=7.0)
    plan = open_run(outcome.run_dir)[1]
    assert plan.run.cost_limit_usd == 7.0
    assert plan.shard is not None
    assert plan.shard.cost_limit_usd == 3.0
    assert stored(outcome.run_dir, "shard.json")["cost_limit_usd"] == 3.0
    own = limits_of(plan, ModelChoices(budget_usd=0.7, requests_per_minute=70))
    assert (own.budget_usd, own.requests_per_minute) == (0.3, 30.0)


def test_a_shard_without_cases_needs_no_rate(tmp_path):
    plan = open_run(shard(tmp_path, 4, 5, ["done", "done"]).run_dir)[1]
    own = limits_of(plan, ModelChoices(budget_usd=0.7, requests_per_minute=70))
    assert (own.budget_usd, own.requests_per_minute) == (0.0, 70)


def test_only_the_merged_run_compares_its_variants(tmp_path):
    variants = [Variant(name, "python_function", {"target": "agents:echo"}) for name in ("old", "new")]
    made = suite(tmp_path, TEXTS, variants=variants, baseline_variant="old")
    parts = [run_suite(made, RunOptions(shard=Shard(k, 2), out=tmp_path / str(k))) for k in (1, 2)]
    assert [part.summary.comparison for part in parts] == [None, None]
    assert merge([part.run_dir for part in parts], tmp_path / "merged").summary.comparison is not None


class Noted:
    """Writes how many cells the run has into a file."""

    def __init__(self, config):
        self._path = Path(config["path"])

    def write(self, run, plan, summary, mask):
        self._path.write_text(str(summary.cells_total))


def test_the_results_of_a_run_in_shards_are_exported_once_it_is_merged(tmp_path, monkeypatch):
    monkeypatch.setitem(built_in.KINDS["exports"], "noted", f"{__name__}:Noted")
    place = tmp_path / "noted.txt"
    parts = []
    for index in (1, 2):
        made = suite(tmp_path, TEXTS)
        made.exports = [Plugin("noted", {"path": str(place)})]
        parts.append(run_suite(made, RunOptions(shard=Shard(index, 2), out=tmp_path / "out")).run_dir)
    assert not place.exists()
    merge(parts, tmp_path / "merged")
    assert place.read_text() == str(len(TEXTS))


def test_what_models_have_cost_is_spent_when_a_shard_is_begun_again(tmp_path):
    """Judges and simulated users; what the system says that it has cost was not paid from the budget."""
    folder = shard(tmp_path, 1, 2).run_dir
    (folder / "manifest.json").unlink()
    for name, key, value in (
        ("traces", "metrics", {"cost_usd": 5.0, "custom": {"user_cost_usd": 0.02}}),
        ("results", "cost_usd", 0.03),
    ):
        rows = [json.loads(line) for line in (folder / f"{name}.jsonl").read_text().splitlines()]
        (folder / f"{name}.jsonl").write_text("".join(json.dumps({**row, key: value}) + "\n" for row in rows[:2]))
    cut(folder / "verdicts.jsonl", 2)
    said = []

    @contextmanager
    def watch(state):
        said.extend(state.about)
        yield

    options = RunOptions(shard=Shard(1, 2), out=tmp_path / "out", models=ModelChoices(budget_usd=0.7))
    assert run_suite(suite(tmp_path, TEXTS), options, watch).run_dir == folder
    assert said == ["shard 1 of 2: 4 of 7 cases; its share of the limits: --budget $0.4 ($0.1 of it spent)"]
