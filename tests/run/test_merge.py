"""Shards of a run, merged, are the run on one machine: in any order, of any store, and wherever they were killed."""

import hashlib
import json
import os
import random
import re
import resource
import shutil
import sqlite3
from collections import Counter
from contextlib import closing
from pathlib import Path

import msgspec
import pytest
import yaml

from evalwright import registry
from evalwright.errors import EvaluatorError, InputError, TargetError
from evalwright.model.case import EvalCase
from evalwright.model.plan import EvaluatorSpec, PassCriteria, Plugin, RunSettings, Shard, Variant
from evalwright.model.result import Evaluation
from evalwright.model.suite import Suite
from evalwright.model.trace import Answer, Metrics, Output
from evalwright.run.locations import find_run
from evalwright.run.merge import merge, runs_matching
from evalwright.run.options import RunOptions
from evalwright.run.resumption import resume, retry
from evalwright.run.shard_watch import finished_shards
from evalwright.run.start import run_suite
from evalwright.session import Session
from evalwright.stores.index.file import INDEX
from evalwright.stores.local_files import LocalFiles
from run.suites import PROJECT, SAYS_DONE, suite
from stores.stores import Kept

LOOSE = {"run_id", "started_at", "finished_at", "latency_ms", "avg_latency_ms", "avg_latency_delta_ms"}
"""What two honest runs of the same cells may differ in."""
RECORDS = ("cases", "traces", "results", "verdicts")
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
    monkeypatch.setitem(registry.KINDS["targets"], "drawn", f"{__name__}:DrawnTarget")
    monkeypatch.setitem(registry.KINDS["evaluators"], "drawn_score", f"{__name__}:DrawnScore")


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


def crash(folder: Path, dice: random.Random) -> None:
    """What a SIGKILL leaves: the last record torn, results at most of traces, verdicts at most of results."""
    kept: set[tuple[str, str, int]] | None = None
    for name in ("traces", "results", "verdicts"):
        path = folder / f"{name}.jsonl"
        lines = path.read_bytes().splitlines(keepends=True)
        cells = [(r["case_id"], r["variant_name"], r["trial"]) for r in map(json.loads, lines)]
        if kept is None:
            kept = {*cells[: dice.randint(0, len(cells))]}
        there = [(cell, line) for cell, line in zip(cells, lines, strict=True) if cell in kept]
        cut = dice.randint(max(0, len(there) - 3), len(there))
        torn = there[cut][1][: dice.randint(0, 40)] if cut < len(there) else b""
        path.write_bytes(b"".join(line for _, line in there[:cut]) + torn)
        kept -= {cell for cell, _ in there[cut:]}  # a verdict is written when all results are
    (folder / "manifest.json").unlink()
    if dice.random() < 0.5:
        (folder / "summary.yaml").unlink()


def plain(value):
    if isinstance(value, dict):
        return {key: plain(inner) for key, inner in value.items() if key not in LOOSE}
    return [plain(inner) for inner in value] if isinstance(value, list) else value


def records(folder: Path, name: str) -> list[str]:
    return [json.dumps(plain(json.loads(line))) for line in (folder / f"{name}.jsonl").read_text().splitlines()]


def summary(folder: Path) -> str:
    return yaml.safe_dump(plain(yaml.safe_load((folder / "summary.yaml").read_text())), sort_keys=False)


def sharded(suite: Suite, of: int, out: Path) -> list[Path]:
    return [run_suite(suite, RunOptions(shard=Shard(k, of), out=out / str(k))).run_dir for k in range(1, of + 1)]


def bytes_of(folder: Path) -> dict[str, bytes]:
    names = [*(f"{name}.jsonl" for name in RECORDS), "plan.json", "manifest.json"]
    return {name: (folder / name).read_bytes() for name in names}


def same_as_one_machine(seed: int, tmp_path: Path) -> None:
    dice = random.Random(seed)
    suite, of = drawn_suite(tmp_path, dice), dice.randint(1, 5)
    one = run_suite(suite)
    shards = {k: RunOptions(shard=Shard(k, of), out=tmp_path / "out") for k in dice.sample(range(1, of + 1), of)}
    parts = []
    for options in shards.values():
        outcome = run_suite(suite, options)
        for _ in range(dice.randint(0, 2)):
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


