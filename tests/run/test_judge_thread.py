"""Evaluators of users that are not asynchronous run in a thread."""

import importlib
import sys
import threading
import time
from itertools import pairwise

import pytest

from evalwright.model.plan import EvaluatorSpec
from evalwright.model.result import EvaluationResult
from evalwright.run.start import run_suite
from evalwright.run.stored_run import open_run
from run.suites import suite


@pytest.fixture
def waits(agents):
    sys.modules.pop("waits", None)
    yield importlib.import_module("waits")
    sys.modules.pop("waits", None)


def judged(folder, function, cells=2, target="agents:echo", uses_model=False, depth=0, **settings):
    config = {"function": f"waits:{function}"} | ({"uses_model": True} if uses_model else {})
    spec = EvaluatorSpec("own", "python_function", config)
    for _ in range(depth):
        member = {"name": spec.name, "type": spec.type, "config": spec.config}
        spec = EvaluatorSpec("whole", "composite", {"evaluators": [member]})
    made = suite(folder, ["x"] * cells, target, evaluators=[spec], **settings)
    outcome = run_suite(made)
    return list(open_run(outcome.run_dir)[0].results(EvaluationResult))


def test_answers_are_received_while_an_evaluator_blocks(tmp_path, waits):
    rows = judged(tmp_path, "until_answered", target="waits:second_answers_while_first_is_judged", max_concurrency=2)
    assert [row.passed for row in rows] == [True, True]


@pytest.mark.parametrize("depth", [1, 2])
def test_answers_are_received_while_a_member_of_an_evaluator_blocks(tmp_path, waits, depth):
    target = "waits:second_answers_while_first_is_judged"
    rows = judged(tmp_path, "until_answered", target=target, depth=depth, max_concurrency=2)
    assert [row.error or row.passed for row in rows] == [True, True]


def test_a_member_that_never_returns_is_late_and_the_others_have_their_results(tmp_path, waits):
    (row,) = judged(tmp_path, "endless", cells=1, depth=1, evaluator_timeout_seconds=0.2)
    assert (row.error.type, row.error.message.partition(":")[0]) == ("timeout", "its member 'own' had an error")


def test_an_evaluator_may_have_an_event_loop_of_its_own(tmp_path, waits):
    assert [row.error or row.passed for row in judged(tmp_path, "with_a_loop_of_its_own")] == [True, True]


def test_evaluators_that_wait_for_models_are_called_in_several_threads(tmp_path, waits):
    rows = judged(tmp_path, "meeting", uses_model=True, max_concurrency=2)
    assert [row.error or row.passed for row in rows] == [True, True]


def test_each_cell_is_judged_once_whether_calls_take_long_or_not(tmp_path, waits):
    rows = judged(tmp_path, "slow_at_times", cells=30, max_concurrency=4)
    assert (len(rows), len(waits.calls)) == (30, 30)


def test_the_wait_for_its_turn_is_not_the_latency_of_an_evaluator(tmp_path, waits):
    rows = judged(tmp_path, "slow_at_times", cells=6, max_concurrency=6)
    spans = sorted((row.started_at, row.finished_at) for row in rows)
    assert all(before <= after for (_, before), (after, _) in pairwise(spans))


def test_an_evaluator_that_never_returns_is_interrupted_at_its_limit(tmp_path, waits):
    rows = judged(tmp_path, "endless", cells=1, evaluator_timeout_seconds=0.2)
    assert [row.error.type for row in rows] == ["timeout"]
    for _ in range(100):
        if not any(thread.name == "evalwright-judge" for thread in threading.enumerate()):
            break
        time.sleep(0.05)
    else:
        pytest.fail("its thread goes on")
