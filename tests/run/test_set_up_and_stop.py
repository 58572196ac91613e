"""Set-up code of users is held, and a run that stops leaves what is still due for the next session."""

import asyncio
import gc
import os
import re
import signal
import threading

import pytest

from evalwright import built_in
from evalwright.errors import InputError, Interrupted
from evalwright.model.plan import RetryRule, Variant
from evalwright.model.result import CaseVerdict, EvaluationResult
from evalwright.model.trace import Answer, Output, Trace
from evalwright.run.re_evaluation import re_evaluate
from evalwright.run.resumption import resume
from evalwright.run.start import run_suite
from evalwright.run.stored_run import open_run
from run.suites import SAYS_LAST, suite


@pytest.fixture(autouse=True)
def undisturbed_collections():
    """Hypothesis looks on at each collection of garbage, and Python swallows an interrupt that arrives there."""
    callbacks = gc.callbacks.copy()
    gc.callbacks.clear()
    yield
    gc.callbacks[:] = callbacks


@pytest.mark.parametrize(("target", "told"), [("agents:Refuses", "SystemExit"), ("agents:Sleeps", "0.5 seconds")])
def test_set_up_that_exits_or_hangs_is_the_users_mistake(tmp_path, target, told):
    with pytest.raises(InputError, match=told):
        run_suite(suite(tmp_path, [1], target, config={"init_kwargs": {}}, timeout=0.5))


class Unclosable:
    def __init__(self, variant):
        pass

    async def run(self, case, trial):
        return Answer(Output(final_answer="done"))

    async def close(self):
        raise RuntimeError("still busy")


def test_a_target_that_cannot_be_closed_is_told_of_and_spoils_no_verdict(tmp_path, monkeypatch):
    monkeypatch.setitem(built_in.KINDS["targets"], "unclosable", f"{__name__}:Unclosable")
    outcome = run_suite(suite(tmp_path, [1], variants=[Variant("main", "unclosable", {})]))
    [said] = outcome.summary.warnings
    assert re.fullmatch(r"main: closing it raised RuntimeError: still busy in test_set_up_and_stop\.py:\d+", said)
    assert (outcome.exit_code, outcome.notes) == (0, [said])


def test_interrupting_a_pause_before_a_retry_leaves_the_cell_for_later(tmp_path, agents):
    rule = RetryRule(max_attempts=3, on=["adapter_error"], backoff_seconds=30)
    timer = threading.Timer(0.7, os.kill, (os.getpid(), signal.SIGINT))
    timer.start()
    outcome = run_suite(suite(tmp_path, [2], "agents:flaky", evaluators=[SAYS_LAST], retry=rule))
    timer.join()
    assert outcome.exit_code == 130
    assert outcome.summary.cells_missing == 1
    assert resume(outcome.run_dir).exit_code == 0
    assert agents.calls == ["c0", "c0"]


def test_a_cell_that_waits_for_money_when_the_run_is_interrupted_is_left_for_later(tmp_path, agents):
    async def dear(case, variant):
        agents.calls.append(case["id"])
        if case["id"] == "c1":
            await asyncio.sleep(0.1)  # meanwhile the third one waits
            os.kill(os.getpid(), signal.SIGINT)
            await asyncio.sleep(0.2)
        return {"final_answer": "done", "metrics": {"cost_usd": 0.01}}

    agents.dear = dear
    outcome = run_suite(suite(tmp_path, [1] * 3, "agents:dear", max_concurrency=2, cost_limit_usd=0.015))
    assert (outcome.exit_code, outcome.summary.cells_missing, agents.calls) == (130, 1, ["c0", "c1"])


def test_cells_judged_before_a_signal_in_blocking_code_are_in_the_summary(tmp_path, agents):
    async def blocking(case, variant):
        if case["id"] == "c2":
            raise Interrupted  # what the handler of a signal does in code that blocks the loop
        return "done"

    agents.blocking = blocking
    outcome = run_suite(suite(tmp_path, [1] * 4, "agents:blocking", evaluators=[SAYS_LAST], max_concurrency=1))
    assert (outcome.exit_code, outcome.summary.cells_total, outcome.summary.cells_missing) == (130, 2, 2)
    assert len([*open_run(outcome.run_dir)[0].verdicts(CaseVerdict)]) == 2


def test_interrupting_set_up_ends_the_run_at_once_and_leaves_its_cells_for_later(tmp_path):
    timer = threading.Timer(0.5, os.kill, (os.getpid(), signal.SIGINT))
    timer.start()
    outcome = run_suite(suite(tmp_path, [1], "agents:Sleeps", config={"init_kwargs": {}}, timeout=30))
    timer.join()
    assert (outcome.exit_code, outcome.summary.cells_missing) == (130, 1)


def test_a_call_that_was_left_behind_is_not_tried_again(tmp_path, agents):
    rule = RetryRule(max_attempts=3, on=["timeout"])
    outcome = run_suite(suite(tmp_path, [1], "agents:stubborn", timeout=0.3, retry=rule))
    assert agents.calls == ["c0"]
    [trace] = open_run(outcome.run_dir)[0].traces(Trace)
    assert trace.error.type == "timeout"


def test_a_huge_number_of_attempts_has_bounded_pauses(tmp_path, agents):
    rule = RetryRule(max_attempts=1100, on=["adapter_error"])
    run_suite(suite(tmp_path, [1100], "agents:flaky", evaluators=[SAYS_LAST], retry=rule))
    assert len(agents.calls) == 1100


def test_a_trace_without_results_is_a_missing_cell_not_a_failure(tmp_path):
    outcome = run_suite(suite(tmp_path, ["done"]))
    for name in ("results.jsonl", "verdicts.jsonl"):
        (outcome.run_dir / name).write_bytes(b"")
    from evalwright.scoring.fold import fold

    reader, plan = open_run(outcome.run_dir)
    summary = fold(reader, plan).summary(plan, plan.started_at)
    assert (summary.cells_missing, summary.status) == (1, "partial")


@pytest.mark.slow("a judgement that is interrupted while it waits")
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # between `open` and `with`
def test_interrupting_a_new_judgement_keeps_the_old_one(tmp_path):
    outcome = run_suite(suite(tmp_path, ["done"] * 19_000, max_concurrency=8))
    before = (outcome.run_dir / "results.jsonl").read_bytes()
    for processes in (1, 2):
        timer = threading.Timer(0.05, os.kill, (os.getpid(), signal.SIGINT))
        timer.start()
        with pytest.raises(KeyboardInterrupt):
            re_evaluate(outcome.run_dir, processes=processes)
        timer.join()
        assert (outcome.run_dir / "results.jsonl").read_bytes() == before
    reader, _ = open_run(outcome.run_dir)
    assert not any(row.error for row in reader.results(EvaluationResult))
    assert len(list(reader.verdicts(CaseVerdict))) == 19_000
