"""Shards of drawn runs, merged, are the run on one machine: in any order, indexed or not, wherever they were killed."""

import hashlib
import json
import random
import sqlite3
from contextlib import closing
from pathlib import Path

import msgspec
import pytest

from evalwright import built_in
from evalwright.errors import EvaluatorError, TargetError
from evalwright.model.case import EvalCase
from evalwright.model.plan import EvaluatorSpec, PassCriteria, RunSettings, Shard, Variant
from evalwright.model.result import Evaluation
from evalwright.model.suite import Suite
from evalwright.model.trace import Answer, Metrics, Output
from evalwright.run.locations import find_run
from evalwright.run.merge import merge
from evalwright.run.named_runs import runs_matching
from evalwright.run.options import RunOptions
from evalwright.run.resumption import resume, retry
from evalwright.run.start import run_suite
from evalwright.stores.index.file import INDEX
from run.merging import RECORDS, TEXTS, answers, bytes_of, crash, indexed, records, sharded, summary
from run.suites import PROJECT, SAYS_DONE, suite
from stores.stores import Kept

CRITERIA = [
    PassCriteria(),
    PassCriteria(errored_cases="count", errored_evaluators="fail"),
    PassCriteria(any_required=["drawn", "second"], errored_evaluators="fail"),
]
MEAN = {"kind": "simple", "metric_key": "drawn", "aggregation": "avg_score", "op": "gte", "value": 0.5}


def drawn(*of: object) -> int:
    return int.from_bytes(hashlib.blake2b(repr(of).encode(), digest_size=6).digest(), "big")


class DrawnTarget:
    """Answers, costs and errors that follow from the cell alone."""

    def __init__(self, variant: Variant) -> None:
        self._name = variant.name

    async def run(self, case: object, trial: int) -> Answer:
        draw = drawn(self._name, case.id, trial)  # type: ignore[attr-defined]
        if draw % 11 == 0:
            raise TargetError("service unavailable")
        metrics = Metrics(cost_usd=draw / 7e14, token_input=draw % 999, token_output=draw % 77)
        return Answer(output=Output(final_answer=f'{draw % 1000} {{"run_id":"x"}}'), metrics=metrics)


class DrawnScore(msgspec.Struct, frozen=True):
    """Scores, skips and errors that follow from the answer."""

    word: str = ""

    def evaluate(self, case: object, trace: object) -> Evaluation:
        draw = drawn(self.word, trace.output.final_answer)  # type: ignore[attr-defined]
        if draw % 17 == 0:
            raise EvaluatorError("no reply")
        if draw % 13 == 0:
            return Evaluation(False, skipped=True, reason="not asked")
        score = draw % 9973 / 9973
        return Evaluation(score > 0.4, score, f"drew {score}", {"run_id": trace.run_id}, cost_usd=draw / 3e15)


@pytest.fixture(autouse=True)
def _registered(monkeypatch):
    monkeypatch.setitem(built_in.KINDS["targets"], "drawn", f"{__name__}:DrawnTarget")
    monkeypatch.setitem(built_in.KINDS["evaluators"], "drawn_score", f"{__name__}:DrawnScore")


def drawn_suite(folder: Path, dice: random.Random) -> Suite:
    """Several variants, trials, groups, gates and criteria, as the dice fall."""
    names = ["a", "b", "c"][: dice.randint(1, 3)]
    grouped = dice.random() < 0.4
    cases = [
        EvalCase(id=f"c{i}", input={"n": i}, group=f"g{i % 5}" if grouped and i % 3 else None)
        for i in range(dice.randint(1, 24))
    ]
    return Suite(
        name="drawn",
        dialect="evalh",
        source=PROJECT / "eval.yaml",
        cases=cases,
        variants=[Variant(name, "drawn", trials=dice.choice([None, None, 2])) for name in names],
        evaluators=[
            EvaluatorSpec("drawn", "drawn_score", {"word": "a"}),
            EvaluatorSpec("second", "drawn_score", {"word": "b"}, weight=2.0),
        ],
        pass_criteria=dice.choice(CRITERIA),
        run=RunSettings(
            trials=dice.randint(1, 3),
            max_concurrency=dice.randint(1, 6),
            baseline_variant=dice.choice([None, *names]) if len(names) > 1 else None,
            stop_after_errors=0,
        ),
        gate=dice.choice([None, MEAN]),
        out=folder / "runs",
    )


def same_as_one_machine(seed: int, tmp_path: Path) -> None:
    dice = random.Random(seed)
    suite, of = drawn_suite(tmp_path, dice), dice.randint(1, 5)
    one = run_suite(suite)
    shards = {k: RunOptions(shard=Shard(k, of), out=tmp_path / "out") for k in dice.sample(range(1, of + 1), of)}
    parts = []
    for options in shards.values():
        outcome = run_suite(suite, options)
        for _ in range(dice.randint(0, 2)):
            if dice.random() < 0.5:
                indexed(outcome.run_dir)
            crash(outcome.run_dir, dice)
            outcome = run_suite(suite, options) if dice.random() < 0.5 else resume(outcome.run_dir)
        assert outcome.exit_code == 0
        parts.append(outcome.run_dir)
    merged = merge(parts, tmp_path / "merged")
    assert summary(merged.run_dir) == summary(one.run_dir)
    assert merged.exit_code == one.exit_code
    assert (merged.run_dir / "cases.jsonl").read_bytes() == (one.run_dir / "cases.jsonl").read_bytes()
    for name in RECORDS:
        assert sorted(records(merged.run_dir, name)) == sorted(records(one.run_dir, name))
    variants = [variant.name for variant in suite.variants]
    rows = [json.loads(line) for line in (merged.run_dir / "verdicts.jsonl").read_text().splitlines()]
    grid = [(row["case_index"], variants.index(row["variant_name"]), row["trial"]) for row in rows]
    assert grid == sorted(set(grid))
    assert {row["run_id"] for row in rows} <= {merged.run_dir.name}
    again = merge([indexed(part) for part in dice.sample(parts, of)], tmp_path / "again")
    assert answers(again.run_dir) == answers(merged.run_dir)
    assert bytes_of(again.run_dir) == bytes_of(merged.run_dir)
    assert any("nothing to do" in note for note in resume(merged.run_dir).notes)


