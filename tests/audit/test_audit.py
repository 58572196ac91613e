"""Audits of stored runs: which mutants evaluators notice, and which evaluators decide anything."""

from __future__ import annotations

import re
import sys
from contextlib import closing
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from audit.runs import CALLS, audited, evaluator, mutation, says, stored
from evalwright.audit.audit import audit_run
from evalwright.errors import InputError
from evalwright.formats.loading import load_suite
from evalwright.model.audit import Survivor
from evalwright.run.locations import find_run
from unprivileged import as_nobody

THREE = {"a": "Order 1 is open.", "b": "Order 2 is open.", "c": "Order 3 is open."}


def calling(text: str = "done") -> dict[str, object]:
    return {"final_answer": text, "tool_calls": CALLS}


def test_what_no_evaluator_looks_at_survives(tmp_path: Path) -> None:
    report = audited(tmp_path, THREE, says("open", "is open"))
    emptied, numbers = mutation(report, "answer emptied"), mutation(report, "other numbers in the answer")
    assert (emptied.caught.value, emptied.survived, emptied.mutants) == (1.0, 0, 3)
    assert (numbers.caught.value, numbers.survived) == (0.0, 3)
    assert Survivor("a", "v", 0, "other numbers in the answer", "Order 2 is open.") in report.survivors


def test_what_a_mutation_cannot_change_is_not_counted(tmp_path: Path) -> None:
    left_out = mutation(audited(tmp_path, THREE, says("open", "is open")), "tool call left out")
    assert (left_out.mutants, left_out.not_applicable, left_out.caught.value) == (0, 3, None)


def test_only_traces_that_passed_have_mutants(tmp_path: Path) -> None:
    report = audited(tmp_path, {**THREE, "d": "no"}, says("open", "is open"))
    assert (report.passed, report.traces, mutation(report, "answer emptied").mutants) == (3, 3, 3)


def test_an_evaluator_whose_findings_others_share_is_redundant(tmp_path: Path) -> None:
    report = audited(tmp_path, THREE, says("order", "Order"), says("open", "is open"))
    notes = {one.evaluator: one.note for one in report.evaluators}
    assert notes == {
        "order": "redundant here: without it, every verdict is the same",
        "open": "",
    }


def test_an_evaluator_that_alone_fails_a_trace_of_the_run_decides_something(tmp_path: Path) -> None:
    cheap = {"name": "cheap", "type": "cost_under", "config": {"max_usd": 1}}
    answers = {name: {"final_answer": text, "metrics": {"cost_usd": 0.01}} for name, text in THREE.items()}
    answers["d"] = {"final_answer": "Order 4 is open.", "metrics": {"cost_usd": 2.0}}
    report = audited(tmp_path, answers, says("open", "is open"), cheap)
    assert (evaluator(report, "cheap").changes, evaluator(report, "cheap").note) == (1, "")


def test_an_evaluator_that_no_mutant_makes_fail_decides_nothing(tmp_path: Path) -> None:
    never = {"name": "never", "type": "contains_text", "config": {"none_of": ["swearword"]}}
    report = audited(tmp_path, THREE, says("open", "is open"), never)
    assert evaluator(report, "never").note == "decides nothing here: no mutant makes it fail"


COSTS = {name: {"final_answer": text, "metrics": {"cost_usd": 0.1}} for name, text in THREE.items()}


@pytest.mark.parametrize(
    ("limit", "note", "survived"),
    [(0.5, "", 0), (2.0, "decides nothing here: no mutant makes it fail", 3)],
)
def test_a_limit_on_costs_is_tested_by_ten_times_the_cost(
    tmp_path: Path, limit: float, note: str, survived: int
) -> None:
    cheap = {"name": "cheap", "type": "cost_under", "config": {"max_usd": limit}}
    report = audited(tmp_path, COSTS, says("open", "is open"), cheap)
    dear = mutation(report, "ten times the cost")
    assert (dear.mutants, dear.survived) == (3, survived)
    assert (evaluator(report, "cheap").note, evaluator(report, "cheap").changes) == (note, 3 - survived)
    assert mutation(report, "ten times the tokens").not_applicable == 3


def test_where_nothing_limits_the_use_no_mutant_uses_more(tmp_path: Path) -> None:
    dear = mutation(audited(tmp_path, COSTS, says("open", "is open")), "ten times the cost")
    assert (dear.mutants, dear.not_applicable) == (0, 0)


