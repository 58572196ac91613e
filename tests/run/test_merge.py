"""Shards of a run, merged, are the run on one machine: in any order, of any store, and wherever they were killed."""

import json
import random
import re
import resource
import shutil
import threading
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from itertools import count, islice
from pathlib import Path

import pytest

from evalwright.errors import InputError, RunLockedError, StorageError
from evalwright.model.plan import EvaluatorSpec, Shard
from evalwright.run.calibration import calibrate_run
from evalwright.run.locations import find_run
from evalwright.run.merge import merge
from evalwright.run.named_runs import runs_matching
from evalwright.run.options import RunOptions
from evalwright.run.resumption import resume, retry
from evalwright.run.shard_watch import finished_shards
from evalwright.run.start import run_suite
from evalwright.session import Session
from evalwright.stores.manifest import write_manifest
from evalwright.stores.merge.copies import copy_artifacts
from run.merging import TEXTS, crash, records, refused, sharded, summary
from run.suites import SAYS_DONE, suite
from stores.stores import Kept


def test_labels_beside_shards_are_beside_the_merged_run(tmp_path):
    parts = sharded(suite(tmp_path, TEXTS), 2, tmp_path)
    sheets = ['case_id,verdict,note\nc0,pass,"a\nb"\n', "case_id,seen,verdict\nc1,yes,fail"]
    for n, part in enumerate(parts):
        sheet = tmp_path / f"{n}.csv"
        sheet.write_text(f"case_id,evaluator,verdict\nc{n},says_done,pass\n")
        calibrate_run(part, sheet)
        (part / "labels.csv").write_text(sheets[n])
    merged = merge([*reversed(parts)], tmp_path / "merged").run_dir
    lines = (merged / "labels.jsonl").read_bytes()
    assert lines == b"".join((part / "labels.jsonl").read_bytes() for part in parts)
    assert (merged / "labels.csv").read_text() == 'case_id,verdict,note,seen\nc0,pass,"a\nb",\nc1,fail,,yes\n'
    [measured] = json.loads((merged / "calibration.json").read_text())["evaluators"]
    assert measured["labels"] == 2
    assert not any("labels" in note for note in merge(parts, tmp_path / "merged").notes)
    (parts[0] / "labels.jsonl").write_bytes(lines.replace(b"true", b"false"))
    again = merge(parts, tmp_path / "merged")
    assert (again.run_dir, (merged / "labels.jsonl").read_bytes()) == (merged, lines)
    assert "merge into another --out" in again.notes[1]


@pytest.mark.parametrize("name", ["labels.jsonl", "labels.csv"])
def test_labels_outside_of_a_shard_are_not_read(tmp_path, name):
    parts = sharded(suite(tmp_path, TEXTS), 2, tmp_path)
    (tmp_path / "secret").write_text("case_id\nsesame\n")
    (parts[0] / name).symlink_to(tmp_path / "secret")
    assert f"{name} is a link that leads out" in refused(parts, tmp_path / "merged")


@pytest.mark.parametrize("whole", [False, True], ids=["begins", "begins and ends"])
def test_a_shard_that_is_run_again_while_it_is_read_is_refused(tmp_path, monkeypatch, whole):
    parts = sharded(suite(tmp_path, TEXTS), 2, tmp_path)

    def meanwhile(source, target):
        if source == parts[1] / "artifacts":  # its records have been copied
            retry(parts[1], evaluator_failures=True)
            if not whole:
                (parts[1] / "manifest.json").unlink()
        return copy_artifacts(source, target)

    monkeypatch.setattr("evalwright.run.merge.copy_artifacts", meanwhile)
    with pytest.raises(InputError, match="was changed while it was merged"):
        merge(parts, tmp_path / "merged")
    assert not [*(tmp_path / "merged").glob("2*")]
    monkeypatch.undo()
    if whole:
        assert merge(parts, tmp_path / "merged").summary.cells_missing == 0


