"""What an evaluator may not say: such a result is an error, wherever the evaluator comes from."""

from __future__ import annotations

from pathlib import Path

import pytest

from evalwright.model.plan import EvaluatorSpec, PassCriteria
from evalwright.model.result import CaseVerdict, EvaluationResult
from evalwright.run.re_evaluation import re_evaluate
from evalwright.run.start import run_suite
from evalwright.run.stored_run import open_run
from run.suites import suite

UNSOUND = ["above", "below", "huge", "nan", "infinite", "bool", "text", "list"]
"""Scores of `project/verdicts.py`."""


def judged(folder: Path, inputs: list[object], *functions: str) -> tuple[list[EvaluationResult], list[str], int]:
    """The results, the verdicts and the exit code of a run."""
    specs = [EvaluatorSpec(name, "python_function", {"function": f"verdicts:{name}"}) for name in functions]
    outcome = run_suite(suite(folder, inputs, evaluators=specs, max_concurrency=1))
    reader, _ = open_run(outcome.run_dir)
    verdicts = [verdict.status for verdict in reader.verdicts(CaseVerdict)]
    return list(reader.results(EvaluationResult)), verdicts, outcome.exit_code


@pytest.mark.parametrize("function", ["synchronous", "asynchronous", "last"])
def test_a_score_out_of_its_range_is_an_error_that_enters_no_mean(tmp_path, function):
    rows, verdicts, code = judged(tmp_path, ["half", *UNSOUND], function)
    assert (rows[0].score, rows[0].passed, rows[0].error) == (0.5, True, None)
    assert [(row.passed, row.score, row.error is not None) for row in rows[1:]] == [(False, None, True)] * len(UNSOUND)
    assert {row.error.type for row in rows[1:] if row.error} == {"evaluator_error"}
    assert all("expected a number from 0 to 1" in row.error.message for row in rows[1:] if row.error)
    assert {(row.cost_usd, row.detail["said"] in UNSOUND) for row in rows[1:]} == {(0.25, True)}
    assert (verdicts, code) == (["pass", *["error"] * len(UNSOUND)], 3)


def test_a_verdict_is_a_bool(tmp_path):
    rows, verdicts, _ = judged(tmp_path, ["yes", "one", "none"], "verdict")
    assert [row.error.message if row.error else "" for row in rows] == [
        "'passed' is 'yes', expected true or false",
        "'passed' is 1, expected true or false",
        "'passed' is None, expected true or false",
    ]
    assert verdicts == ["error"] * 3


def test_evaluators_are_not_called_on_the_trace_of_a_system_that_raised(tmp_path):
    outcome = run_suite(suite(tmp_path, [9], "agents:flaky"))
    reader, _ = open_run(outcome.run_dir)
    assert (list(reader.results(EvaluationResult)), outcome.exit_code) == ([], 3)
    (rollup,) = outcome.summary.by_evaluator
    rate = rollup.by_variant["main"]
    assert (rate.n, rate.scored, rate.pass_rate, rate.errors) == (0, 0, None, 0)


@pytest.mark.parametrize(("errored", "rate"), [("evaluate", 0.0), ("count", 0.0), ("error", None)])
def test_a_suite_can_ask_for_evaluators_to_see_the_trace_of_an_error(tmp_path, errored, rate):
    criteria = PassCriteria(errored_cases=errored)
    outcome = run_suite(suite(tmp_path, [9], "agents:flaky", criteria=criteria))
    reader, _ = open_run(outcome.run_dir)
    assert len(list(reader.results(EvaluationResult))) == (0 if rate is None else 1)
    assert outcome.summary.variants[0].pass_rate == rate
    again = re_evaluate(outcome.run_dir)
    assert (again.summary.variants, again.summary.by_evaluator) == (
        outcome.summary.variants,
        outcome.summary.by_evaluator,
    )


def test_the_latency_of_a_result_is_the_time_between_its_dates(tmp_path):
    [row], _, _ = judged(tmp_path, ["half"], "unhurried")
    milliseconds = (row.finished_at - row.started_at).total_seconds() * 1000
    assert milliseconds > 10
    assert row.latency_ms == pytest.approx(milliseconds, abs=1.5)