def test_a_limit_on_what_was_not_used_is_reported_as_untested(tmp_path: Path) -> None:
    free = {"name": "free", "type": "cost_under", "config": {"max_usd": 1}}
    answers = {name: {"final_answer": text, "metrics": {"cost_usd": 0}} for name, text in THREE.items()}
    run = stored(tmp_path, answers, says("open", "is open"), free)
    traces = run / "traces.jsonl"
    traces.write_text(re.sub(r'"latency_ms":\d+', '"latency_ms":0', traces.read_text()))
    report = audit_run(run, limit=100)
    assert evaluator(report, "free").note == "not tested: it looks at nothing that mutations change"


def test_evaluators_that_are_not_required_decide_nothing(tmp_path: Path) -> None:
    required = {"pass_criteria": {"all_required": ["open"]}}
    report = audited(tmp_path, THREE, says("open", "is open"), says("one", "Order"), **required)
    assert (evaluator(report, "one").changes, evaluator(report, "open").changes > 0) == (0, True)


def test_a_required_evaluator_may_be_redundant(tmp_path: Path) -> None:
    required = {"pass_criteria": {"all_required": ["open", "order"]}}
    report = audited(tmp_path, THREE, says("open", "is open"), says("order", "Order"), **required)
    assert (evaluator(report, "order").changes, evaluator(report, "open").changes) == (0, 3)


def test_an_evaluator_that_failed_the_original_does_not_judge_its_mutants(tmp_path: Path) -> None:
    required = {"pass_criteria": {"all_required": ["open"]}}
    report = audited(tmp_path, THREE, says("open", "is open"), says("one", "Order 1"), **required)
    assert (evaluator(report, "one").mutants, evaluator(report, "open").mutants) == (5, 15)


def test_errors_on_mutants_are_neither_caught_nor_survived(tmp_path: Path) -> None:
    (tmp_path / "counting.py").write_text("def check(output):\n    return 1 / len(output) > 0\n")
    counts = {"name": "counts", "type": "python_function", "config": {"function": "counting:check"}}
    report = audited(tmp_path, THREE, says("open", "is open"), counts)
    emptied = mutation(report, "answer emptied")
    assert (emptied.errors, emptied.survived, emptied.caught.value, report.errors) == (3, 0, None, 3)
    assert "counts: " in report.error_example


@pytest.mark.parametrize(
    ("without_error", "note"),
    [
        ("output", "decides nothing here: no mutant makes it fail"),
        ("output == 'Order 1 is open.'", "not tested: it had an error on every mutant"),
    ],
)
def test_an_evaluator_decides_nothing_by_errors(tmp_path: Path, without_error: str, note: str) -> None:
    (tmp_path / "breaking.py").write_text(f"def check(output):\n    return 1 / bool({without_error}) > 0\n")
    breaks = {"name": "breaks", "type": "python_function", "config": {"function": "breaking:check"}}
    found = evaluator(audited(tmp_path, {"a": "Order 1 is open."}, says("open", "is open"), breaks), "breaks")
    assert found.errors
    assert (found.changes, found.note) == (0, note)


def test_errors_on_originals_are_counted_and_do_not_pass_for_failures(tmp_path: Path) -> None:
    check = tmp_path / "mended.py"
    check.write_text("def check(output):\n    return True\n")
    counts = {"name": "counts", "type": "python_function", "config": {"function": "mended:check"}}
    run = stored(tmp_path, THREE, says("open", "is open"), counts)
    check.write_text("def check(output):\n    return 1 / ('2' not in output)\n")
    sys.modules.pop("mended", None)
    report = audit_run(run, limit=100)
    assert (report.traces, report.unjudged, report.notes) == (2, 1, [])
    assert "counts: " in report.error_example


def test_calls_are_mutated_and_judged(tmp_path: Path) -> None:
    matches = {"name": "calls", "type": "tool_calls_match", "config": {"mode": "exact", "expected": CALLS}}
    report = audited(tmp_path, {"a": calling("x"), "b": calling("y")}, matches)
    caught = {one.mutation: one.caught.value for one in report.mutations if "call" in one.mutation}
    assert set(caught.values()) == {1.0}


def test_the_limit_bounds_what_is_audited_and_the_choice_is_always_the_same(tmp_path: Path) -> None:
    run = stored(tmp_path, {f"c{i}": f"Order {i} is open." for i in range(30)}, says("open", "is open"))
    few = audit_run(run, limit=5)
    assert (few.passed, few.traces, mutation(few, "answer emptied").mutants) == (30, 5, 5)
    assert few == audit_run(run, limit=5)


def entries(folder: Path) -> dict[str, tuple[int, bytes]]:
    """When each file and folder below a folder was changed, and the content of the files."""
    return {
        str(path.relative_to(folder)): (path.stat().st_mtime_ns, path.read_bytes() if path.is_file() else b"")
        for path in [folder, *folder.rglob("*")]
    }