def test_what_is_no_whole_run_is_refused_by_name_and_leaves_nothing(tmp_path):
    mine = suite(tmp_path, TEXTS)
    parts, out = sharded(mine, 3, tmp_path), tmp_path / "merged"
    assert "shard 2 of 3  is not there: evalwright run" in refused([parts[0], parts[2]], out)
    assert "is named twice" in refused([*parts, parts[0]], out)
    assert "is not a shard" in refused([run_suite(mine).run_dir], out)
    other = sharded(suite(tmp_path, TEXTS, trials=2), 3, tmp_path / "other")
    assert "trials.main is 1, not 2" in refused([other[0], *parts[1:]], out)
    third = sharded(mine, 2, tmp_path / "halves")
    assert f"{parts[1]}  is not of the same run as {third[0]}: of is 3, not 2" in refused([*third, parts[1]], out)
    retry(parts[1], evaluator_failures=True)
    copied = Path(shutil.copytree(parts[1], tmp_path / "copy" / parts[1].name))
    retry(copied, evaluator_failures=True)
    assert "are both shard 2 of 3, and differ" in refused([*parts, copied], out)
    (parts[1] / "manifest.json").unlink()
    assert f"is not finished: evalwright resume {parts[1]}" in refused(parts, out)


def test_all_runs_that_are_no_shards_are_named_at_once(tmp_path):
    mine = suite(tmp_path, TEXTS)
    parts = sharded(mine, 2, tmp_path)
    message = refused([run_suite(mine).run_dir, parts[0], run_suite(mine).run_dir], tmp_path / "merged")
    assert message.count("is not a shard: expected runs that `evalwright run --shard k/n` made") == 2


def test_a_merged_run_has_the_name_of_its_suite_though_it_looks_like_that_of_a_shard(tmp_path):
    mine = suite(tmp_path, TEXTS)
    mine.name = "test-shard-1"
    assert merge(sharded(mine, 2, tmp_path), tmp_path / "merged").run_dir.name.endswith("_test-shard-1")


@pytest.mark.parametrize("name", ["traces", "results", "verdicts"])
def test_a_run_merged_over_a_line_that_cannot_be_read_has_not_passed(tmp_path, name):
    parts = sharded(suite(tmp_path, ["done"] * 3), 2, tmp_path)
    (parts[0] / "manifest.json").unlink()
    assert merge(parts, tmp_path / "whole", partial=True).exit_code == 0
    damaged = parts[0] / f"{name}.jsonl"
    damaged.write_bytes(damaged.read_bytes() + b"{torn\n")
    merged = merge(parts, tmp_path / "merged", partial=True)
    [unread] = merged.unread
    assert (merged.exit_code, merged.summary.variants[0].pass_rate) == (3, 1.0)
    assert f"{damaged}:" in unread
    assert unread in merged.notes


def test_more_shards_than_files_may_be_open(tmp_path):
    parts = sharded(suite(tmp_path, TEXTS, max_concurrency=1), 9, tmp_path)
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    with Session():  # not the owner of the process, whose limit it leaves alone
        taken = {int(one.name) for one in Path("/dev/fd").iterdir()}  # those of other tests may have gaps
        limit = next(islice((number for number in count() if number not in taken), 21, None))
        resource.setrlimit(resource.RLIMIT_NOFILE, (limit, hard))
        try:
            merged = merge(parts, tmp_path / "merged")
        finally:
            resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    assert merged.summary.cells_total == len(TEXTS)


def test_a_full_disk_ends_a_merge_as_a_storage_error_and_leaves_nothing(tmp_path):
    parts = sharded(suite(tmp_path, ["done " * 4000] * 4), 2, tmp_path)
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, hard))
    try:
        with pytest.raises(StorageError, match=r"cannot write .*/traces.jsonl"):
            merge(parts, tmp_path / "merged")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert not (tmp_path / "merged").exists()


def test_a_copy_of_a_shard_counts_once(tmp_path):
    parts = sharded(suite(tmp_path, TEXTS), 2, tmp_path)
    copied = Path(shutil.copytree(parts[0], tmp_path / "copy" / parts[0].name))
    merged = merge([*parts, copied], tmp_path / "merged")
    assert merged.summary.cells_total == 5
    assert merged.plan.started_at == min(find_run(part).store.read(part.name).plan.started_at for part in parts)


def test_cases_of_an_unfinished_shard_that_were_changed_are_refused(tmp_path):
    parts = sharded(suite(tmp_path, TEXTS), 2, tmp_path)
    (parts[0] / "manifest.json").unlink()
    cases = parts[0] / "cases.jsonl"
    cases.write_text(cases.read_text().replace('"done"', '"no"', 1))
    assert "cases.jsonl is not the shard's: its SHA-256 differs" in refused(parts, tmp_path / "merged", partial=True)


