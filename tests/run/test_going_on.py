"""Resume, retry and judge again: nothing is called that need not be, and the newest record wins."""

from pathlib import Path

import pytest

from evalwright import built_in
from evalwright.errors import InputError, RunLockedError
from evalwright.model.plan import EvaluatorSpec, Variant
from evalwright.model.result import CaseVerdict, Evaluation, EvaluationResult
from evalwright.model.trace import Trace
from evalwright.run.re_evaluation import re_evaluate
from evalwright.run.resumption import resume, retry
from evalwright.run.start import run_suite
from evalwright.run.stored_run import open_run
from evalwright.stores.local_files import LocalFiles
from run.stored import cut
from run.suites import SAYS_DONE, SAYS_LAST, suite


def rows(run_dir, kind, read):
    reader, _ = open_run(run_dir)
    return list(getattr(reader, read)(kind))


def test_resume_calls_only_what_has_no_trace(tmp_path, agents):
    outcome = run_suite(suite(tmp_path, ["done"] * 6, max_concurrency=1, evaluators=[SAYS_DONE, SAYS_LAST]))
    cut(outcome.run_dir / "traces.jsonl", 4)
    cut(outcome.run_dir / "results.jsonl", 5)
    cut(outcome.run_dir / "verdicts.jsonl", 2)
    agents.calls.clear()
    again = resume(outcome.run_dir)
    assert agents.calls == ["c4", "c5"]
    assert len(rows(outcome.run_dir, Trace, "traces")) == 6
    assert len(rows(outcome.run_dir, EvaluationResult, "results")) == 12
    assert len(rows(outcome.run_dir, CaseVerdict, "verdicts")) == 6
    assert again.summary.variants == outcome.summary.variants
    assert again.summary.cells_total == 6


def test_retry_runs_errored_cells_again_under_the_same_id(tmp_path, agents):
    outcome = run_suite(suite(tmp_path, [1, 2], "agents:flaky", evaluators=[SAYS_LAST]))
    assert outcome.exit_code == 3
    again = retry(outcome.run_dir)
    assert again.run_dir == outcome.run_dir
    assert agents.calls == ["c0", "c1", "c1"]
    assert again.exit_code == 0
    [variant] = again.summary.variants
    assert (variant.cases_total, variant.cases_passed, variant.cases_errored) == (2, 2, 0)
    nothing = retry(outcome.run_dir)
    assert "nothing to do" in nothing.notes[0]
    assert len(agents.calls) == 3


def test_retry_takes_failed_cells_only_when_asked(tmp_path, agents):
    outcome = run_suite(suite(tmp_path, ["done", "no"]))
    retry(outcome.run_dir)
    assert len(agents.calls) == 2
    retry(outcome.run_dir, evaluator_failures=True)
    assert agents.calls[2:] == ["c1"]


class ByWord:
    """Finds what the answer says."""

    def __init__(self, **config):
        pass

    def evaluate(self, case, trace):
        word = trace.output.final_answer
        return Evaluation(word == "pass", skipped=word == "skip")


def test_failures_are_run_again_beside_errors_but_no_passes_and_no_skips(tmp_path, agents, monkeypatch):
    monkeypatch.setitem(built_in.KINDS["evaluators"], "by_word", f"{__name__}:ByWord")
    evaluators = [EvaluatorSpec("one", "by_word"), EvaluatorSpec("two", "by_word")]
    words = ["pass", "fail", "skip", "error"]
    outcome = run_suite(suite(tmp_path, words, "agents:word", evaluators=evaluators, max_concurrency=1))
    assert [row.status for row in rows(outcome.run_dir, CaseVerdict, "verdicts")] == words
    agents.calls.clear()
    retry(outcome.run_dir)
    assert agents.calls == ["c3"]
    agents.calls.clear()
    retry(outcome.run_dir, evaluator_failures=True)
    assert agents.calls == ["c1", "c3"]


def test_a_bare_id_is_that_of_a_run_below_runs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    run_id = run_suite(suite(tmp_path, ["done"])).run_dir.name
    assert open_run(Path(run_id))[1].run_id == run_id
    assert resume(Path(run_id)).run_dir == tmp_path / "runs" / run_id
    (tmp_path / run_id).mkdir()
    with pytest.raises(InputError, match="not a run folder"):
        open_run(Path(run_id))