@pytest.mark.slow("runs each shard several times")
@pytest.mark.parametrize("seed", range(3))
def test_shards_in_any_order_killed_anywhere_are_the_run_on_one_machine(seed, tmp_path):
    same_as_one_machine(seed, tmp_path)


@pytest.mark.slow("thirty runs with their shards")
def test_many_shards_in_any_order_killed_anywhere_are_the_run_on_one_machine(tmp_path):
    for seed in range(100, 130):
        same_as_one_machine(seed, tmp_path / str(seed))


def test_indexed_shards_are_merged_into_what_others_are_and_into_an_indexed_run(tmp_path, agents, monkeypatch):
    judged = [SAYS_DONE, msgspec.structs.replace(SAYS_DONE, name="again"), EvaluatorSpec("drawn", "drawn_score")]
    texts = [*TEXTS, 'done {"run_id":"x"}', *TEXTS]
    parts = sharded(suite(tmp_path, texts, "agents:mendable", evaluators=judged, stop_after_errors=0), 4, tmp_path)
    monkeypatch.setattr(agents, "mended", True)
    for part in parts:
        retry(part)
    for part, beside in ((parts[1], True), (parts[2], False)):  # another order, and results that lie apart
        rows = [(part / "results.jsonl").read_bytes().splitlines(keepends=True)[n::3] for n in (2, 0, 1)]
        columns = zip(*rows, strict=True) if beside else rows
        (part / "results.jsonl").write_bytes(b"".join(line for column in columns for line in column))
        (part / "manifest.json").unlink()
        resume(part)
    expected = merge(parts, tmp_path / "merged")
    assert not (expected.run_dir / INDEX).exists()
    merged = merge(list(map(indexed, parts)), tmp_path / "other")
    assert (merged.run_dir / INDEX).exists()
    with closing(sqlite3.connect(parts[0] / INDEX)) as index, index:
        index.execute("UPDATE cells SET trace_at = (SELECT max(trace_at) FROM cells)")  # where another cell's record is
    misled = merge(parts, tmp_path / "third")
    assert not (misled.run_dir / INDEX).exists()
    for other in (merged, misled):
        assert bytes_of(other.run_dir) == bytes_of(expected.run_dir)
        assert summary(other.run_dir) == summary(expected.run_dir)
    assert answers(merged.run_dir) == answers(expected.run_dir)


@pytest.mark.slow("a run for each shard in each database")
@pytest.mark.parametrize("kind", ["sqlite", "postgres"])
def test_shards_in_a_database_are_merged_with_others(tmp_path, kind):
    mine = drawn_suite(tmp_path, random.Random(7))
    kept = Kept(kind, tmp_path)
    one = run_suite(mine)
    places = [run_suite(mine, RunOptions(shard=Shard(k, 3), store=kept.store())).place for k in (1, 3)]
    folder = run_suite(mine, RunOptions(shard=Shard(2, 3), out=tmp_path / "out")).run_dir
    merged = merge([*places, folder], tmp_path / "merged")
    assert summary(merged.run_dir) == summary(one.run_dir)
    for name in RECORDS:
        assert sorted(records(merged.run_dir, name)) == sorted(records(one.run_dir, name))
    manifest = json.loads((merged.run_dir / "manifest.json").read_text())
    assert [*manifest["shards"]] == ["1", "2", "3"]
    assert merge([folder, *places], tmp_path / "merged").run_dir == merged.run_dir
    retry(places[0], evaluator_failures=True)
    assert merge([folder, *places], tmp_path / "merged").run_dir != merged.run_dir
    if kind == "sqlite":
        found = runs_matching(f"{tmp_path}/runs.sqlite/*-shard-*")
        assert [find_run(path).run_id for path in found] == [place.run_id for place in places]


@pytest.mark.parametrize("apart", [False, True])
def test_results_of_a_shard_in_another_order_are_merged_in_that_of_the_suite(tmp_path, apart):
    judged = [SAYS_DONE, *(EvaluatorSpec(name, "drawn_score") for name in ("drawn", "again"))]
    parts = sharded(suite(tmp_path, ["done", "no", "x", "y", "z"], evaluators=judged), 2, tmp_path)
    merged = merge(parts, tmp_path / "merged", partial=True)
    expected = (merged.run_dir / "results.jsonl").read_bytes()
    results = parts[0] / "results.jsonl"
    lines = results.read_bytes().splitlines(keepends=True)
    own = [lines[start : start + 3] for start in range(0, len(lines), 3)]
    mixed = [line for cell in own for line in cell[::-1]] if not apart else [cell[i] for i in (1, 2, 0) for cell in own]
    results.write_bytes(b"".join(mixed)[:-1])  # a crash may have left out the last line's end
    (parts[0] / "manifest.json").unlink()
    assert (merge(parts, tmp_path / "other", partial=True).run_dir / "results.jsonl").read_bytes() == expected
    rows = [json.loads(line) for line in expected.splitlines()]
    assert {row["run_id"] for row in rows} == {merged.plan.run_id}
    quoted = {row["detail"]["run_id"] for row in rows if (row.get("detail") or {}).get("run_id")}
    assert quoted == {part.name for part in parts}, "what an evaluator said stays as it is"
