"""`promote` and `drift`: a baseline by name, and what changed since."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
import yaml

from acceptance.projects import EVAL, TWO_SYSTEMS, Project, project
from dying import killed_at
from evalwright.run.baselines import baseline_of, is_promoted, promote


def cases(made: Project, **answers: str) -> None:
    lines = [json.dumps({"id": name, "input": {"do": answer}}) for name, answer in answers.items()]
    (made.folder / "cases.jsonl").write_text("\n".join(lines) + "\n")


@pytest.fixture
def drifted(tmp_path: Path) -> tuple[Project, Path, Path]:
    """Two runs: `b` got worse, `c` better, `d` is gone, `e` is new."""
    made = project(tmp_path, {"a": "thanks", "b": "thanks", "c": "no", "d": "thanks"})
    before = made.run()
    cases(made, a="thanks", b="no", c="thanks", e="thanks")
    return made, before, made.run()


def test_without_a_baseline_drift_says_so(drifted):
    made, _, after = drifted
    ended = made.evalwright("drift", after, "--exit-nonzero-on-regression")
    assert (ended.code, "no baseline" in ended.out) == (0, True)
    # a gate that is held against nothing has not passed
    assert made.evalwright("drift", after, "--fail-on-regression").code == 3


def test_a_baseline_that_is_gone_is_not_said_never_to_have_been(drifted):
    made, before, after = drifted
    made.evalwright("promote", before)
    shutil.rmtree(before)
    ended = made.evalwright("drift", after)
    assert (ended.code, f"{before.name}; promote another run, or pass --baseline RUN" in ended.out) == (0, True)
    assert "is gone" in ended.out


def test_a_promoted_run_is_what_later_ones_are_held_against(drifted):
    made, before, after = drifted
    assert "promoted" in made.evalwright("promote", before).out
    ended = made.evalwright("drift", after)
    assert ended.code == 0
    report = yaml.safe_load((after / "drift.yaml").read_text())
    (delta,) = report["deltas"]
    assert (delta["regressions"], delta["improvements"], delta["n"]) == (["b", "d"], ["c", "e"], 1)
    assert (report["counted"], report["union_delta"], report["decision"]["n"]) == (5, 0.0, 1)
    assert (report["kind"], report["baseline_run_id"]) == ("drift", before.name)
    assert "- regressions: 2" in ended.out


def test_a_report_that_cannot_be_stored_is_printed(drifted):
    made, before, after = drifted
    (after / "drift.yaml").mkdir()
    ended = made.evalwright("drift", after, "--baseline", before)
    assert (ended.code, "- regressions: 2" in ended.out) == (5, True)


def test_a_file_that_is_no_baseline_is_not_replaced_by_one(drifted):
    made, before, _ = drifted
    place = before.parent / "baselines" / yaml.safe_load((before / "config.yaml").read_text())["eval"]["name"]
    place.parent.mkdir()
    place.write_text("mine")
    ended = made.evalwright("promote", before)
    assert (ended.code, "is not a link to a baseline" in ended.err) == (2, True)
    assert place.read_text() == "mine"


def test_a_run_in_a_database_can_be_promoted(tmp_path):
    stored = EVAL.replace("type: local_files, path: runs", "type: sqlite, path: kept/runs.db")
    assert stored != EVAL
    made = project(tmp_path, {"a": "thanks", "b": "thanks"}, stored)
    before = made.run()
    cases(made, a="thanks", b="no")
    after = made.run()
    ended = made.evalwright("promote", before)
    assert (ended.code, (tmp_path / "kept/baselines").is_dir()) == (0, True)
    assert "- regressions: 1" in made.evalwright("drift", after).out


def test_a_run_on_a_server_is_promoted_by_its_address(tmp_path):
    run = Path("postgres:public/2026-01-01T00-00-00_demo")
    promote(run, "demo", tmp_path)
    assert baseline_of(run, "demo", tmp_path) == run


def test_a_regression_can_fail_the_command(drifted):
    made, before, after = drifted
    assert made.evalwright("drift", after, "--baseline", before, "--exit-nonzero-on-regression").code == 1
    assert made.evalwright("drift", before, "--baseline", before, "--exit-nonzero-on-regression").code == 0


def test_a_run_that_is_its_own_baseline_is_warned_of(drifted):
    made, before, after = drifted
    made.evalwright("promote", before)
    text = "is its own baseline"
    assert text in made.evalwright("drift", before).err
    assert text not in made.evalwright("drift", after).err


def test_the_change_of_each_of_several_variants_has_its_name(tmp_path):
    made = project(tmp_path, {"a": "thanks"}, TWO_SYSTEMS)
    before, after = made.run(), made.run()
    changes = made.evalwright("drift", after, "--baseline", before).out.splitlines()[4:6]
    assert [line.split(":")[0] for line in changes] == ["- `v`", "- `w`"]


def test_a_cell_with_an_error_did_not_pass_whatever_was_said_of_it(tmp_path):
    made = project(tmp_path, {"a": "fine", "b": "fine"}, EVAL.replace("all_of: [thanks]", "none_of: [rude]"))
    before = made.run()
    cases(made, a="raise", b="fine")
    after = made.run()
    ended = made.evalwright("drift", after, "--baseline", before)
    assert "- regressions: 1; counts over all 2 cases, no error rate\n" in ended.out
    assert "- cells with an error: 0.0% → 50.0%\n" in ended.out


def test_runs_of_errors_alone_are_no_success(tmp_path):
    made = project(tmp_path, {"a": "raise", "b": "raise"})
    before, after = made.run(), made.run()
    compared = made.evalwright("compare", before, after)
    assert (compared.code, made.evalwright("drift", after, "--baseline", before).code) == (3, 3)
    assert "errors in v: A 2 (target 2), B 2 (target 2)\n" in compared.out  # and no bounds of a difference


@pytest.mark.slow("four commands")
def test_promoting_again_replaces_the_baseline(drifted):
    made, before, after = drifted
    made.evalwright("promote", before)
    made.evalwright("promote", after)
    (link,) = (made.folder / "runs" / "baselines").iterdir()
    assert link.resolve() == after.resolve()


def test_a_name_cannot_leave_the_folder_of_baselines(drifted):
    made, before, _ = drifted
    made.evalwright("promote", before, "--eval-name", "../../outside")
    (link,) = (made.folder / "runs" / "baselines").iterdir()
    assert link.resolve() == before.resolve()


def test_suites_whose_names_are_the_same_in_a_path_have_baselines_of_their_own(tmp_path):
    runs = []
    for name in ("订单", "客服", "a b", "a-b"):
        made = project(tmp_path / name, {"a": "thanks"}, EVAL.replace("shop", f'"{name}"'))
        runs.append(made.run("--out", str(tmp_path / "runs")))
    for promoted, other, name in ((runs[0], runs[1], "客服"), (runs[2], runs[3], "a-b")):
        made.evalwright("promote", promoted)
        assert f"no baseline for '{name}'" in made.evalwright("drift", other).out
        assert f"Baseline: `{promoted.name}`" in made.evalwright("drift", promoted).out
    assert [is_promoted(run) for run in runs] == [True, False, True, False]


def test_a_run_is_no_baseline_if_promoting_it_was_killed(drifted):
    made, before, _ = drifted
    assert killed_at(1, ["promote", str(before)], made.folder, "os.rename")
    assert not is_promoted(before)
    made.evalwright("promote", before)
    assert is_promoted(before)


@pytest.mark.parametrize("command", ["promote", "drift"])
def test_a_run_that_is_not_there_is_an_input_error(tmp_path, command):
    ended = project(tmp_path, {"a": "x"}).evalwright(command, "runs/none")
    assert (ended.code, "none" in ended.err) == (2, True)


def test_promoting_a_run_that_lacks_verdicts_says_how_many(tmp_path):
    made = project(tmp_path, {"a": "thanks", "b": "raise", "c": "no"})
    run = made.run()
    ended = made.evalwright("promote", run)
    assert (ended.code, ended.err) == (
        0,
        f"warning: {run.name} has 1 of 3 cells without a verdict: later runs are not compared with these\n",
    )
    made = project(tmp_path / "whole", {"a": "thanks"})
    assert made.evalwright("promote", made.run()).err == ""


def test_promoting_a_run_with_unreadable_records_says_so(tmp_path):
    made = project(tmp_path, {"a": "thanks", "b": "thanks", "c": "thanks"})
    run = made.run()
    traces = run / "traces.jsonl"
    first, second, third = traces.read_bytes().splitlines(keepends=True)
    traces.write_bytes(first + second[: len(second) // 2] + b"\n" + third)
    ended = made.evalwright("promote", run)
    assert (ended.code, "promoted" in ended.out) == (3, True)
    assert "traces.jsonl" in ended.err
    assert "1 of 3 cells without a verdict" in ended.err