TEXTS = ["done", "no", "done", "done", "no"]


def refused(runs, out: Path, **options) -> str:
    with pytest.raises(InputError) as error:
        merge(runs, out, **options)
    assert not out.exists()
    return str(error.value)


def test_what_is_no_whole_run_is_refused_by_name_and_leaves_nothing(tmp_path):
    mine = suite(tmp_path, TEXTS)
    parts, out = sharded(mine, 3, tmp_path), tmp_path / "merged"
    assert "shard 2 of 3  is not there: evalwright run" in refused([parts[0], parts[2]], out)
    assert "is named twice" in refused([*parts, parts[0]], out)
    assert "is not a shard" in refused([run_suite(mine).run_dir], out)
    other = sharded(suite(tmp_path, TEXTS, trials=2), 3, tmp_path / "other")
    assert "trials is" in refused([other[0], *parts[1:]], out)
    third = sharded(mine, 2, tmp_path / "halves")
    assert f"{parts[1]}  is not of the same run as {third[0]}: of is 3, not 2" in refused([*third, parts[1]], out)
    retry(parts[1], evaluator_failures=True)
    copied = Path(shutil.copytree(parts[1], tmp_path / "copy" / parts[1].name))
    retry(copied, evaluator_failures=True)
    assert "are both shard 2 of 3, and differ" in refused([*parts, copied], out)
    (parts[1] / "manifest.json").unlink()
    assert f"is not finished: evalwright resume {parts[1]}" in refused(parts, out)
    with pytest.raises(InputError, match="matches no run"):
        runs_matching(str(tmp_path / "nowhere" / "*"))


@pytest.mark.parametrize("name", ["cases.jsonl", "traces.jsonl", "results.jsonl", "verdicts.jsonl", "plan.json"])
def test_a_changed_byte_is_refused_by_the_hash_of_its_manifest(tmp_path, name):
    parts = sharded(suite(tmp_path, TEXTS), 2, tmp_path)
    data = bytearray((parts[0] / name).read_bytes())
    data[-9] ^= 1 if name != "plan.json" else 0
    (parts[0] / name).write_bytes(bytes(data) if name != "plan.json" else bytes(data).replace(b'"test"', b'"test" '))
    said = refused(parts, tmp_path / "merged", partial=True)
    assert f"{parts[0] / name}  was changed or damaged" in said


def test_more_shards_than_files_may_be_open(tmp_path):
    parts = sharded(suite(tmp_path, TEXTS, max_concurrency=1), 9, tmp_path)
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    os.close(taken := os.dup(0))
    with Session():  # not the owner of the process, whose limit it leaves alone
        resource.setrlimit(resource.RLIMIT_NOFILE, (taken + 22, hard))
        try:
            merged = merge(parts, tmp_path / "merged")
        finally:
            resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    assert merged.summary.cells_total == len(TEXTS)


def test_a_copy_of_a_shard_counts_once(tmp_path):
    parts = sharded(suite(tmp_path, TEXTS), 2, tmp_path)
    copied = Path(shutil.copytree(parts[0], tmp_path / "copy" / parts[0].name))
    merged = merge([*parts, copied], tmp_path / "merged")
    assert merged.summary.cells_total == 5
    assert merged.plan.started_at == min(find_run(part).store.read(part.name).plan.started_at for part in parts)


def test_a_partial_merge_is_completed_by_resume(tmp_path, agents):
    mine = suite(tmp_path, TEXTS)
    one, parts = run_suite(mine), sharded(mine, 3, tmp_path)
    crash(parts[0], random.Random(3))
    merged = merge(parts[:2], tmp_path / "merged", partial=True)
    assert merged.exit_code == 3
    assert merged.summary.cells_missing > 0
    assert not (merged.run_dir / "manifest.json").exists()
    two = merge([parts[1], parts[2]], tmp_path / "two", partial=True)
    assert not (two.run_dir / "manifest.json").exists()
    agents.calls.clear()
    whole = resume(merged.run_dir)
    assert len(agents.calls) <= merged.summary.cells_missing
    assert "c2" in agents.calls
    assert summary(whole.run_dir) == summary(one.run_dir)


