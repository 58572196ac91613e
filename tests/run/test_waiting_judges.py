"""Evaluators that wait for models are asked together, and what they cost is counted apart from the system."""

import sys

import msgspec
import pytest

from evalwright import built_in, registry
from evalwright.model.plan import EvaluatorSpec, PassCriteria
from evalwright.model.result import EvaluationResult
from evalwright.run.re_evaluation import re_evaluate
from evalwright.run.start import run_suite
from evalwright.run.stored_run import open_run
from run.suites import SAYS_DONE, suite

WAITING = EvaluatorSpec("waiting", "waiting_in_tests")


@pytest.fixture(autouse=True)
def judges(agents, monkeypatch):
    monkeypatch.setitem(built_in.KINDS["evaluators"], WAITING.type, "judges:Waiting")
    sys.modules.pop("judges", None)
    registry.load.cache_clear()
    import judges

    yield judges
    sys.modules.pop("judges", None)
    registry.load.cache_clear()


def rows(outcome):
    reader, _ = open_run(outcome.run_dir)
    return [(row.case_id, row.evaluator, row.hits) for row in reader.results(EvaluationResult)]


@pytest.mark.parametrize(("add", "width"), [(None, 4), ("waiting", 4), (None, 1)])
def test_cells_are_judged_again_together_and_written_in_their_order(tmp_path, judges, add, width):
    outcome = run_suite(suite(tmp_path, ["done"] * 8, evaluators=[SAYS_DONE, WAITING]))
    judges.most_at_once = 0
    re_evaluate(outcome.run_dir, add=add, concurrency=width)
    in_order = sorted({case for case, _, _ in rows(outcome)})
    assert rows(outcome) == [row for c in in_order for row in ((c, "says_done", []), (c, "waiting", [c]))]
    assert judges.most_at_once == width


def test_what_judges_cost_is_not_a_cost_of_the_system(tmp_path):
    outcome = run_suite(suite(tmp_path, ["done", "done", "refuse"], evaluators=[WAITING]))
    (variant,) = outcome.summary.variants
    (rollup,) = outcome.summary.by_evaluator
    assert (variant.judge_cost_usd, variant.cost_total_usd) == (0.5, None)
    assert (rollup.by_variant["main"].cost_usd, rollup.by_variant["main"].errors) == (0.5, 1)


def test_a_summary_made_anew_has_the_same_cost_of_judges(tmp_path):
    outcome = run_suite(suite(tmp_path, ["done", "done"], evaluators=[WAITING, SAYS_DONE]))
    again = re_evaluate(outcome.run_dir, add="says_done")
    assert again.summary.variants == outcome.summary.variants


TWO = [EvaluatorSpec("first", WAITING.type), EvaluatorSpec("second", WAITING.type)]


@pytest.mark.parametrize(("totals", "width"), [("", 2), ("agentv", 1)])
def test_the_format_says_whether_the_judges_of_a_cell_are_asked_together_not_the_rule(tmp_path, judges, totals, width):
    judged = suite(tmp_path, ["done"], evaluators=TWO, criteria=PassCriteria(rule="bands"))
    run_suite(msgspec.structs.replace(judged, totals=totals))
    assert judges.most_at_once == width


@pytest.mark.parametrize(("totals", "number"), [("", 0), ("agentv", 0), ("northstar", 1)])
def test_the_format_says_whether_the_trace_of_an_error_is_judged_not_the_rule(tmp_path, totals, number):
    judged = suite(tmp_path, [9], "agents:flaky", criteria=PassCriteria(rule="bands"))
    outcome = run_suite(msgspec.structs.replace(judged, totals=totals))
    assert (len(rows(outcome)), outcome.exit_code) == (number, 3)
