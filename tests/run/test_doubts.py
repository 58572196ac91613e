"""What is odd about answers is told once, at the end of the run, with the number of those that have it."""

import pytest

from evalwright.model.plan import EvaluatorSpec, Variant
from evalwright.run.re_evaluation import re_evaluate
from evalwright.run.resumption import retry
from evalwright.run.start import run_suite
from evalwright.run.stored_run import open_run
from run.suites import suite

LOST, NONE, EVER = ("the end is missing", "cut off"), ("$.a found nothing", "", True), ("$.b found nothing", "", True)


def doubted(name="main", **more):
    return Variant(name, "python_function", {"target": "agents:doubted"}, **more)


@pytest.mark.parametrize("isolation", ["none", "process"])
def test_doubts_about_answers_are_counted_in_whatever_process_they_were_given(tmp_path, agents, isolation):
    inputs = [{"main": [turn]} for turn in ([NONE, LOST], [NONE, EVER], [EVER, NONE], [NONE])]
    variants = [doubted(isolation=isolation)]
    outcome = run_suite(suite(tmp_path, inputs, variants=variants, max_concurrency=2))
    said = ["main: $.a found nothing in any of 4 replies", "main: the end is missing in 1 of 4 replies: cut off"]
    assert sorted(outcome.summary.warnings) == sorted(outcome.notes) == said
    assert outcome.exit_code == 0


def test_calls_without_an_answer_do_not_count(tmp_path, agents):
    outcome = run_suite(suite(tmp_path, [{"main": [[LOST, NONE]]}, {"main": [None]}], variants=[doubted()]))
    assert outcome.summary.warnings == [
        "main: the end is missing in 1 of 1 reply: cut off",
        "main: $.a found nothing in any of 1 reply",
    ]


def test_numbers_that_are_left_out_are_told(tmp_path, agents):
    outcome = run_suite(suite(tmp_path, ["3", "$3", -3], "agents:costing"))
    left_out = "metrics.cost_usd: expected a finite number from 0 on, found '$3'; left out"
    assert outcome.summary.warnings == [f"main: a value was replaced or left out in 2 of 3 replies: {left_out}"]


def test_doubts_about_the_answers_of_one_session_do_not_outlive_those_of_the_next(tmp_path, agents):
    run = run_suite(suite(tmp_path, [{"main": [[LOST]]}, {"main": [None, []]}], variants=[doubted()])).run_dir
    said = ["main: the end is missing in 1 of 1 reply: cut off"]
    assert open_run(run)[0].summary().warnings == re_evaluate(run).summary.warnings == said
    assert retry(run).summary.warnings == re_evaluate(run).summary.warnings == []


def test_doubts_about_a_system_outlive_a_session_that_does_not_call_it(tmp_path, agents):
    # the name of the one that is not called begins with that of the one that is
    inputs = [{"late: early": [[LOST]], "late": [[LOST]]}, {"late: early": [[LOST]], "late": [None, []]}]
    run = run_suite(suite(tmp_path, inputs, variants=[doubted("late: early"), doubted("late")])).run_dir
    early = "late: early: the end is missing in 2 of 2 replies: cut off"
    assert open_run(run)[0].summary().warnings == [early, "late: the end is missing in 1 of 1 reply: cut off"]
    assert retry(run).summary.warnings == re_evaluate(run).summary.warnings == [early]


def test_latencies_that_evaluators_may_have_lengthened_are_named(tmp_path, agents):
    quick = EvaluatorSpec("quick", "contains_text", {"all_of": ["a"]})
    long = EvaluatorSpec("long", "regex", {"pattern": "(a|aa)+$b"}, required=1.0)  # takes the second that it has
    made = suite(tmp_path, [0.1, 0.12], "waits:first_is_hard_to_search", evaluators=[quick, long], max_concurrency=2)
    [warning] = run_suite(made).summary.warnings
    assert warning.startswith("main: the latency may include time in which evaluators kept this process busy in 1 of 2")
    assert "most of it by 'long'; it can be added afterwards, with re-evaluate" in warning