def test_merging_into_the_same_folder_again_finds_the_run(tmp_path):
    parts = sharded(suite(tmp_path, TEXTS), 2, tmp_path)
    first = merge(parts, tmp_path / "merged")
    (first.run_dir / "summary.yaml").unlink()  # as after a kill behind the rename
    assert merge(parts[::-1], tmp_path / "merged").run_dir == first.run_dir
    assert (first.run_dir / "summary.yaml").is_file()
    retry(parts[0], evaluator_failures=True)
    assert merge(parts, tmp_path / "merged").run_dir.name == f"{first.run_dir.name}-2"


def test_the_newest_attempt_of_a_cell_is_merged(tmp_path, agents, monkeypatch):
    mine = suite(tmp_path, TEXTS, "agents:mendable", stop_after_errors=0)
    parts = sharded(mine, 2, tmp_path)
    monkeypatch.setattr(agents, "mended", True)
    retry(parts[0])
    merged = merge(parts, tmp_path / "merged")
    rows = [json.loads(line) for line in (merged.run_dir / "traces.jsonl").read_text().splitlines()]
    assert [(row["case_id"], row["attempt"]) for row in rows] == [("c0", 2), ("c1", 1), ("c2", 2), ("c3", 1), ("c4", 2)]
    assert merged.summary.variants[0].cells == {"pass": 3, "borderline": 0, "fail": 0, "skip": 0, "error": 2}
    assert merged.exit_code == 3


def indexed(part: Path) -> Path:
    """The shard, with the index that a larger one has."""
    with closing(LocalFiles(part.parent).read(part.name)) as reader, closing(reader.index(keep=True)) as index:
        assert index.path == part / INDEX
    return part


def answers(run: Path) -> list[object]:
    with closing(LocalFiles(run.parent).read(run.name)) as reader, closing(reader.index(small=True)) as index:
        cells = list(index.cells())
        counts = sorted(msgspec.json.encode(one._replace(alike=0)) for one in index.counts())
        kinds = [msgspec.structs.replace(one, alike=None) for one in cells]
        return [kinds, counts, index.sums(), index.superseded(), [index.records(one) for one in cells]]


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


def test_shards_are_waited_for_until_all_of_them_have_arrived_whole(tmp_path):
    parts = sharded(suite(tmp_path, TEXTS), 3, tmp_path / "made")
    there, said = tmp_path / "there", []
    results = (parts[1] / "results.jsonl").read_bytes()

    def copied(part: Path) -> None:
        shutil.copytree(part, there / part.parent.name / part.name, dirs_exist_ok=True)

    steps = iter(
        [
            lambda: copied(parts[0]),
            lambda: (copied(parts[1]), (there / "2" / parts[1].name / "results.jsonl").write_bytes(results[:-1])),
            lambda: (there / "2" / parts[1].name / "results.jsonl").write_bytes(results),
            lambda: copied(parts[2]),
        ]
    )
    found = finished_shards([str(there)], say=said.append, pause=lambda: next(steps)())
    assert [path.parent.name for path in found] == ["1", "2", "3"]
    assert said == [
        f"waiting for the first finished shard in {there}",
        "waiting for shards 2, 3 of 3",
        "waiting for shard 3 of 3",
    ]
    assert next(steps, None) is None
    merged = merge(found, tmp_path / "there")
    assert finished_shards([str(there / "*")], 3) == found, "the merged run is none of its shards"
    assert merged.summary.cells_total == len(TEXTS)
    with pytest.raises(InputError, match=r"--of 4: .* is shard 1 of 3"):
        finished_shards([str(there)], 4)
    with pytest.raises(InputError, match="is not a folder"):
        finished_shards(["postgres:runs/*"])