@pytest.mark.parametrize("processes", [1, 3])
def test_judging_again_replaces_rows_and_calls_nothing(tmp_path, agents, processes):
    outcome = run_suite(suite(tmp_path, ["done", "no"] * 5))
    agents.calls.clear()
    before = rows(outcome.run_dir, EvaluationResult, "results")
    again = re_evaluate(outcome.run_dir, processes=processes)
    after = rows(outcome.run_dir, EvaluationResult, "results")
    assert agents.calls == []
    assert {(r.case_id, r.passed) for r in after} == {(r.case_id, r.passed) for r in before}
    assert len(after) == len(before)
    assert again.summary.variants == outcome.summary.variants


def test_one_evaluator_can_be_added_from_another_suite(tmp_path):
    outcome = run_suite(suite(tmp_path, ["done", "last"], evaluators=[SAYS_DONE]))
    wider = suite(tmp_path, [], evaluators=[SAYS_DONE, SAYS_LAST])
    again = re_evaluate(outcome.run_dir, add="says_last", suite=wider)
    by_name = {(r.case_id, r.evaluator): r.passed for r in rows(outcome.run_dir, EvaluationResult, "results")}
    assert by_name == {
        ("c0", "says_done"): True,
        ("c0", "says_last"): False,
        ("c1", "says_done"): False,
        ("c1", "says_last"): True,
    }
    assert [e.name for e in open_run(outcome.run_dir)[1].evaluators] == ["says_done", "says_last"]
    assert {r.evaluator for r in again.summary.by_evaluator} == {"says_done", "says_last"}


@pytest.mark.parametrize("added", ["says_done", "agrees", "best"])
def test_what_goes_by_the_results_of_others_is_judged_again_with_any_of_them(tmp_path, added):
    by_results = [
        EvaluatorSpec("agrees", "python_function", {"function": "verdicts:agrees"}),
        EvaluatorSpec("best", "promptfoo_comparison", {"assertion": {"type": "max-score"}}),
    ]
    variants = [
        Variant(name, "python_function", {"target": "agents:tabled", "answers": answers})
        for name, answers in (("a", "1"), ("b", "0"))
    ]
    made = suite(tmp_path, ["x"], variants=variants, evaluators=[SAYS_DONE, SAYS_LAST, *by_results])
    outcome = run_suite(made)

    def passed() -> dict[tuple[str, str], bool]:
        stored_rows = rows(outcome.run_dir, EvaluationResult, "results")
        return {(row.variant_name, row.evaluator): row.passed for row in stored_rows}

    before = passed()
    assert (before["a", "agrees"], before["a", "best"], before["b", "best"]) == (True, True, False)
    turned = EvaluatorSpec("says_done", "contains_text", {"none_of": ["done"]})
    re_evaluate(outcome.run_dir, add=added, suite=suite(tmp_path, [], evaluators=[turned, *by_results]))
    if added != "says_done":  # which judges as before, as do all others
        assert passed() == before
        return
    after = {key: not value for key, value in before.items() if key[1] != "says_last"}
    assert passed() == {**before, **after}


def test_an_unknown_evaluator_is_refused_and_nothing_changes(tmp_path):
    outcome = run_suite(suite(tmp_path, ["done"]))
    before = (outcome.run_dir / "results.jsonl").read_bytes()
    with pytest.raises(InputError, match="ghost"):
        re_evaluate(outcome.run_dir, add="ghost")
    assert (outcome.run_dir / "results.jsonl").read_bytes() == before


def test_judging_again_takes_the_newest_trace_of_a_cell(tmp_path):
    outcome = run_suite(suite(tmp_path, [1, 2], "agents:flaky", evaluators=[SAYS_LAST]))
    retry(outcome.run_dir)
    again = re_evaluate(outcome.run_dir)
    assert "2 traces" in again.notes[0]
    assert again.summary.variants[0].cases_passed == 2


def test_a_run_that_is_being_written_is_refused(tmp_path):
    outcome = run_suite(suite(tmp_path, ["done"]))
    store, run_id = LocalFiles.at(outcome.run_dir)
    writer = store.open(run_id)
    try:
        with pytest.raises(RunLockedError, match=r"\d+"):
            resume(outcome.run_dir)
    finally:
        writer.close()


def test_judging_again_is_bounded_too(tmp_path):
    outcome = run_suite(suite(tmp_path, ["a" * 40 + "b"], evaluator_timeout_seconds=0.5))
    plan = open_run(outcome.run_dir)[1]
    slow = EvaluatorSpec("slow", "field_check", {"field": "output.final_answer", "matches": "(a+)+$"})
    wider = suite(tmp_path, [], evaluators=[*plan.evaluators, slow])
    re_evaluate(outcome.run_dir, add="slow", suite=wider)
    [row] = [r for r in rows(outcome.run_dir, EvaluationResult, "results") if r.evaluator == "slow"]
    assert row.error.type == "timeout"