def test_a_run_folder_stays_as_it_is_with_a_last_line_that_is_not_whole(tmp_path: Path) -> None:
    run = stored(tmp_path, THREE, says("open", "is open"))
    with (run / "traces.jsonl").open("ab") as traces:
        traces.write(b'{"case_id":"torn')
    before = entries(run)
    assert audit_run(run, limit=100).traces == 3
    assert entries(run) == before


def audited_as_nobody(run: Path) -> str:
    """The traces that an audit judged, or its error, for a user who may only read."""
    return as_nobody(lambda: str(audit_run(run, limit=100).traces))


@pytest.mark.parametrize("store", ["local_files", "sqlite"])
def test_a_run_is_audited_where_nothing_can_be_written(store: str) -> None:
    with TemporaryDirectory() as name:  # not in the folders of pytest, which only their owner may enter
        folder = Path(name)
        path = folder / ("runs" if store == "local_files" else "runs.sqlite")
        run = stored(folder, THREE, says("open", "is open"), output={"type": store, "path": str(path)})
        for entry in folder.rglob("*"):
            entry.chmod(0o555 if entry.is_dir() else 0o444)
        folder.chmod(0o555)
        before = entries(folder)
        try:
            assert audited_as_nobody(run) == "3"
            assert entries(folder) == before
        finally:
            for entry in [folder, *folder.rglob("*")]:
                if entry.is_dir():
                    entry.chmod(0o755)


@pytest.mark.parametrize("store", ["local_files", "sqlite"])
def test_a_run_that_is_being_written_is_audited(tmp_path: Path, store: str) -> None:
    path = tmp_path / ("runs" if store == "local_files" else "runs.sqlite")
    run = stored(tmp_path, THREE, says("open", "is open"), output={"type": store, "path": str(path)})
    place = find_run(run)
    with closing(place.store.open(place.run_id)):
        assert audit_run(run, limit=100).traces == 3


def test_evaluators_that_look_for_a_secret_find_its_mask(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SHOP_API_KEY", "sk-canary-4711")
    report = audited(tmp_path, {"a": "It is sk-canary-4711."}, says("told", "${SHOP_API_KEY}"))
    assert mutation(report, "answer emptied").caught.value == 1.0


def test_the_system_is_not_called(tmp_path: Path) -> None:
    run = stored(tmp_path, THREE, says("open", "is open"))
    (tmp_path / "audited_agent.py").write_text("raise RuntimeError('imported')\n")
    assert audit_run(run, limit=100).traces == 3


def test_a_run_in_which_nothing_passed_is_rejected(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"no cell of .* passed"):
        audited(tmp_path, {"a": "no"}, says("open", "is open"))


def test_a_run_without_answers_and_calls_is_rejected(tmp_path: Path) -> None:
    never = {"name": "never", "type": "contains_text", "config": {"none_of": ["swearword"]}}
    with pytest.raises(InputError, match="no mutation changes anything in 1 trace"):
        audited(tmp_path, {"a": ""}, never)


def test_evaluators_of_another_suite_are_audited_on_the_same_answers(tmp_path: Path) -> None:
    run = stored(tmp_path, THREE, says("open", "is open"))
    better = (tmp_path / "eval.yaml").read_text().replace("is open", "Order")
    (tmp_path / "better.yaml").write_text(better)
    report = audit_run(run, limit=100, suite=load_suite(tmp_path / "better.yaml", to_run=False))
    assert mutation(report, "answer cut in half").survived == 3


def test_a_trace_that_does_not_pass_by_these_evaluators_has_no_mutants(tmp_path: Path) -> None:
    run = stored(tmp_path, THREE, says("open", "is open"))
    (tmp_path / "other.yaml").write_text((tmp_path / "eval.yaml").read_text().replace("is open", "Order 1"))
    report = audit_run(run, limit=100, suite=load_suite(tmp_path / "other.yaml", to_run=False))
    assert (report.traces, report.notes) == (
        1,
        ["2 traces left out: passed in the run, and not by the evaluators of this audit alone"],
    )


def test_a_run_in_sqlite_is_audited_like_one_in_a_folder(tmp_path: Path) -> None:
    (tmp_path / "one").mkdir()
    (tmp_path / "two").mkdir()
    kept = {"output": {"type": "sqlite", "path": str(tmp_path / "two" / "runs.sqlite")}}
    one = audited(tmp_path / "one", THREE, says("open", "is open"))
    two = audited(tmp_path / "two", THREE, says("open", "is open"), **kept)
    assert (two.mutations, two.survivors) == (one.mutations, one.survivors)