def test_artifacts_are_merged_and_what_differs_is_refused(tmp_path):
    parts = sharded(suite(tmp_path, TEXTS), 2, tmp_path)
    for number, part in enumerate(parts):
        (part / "artifacts" / f"c{number}" / "main").mkdir(parents=True)
        (part / "artifacts" / f"c{number}" / "main" / "artifact.json").write_text("{}")
        (part / "manifest.json").unlink()
        resume(part)
    folder = merge(parts, tmp_path / "merged").run_dir
    assert sorted(p.parent.parent.name for p in folder.rglob("artifact.json")) == ["c0", "c1"]
    assert "artifacts/c1/main/artifact.json" in json.loads((folder / "manifest.json").read_text())["files"]
    (parts[0] / "artifacts" / "c0" / "main" / "artifact.json").write_text("[]")
    assert "artifact.json  was changed" in refused(parts, tmp_path / "other")
    (parts[1] / "artifacts" / "c0" / "main").mkdir(parents=True)
    (parts[1] / "artifacts" / "c0" / "main" / "artifact.json").write_text("{}")
    for part in parts:
        (part / "manifest.json").unlink()
        resume(part)
    assert "is in another shard, too, with other bytes" in refused(parts, tmp_path / "other")


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


def test_shards_that_ran_other_code_say_so(tmp_path):
    parts = sharded(suite(tmp_path, TEXTS), 2, tmp_path)
    for number, part in enumerate(parts):
        plan = json.loads((part / "plan.json").read_text())
        plan["files"] = {"agents.py": str(number)}
        (part / "plan.json").write_text(json.dumps(plan))
        (part / "manifest.json").unlink()
        resume(part)
    assert "agents.py was a different file in shard 2" in merge(parts, tmp_path / "merged").summary.warnings


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


def test_shards_in_one_file_are_found_by_a_glob_and_merged_with_a_folder(tmp_path):
    mine, kept = suite(tmp_path, TEXTS), Kept("sqlite", tmp_path)
    for k in (1, 2):
        run_suite(mine, RunOptions(shard=Shard(k, 3), store=kept.store()))
    folder = run_suite(mine, RunOptions(shard=Shard(3, 3), out=tmp_path / "out")).run_dir
    (tmp_path / "out" / "a.log").write_text("no run")
    found = [*runs_matching(f"{tmp_path}/runs.sqlite/*-shard-*"), *runs_matching(f"{tmp_path}/out/*")]
    assert [path.name for path in found[2:]] == [folder.name]
    assert runs_matching(f"{tmp_path}/runs.sq*") == [tmp_path / "runs.sqlite"]
    merged = merge(found, tmp_path / "merged")
    assert sorted(records(merged.run_dir, "verdicts")) == sorted(records(run_suite(mine).run_dir, "verdicts"))
    assert merge(found[::-1], tmp_path / "merged").run_dir == merged.run_dir
    retry(found[1], evaluator_failures=True)
    assert merge(found, tmp_path / "merged").run_dir != merged.run_dir


@pytest.mark.parametrize("foreign", [1, 2])
def test_a_shard_of_somebody_else_does_not_become_ones_own(tmp_path, foreign):
    parts = sharded(suite(tmp_path, TEXTS, evaluators=[SAYS_DONE]), 2, tmp_path)
    for part in parts[:foreign]:
        plan = json.loads((part / "plan.json").read_text())
        plan["seal"] = "0" * len(plan["seal"])
        (part / "plan.json").write_text(json.dumps(plan))
        (part / "manifest.json").unlink()
    merged = merge(parts, tmp_path / "merged", partial=True)
    assert merged.plan.seal == ""
    assert Plugin("x") not in merged.plan.exports
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT[\d-]+_test", merged.run_dir.name)


def test_a_file_that_the_manifest_names_and_nobody_has_is_refused(tmp_path):
    parts = sharded(suite(tmp_path, TEXTS), 2, tmp_path)
    artifact = parts[0] / "artifacts" / "c0" / "main" / "artifact.json"
    artifact.parent.mkdir(parents=True)
    artifact.write_text("{}")
    (parts[0] / "manifest.json").unlink()
    resume(parts[0])
    artifact.unlink()
    assert f"{artifact}  cannot be read, but manifest.json names it" in refused(parts, tmp_path / "merged")


def test_the_manifest_of_a_merged_run_counts_the_verdicts_of_all_shards(tmp_path):
    parts = sharded(suite(tmp_path, TEXTS), 2, tmp_path)
    merged = merge(parts, tmp_path / "merged").run_dir
    one, two, both = (Counter(json.loads((run / "manifest.json").read_text())["cells"]) for run in (*parts, merged))
    assert both.total() == len(TEXTS)
    assert both == one + two