def test_copies_of_an_unfinished_shard_are_not_told_apart(tmp_path):
    parts = sharded(suite(tmp_path, TEXTS), 2, tmp_path)
    (parts[0] / "manifest.json").unlink()
    copied = Path(shutil.copytree(parts[0], tmp_path / "copy" / parts[0].name))
    assert "name one of them" in refused([*parts, copied], tmp_path / "merged", partial=True)


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


def test_of_merges_at_the_same_time_one_makes_the_run(tmp_path):
    parts, out = sharded(suite(tmp_path, ["done"] * 40), 2, tmp_path), tmp_path / "merged"
    together = threading.Barrier(4)

    def merged(_):
        together.wait()
        try:
            return merge(parts, out).run_dir
        except RunLockedError:
            return None

    with ThreadPoolExecutor(4) as pool:
        made = {*pool.map(merged, range(4))} - {None}
    assert len(made) == 1
    assert [*out.iterdir()] == [*made]


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
    shards = finished_shards([str(there)], report=said.append, pause=lambda: next(steps)())
    assert [path.parent.name for path in shards] == ["1", "2", "3"]
    assert said == [
        f"waiting for the first finished shard in {there}",
        "waiting for shards 2, 3 of 3",
        "waiting for shard 3 of 3",
    ]
    assert next(steps, None) is None
    merged = merge(shards, tmp_path / "there")
    assert finished_shards([str(there / "*")], 3) == shards, "the merged run is none of its shards"
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


def test_shards_that_ran_other_code_say_so_wherever_each_machine_has_it(tmp_path):
    parts = sharded(suite(tmp_path, TEXTS), 2, tmp_path)
    for number, part in enumerate(parts):
        folder = f"/home/{number}/evals"
        same = {f"{folder}/cases.csv": "same", f"/home/{number}/common.py": "same", "/opt/shop.py": "same"}
        plan = json.loads((part / "plan.json").read_text())
        plan |= {"config_path": f"{folder}/eval.yaml", "files": {f"{folder}/agents.py": str(number), **same}}
        (part / "plan.json").write_text(json.dumps(plan))
        write_manifest(part, {"pass": 0})
    warnings = merge(parts, tmp_path / "merged").summary.warnings
    assert [line for line in warnings if "different" in line] == ["agents.py was a different file in shard 2"]
    plan = json.loads((parts[1] / "plan.json").read_text())  # where a plan that anyone may have written says it was
    (parts[1] / "plan.json").write_text(json.dumps({**plan, "config_path": "eval.yaml"}))
    write_manifest(parts[1], {"pass": 0})
    assert "agents.py" in " ".join(merge(parts, tmp_path / "merged").summary.warnings)


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
        plan["exports"] = [{"type": "theirs"}]
        (part / "plan.json").write_text(json.dumps(plan))
        (part / "manifest.json").unlink()
    merged = merge(parts, tmp_path / "merged", partial=True)
    assert merged.plan.seal == ""
    assert merged.plan.exports == []
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT[\d-]+_test", merged.run_dir.name)


def test_the_manifest_of_a_merged_run_counts_the_verdicts_of_all_shards(tmp_path):
    parts = sharded(suite(tmp_path, TEXTS), 2, tmp_path)
    merged = merge(parts, tmp_path / "merged").run_dir
    one, two, both = (Counter(json.loads((run / "manifest.json").read_text())["cells"]) for run in (*parts, merged))
    assert both.total() == len(TEXTS)
    assert both == one + two


def test_shards_whose_evaluators_read_different_files_are_not_of_one_run(tmp_path):
    prompt, parts = tmp_path / "prompt.txt", []
    judged = [EvaluatorSpec("says", "contains_text", {"any_of": [str(prompt), "done"]})]
    for number, text in ((1, "before"), (2, "after")):
        prompt.write_text(text)
        options = RunOptions(shard=Shard(number, 2), out=tmp_path / str(number))
        parts.append(run_suite(suite(tmp_path, TEXTS, evaluators=judged), options).run_dir)
    assert "evaluator_digests.says is" in refused(parts, tmp_path / "merged")


def test_an_unfinished_shard_in_a_database_is_not_merged(tmp_path):
    broken = suite(tmp_path, ["x"] * 8, "agents:broken", stop_after_errors=1, max_concurrency=1)
    store = Kept("sqlite", tmp_path).store()
    for number in (1, 2):
        run_suite(broken, RunOptions(shard=Shard(number, 2), store=store))
    assert "is not finished" in refused(runs_matching(f"{tmp_path}/runs.sqlite/*"), tmp_path / "out")
