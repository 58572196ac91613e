"""Targets, evaluators and enrichers of other packages may return anything: that is an error of a cell, not of a run."""

import asyncio
import sys

import msgspec
import pytest

from evalwright import built_in
from evalwright.errors import EvaluatorError, TargetError
from evalwright.model.plan import EvaluatorSpec, Plugin, RetryRule, Variant
from evalwright.model.result import CaseVerdict, Evaluation, EvaluationResult
from evalwright.model.trace import Answer, Doubt, Metrics, Output, Trace, TraceError
from evalwright.run.re_evaluation import re_evaluate
from evalwright.run.start import run_suite
from evalwright.run.stored_run import open_run
from run.suites import suite

INSTALLED = """
from evalwright.plugins import Answer

class Ill:
    def __init__(self, variant): ...

    async def run(self, case, trial):
        return Answer.of("done", extra=case.input)

    async def close(self):
        raise ValueError("still busy")
"""


class Unspeakable:
    def __repr__(self):
        raise RuntimeError("no text")

    __str__ = __repr__

    def item(self):
        raise ZeroDivisionError


def endless():
    found = {}
    found["itself"] = found
    return found


ILL = {
    "nothing": (lambda: None, "must return an Answer, found NoneType"),
    "a text": (lambda: "done", "must return an Answer, found str"),
    "the class": (lambda: Answer, "must return an Answer"),
    "extra": (lambda: Answer.of("done", extra=7), "got `int` - at `$.extra`"),
    "messages": (lambda: Answer(Output("done"), messages=7), "`$.messages`"),
    "tool calls": (lambda: Answer.of("done", tool_calls="x"), "`$.tool_calls`"),
    "spans": (lambda: Answer(Output("done"), spans=7), "`$.spans`"),
    "tokens": (lambda: Answer.of("done", tokens_in="many"), "got `str` - at `$.metrics.token_input`"),
    "metrics": (lambda: Answer(Output("done"), metrics=None), "`$.metrics`"),
    "output": (lambda: Answer(object()), "must be an Output, found object"),
    "final answer": (lambda: Answer.of(7), "`$.output.final_answer`"),
    "error": (lambda: Answer(Output("done"), error=TraceError(7, 8)), "`$.error.type`"),
    "doubts": (lambda: Answer.of("done", doubts=(7,)), "`$.doubts[0]`"),
    "dates": (lambda: Answer(Output("done"), extra={"source": "replay"}, started_at="x"), "`$.started_at`"),
    "no JSON": (lambda: Answer.of("done", extra={"it": Unspeakable()}), "type Unspeakable"),
}
RAISED = {
    "type": lambda: TargetError("no", 7),
    "status": lambda: TargetError("no", status="503"),
    "pause": lambda: TargetError("no", status=503, retry_after="soon"),
    "attempts": lambda: TargetError("no", attempts="two"),
}


class Told:
    """Answers by the input, or raises what it names."""

    grace_seconds, address, may_be_silent = "little", ["here"], "yes"
    """Its own, whatever a target of ours means by these names."""

    def __init__(self, variant):
        pass

    async def run(self, case, trial):
        if case.input in RAISED:
            raise RAISED[case.input]()
        return ILL[case.input][0]() if case.input in ILL else MEASURED[case.input]()


MEASURED = {
    "negative": lambda: Answer(Output("done"), metrics=Metrics(cost_usd=-1e9)),
    "no number": lambda: Answer(Output("done"), metrics=Metrics(cost_usd=float("nan"))),
    "huge": lambda: Answer(Output("done"), metrics=Metrics(token_input=10**30)),
}


class Done:
    def __init__(self, variant):
        pass

    async def run(self, case, trial):
        return Answer.of("done")


class Closing:
    def __init__(self, variant):
        self._how = variant.name

    async def run(self, case, trial):
        return Answer.of("done")

    async def close(self):
        match self._how:
            case "exits":
                sys.exit(9)
            case "is cancelled":
                raise asyncio.CancelledError
            case "is interrupted":
                raise KeyboardInterrupt


@pytest.fixture(autouse=True)
def _registered(monkeypatch):
    for kind, classes in (("targets", (Told, Done, Closing)), ("evaluators", (Says, SaysLater, SaysLast, SaysOfAll))):
        for one in classes:
            monkeypatch.setitem(built_in.KINDS[kind], one.__name__, f"{__name__}:{one.__name__}")
    monkeypatch.setitem(built_in.KINDS["enrichers"], "Changes", f"{__name__}:Changes")


def stored(outcome):
    """Traces and results by case, and the verdicts; nothing of it is damaged."""
    reader, _ = open_run(outcome.run_dir)
    traces, results = list(reader.traces(Trace)), list(reader.results(EvaluationResult))
    verdicts = [verdict.status for verdict in reader.verdicts(CaseVerdict)]
    assert reader.damage == []
    return traces, results, verdicts


def test_an_answer_that_no_reader_could_read_is_an_error_of_its_cell(tmp_path):
    outcome = run_suite(suite(tmp_path, [*ILL], variants=[Variant("main", "Told")], stop_after_errors=0))
    traces, _, verdicts = stored(outcome)
    assert (outcome.exit_code, verdicts) == (3, ["error"] * len(ILL))
    by_name = {trace.input: trace.error for trace in traces}
    assert {error.type for error in by_name.values()} == {"adapter_error"}
    assert [how for how, (_, said) in ILL.items() if said not in by_name[how].message] == []
    assert "(test_plugins.py:" in by_name["extra"].message


def test_an_exception_with_values_of_other_types_is_an_error_of_its_cell(tmp_path):
    rule = RetryRule(max_attempts=2, on=["*"])
    outcome = run_suite(suite(tmp_path, [*RAISED], variants=[Variant("main", "Told")], retry=rule, stop_after_errors=0))
    traces, _, verdicts = stored(outcome)
    assert (outcome.exit_code, verdicts) == (3, ["error"] * len(RAISED))
    assert {(trace.error.type, trace.error.message) for trace in traces} == {("adapter_error", "no")}


def test_numbers_that_measure_nothing_are_left_out_and_told(tmp_path):
    outcome = run_suite(suite(tmp_path, [*MEASURED], variants=[Variant("main", "Told")], cost_limit_usd=5))
    traces, _, verdicts = stored(outcome)
    assert (outcome.exit_code, verdicts) == (0, ["pass"] * 3)
    assert {(trace.metrics.cost_usd, trace.metrics.token_input) for trace in traces} == {(None, None)}
    assert all("expected a finite number from 0 on" in trace.extra["replaced"][0] for trace in traces)
    assert any("a value was replaced or left out in 3 of 3 replies" in warning for warning in outcome.summary.warnings)


@pytest.mark.parametrize("isolation", ["none", "process"])
def test_so_it_is_for_a_package_that_is_installed_in_whatever_process_it_answers(tmp_path, monkeypatch, isolation):
    project = tmp_path / "project"
    (project / "ill-1.dist-info").mkdir(parents=True)
    (project / "ill-1.dist-info" / "METADATA").write_text("Metadata-Version: 2.1\nName: ill\nVersion: 1\n")
    (project / "ill-1.dist-info" / "entry_points.txt").write_text("[evalwright.targets]\nill = ill:Ill\n")
    (project / "ill.py").write_text(INSTALLED)
    monkeypatch.syspath_prepend(str(project))
    monkeypatch.setitem(built_in.KINDS["targets"], "ill", "ill:Ill")  # this process may have looked for packages before
    cases = [{"ok": 1}, 7, {"ok": 1}]
    made = suite(tmp_path, cases, variants=[Variant("main", "ill", isolation=isolation)], max_concurrency=1)
    outcome = run_suite(msgspec.structs.replace(made, source=project / "eval.yaml"))
    traces, _, verdicts = stored(outcome)
    assert (outcome.exit_code, verdicts) == (3, ["pass", "error", "pass"])
    assert (
        traces[1].error.message == "the Answer (ill.py:7) cannot be stored: Expected `object`, got `int` - at `$.extra`"
    )
    assert outcome.summary.warnings == outcome.notes == ["main: closing it raised ValueError: still busy in ill.py:11"]


@pytest.mark.parametrize("how", ["exits", "is cancelled", "is interrupted"])
def test_a_target_may_raise_anything_when_it_is_closed(tmp_path, how):
    outcome = run_suite(suite(tmp_path, [1], variants=[Variant(how, "Closing"), Variant("other", "Closing")]))
    assert (outcome.exit_code, stored(outcome)[2]) == (0, ["pass", "pass"])
    [said] = outcome.summary.warnings
    assert said.startswith(f"{how}: closing it raised ")


SAID = {
    "nothing": (lambda: None, "expected an Evaluation, found NoneType"),
    "a number": (lambda: 7, "expected an Evaluation, found int"),
    "score": (lambda: Evaluation(True, float("nan")), "the score is nan"),
    "no score": (lambda: Evaluation(True, Unspeakable()), "the score is"),
    "reason": (lambda: Evaluation(True, 1.0, 7), "`$.reason`"),
    "detail": (lambda: Evaluation(True, 1.0, "", 7), "`$.detail`"),
    "skipped": (lambda: Evaluation(True, 1.0, skipped="no"), "`$.skipped`"),
    "hits": (lambda: Evaluation(True, 1.0, hits=7), "`$.hits`"),
    "misses": (lambda: Evaluation(True, 1.0, misses=[7]), "`$.misses[0]`"),
    "cost": (lambda: Evaluation(True, 1.0, cost_usd="much"), "`$.cost_usd`"),
    "negative cost": (lambda: Evaluation(True, 1.0, cost_usd=-5.0), "cost_usd is -5.0"),
    "no cost": (lambda: Evaluation(True, 1.0, cost_usd=float("nan")), "cost_usd is nan"),
    "error's type": (lambda: EvaluatorError("no", 7), "no"),
    "error's cost": (lambda: EvaluatorError("no", cost_usd="much"), "no"),
}
REPLACED = {
    "no text": lambda: Evaluation(True, 1.0, "", {"it": Unspeakable()}),
    "endless": lambda: Evaluation(True, 1.0, "", endless()),
    "surrogates": lambda: Evaluation(True, 1.0, "\ud800", {}, hits=["\ud800"], misses=["\ud800"]),
}


def said_of(word):
    said = REPLACED[word]() if word in REPLACED else SAID[word][0]()
    if isinstance(said, Exception):
        raise said
    return said


class Says:
    def evaluate(self, case, trace):
        return said_of(case.input)


class SaysLater:
    async def evaluate(self, case, trace):
        return said_of(case.input)


class SaysLast:
    uses_results = True

    def evaluate(self, case, trace, results):
        return said_of(case.input)


class SaysOfAll:
    compares = True

    async def compare(self, case, cells):
        return [said_of(case.input) for _ in cells]


@pytest.mark.parametrize("kind", ["Says", "SaysLater", "SaysLast", "SaysOfAll"])
def test_what_an_evaluator_may_not_say_is_an_error_of_its_result(tmp_path, kind):
    judged = [EvaluatorSpec("says", kind)]
    outcome = run_suite(suite(tmp_path, [*SAID], variants=[Variant("main", "Done")], evaluators=judged))
    for done in (outcome, re_evaluate(outcome.run_dir)):
        _, results, verdicts = stored(done)
        assert (done.exit_code, verdicts) == (3, ["error"] * len(SAID))
        by_name = {row.case_id: row.error.message for row in results}
        wrong = [how for n, (how, (_, said)) in enumerate(SAID.items()) if said not in by_name[f"c{n}"]]
        assert wrong == []
        assert {(row.error.type, row.passed, row.score, row.cost_usd) for row in results} == {
            ("evaluator_error", False, None, None)
        }


def test_what_json_cannot_hold_of_an_evaluation_is_replaced_and_its_verdict_stays(tmp_path):
    judged = [EvaluatorSpec("says", "Says")]
    outcome = run_suite(suite(tmp_path, [*REPLACED], variants=[Variant("main", "Done")], evaluators=judged))
    _, results, verdicts = stored(outcome)
    assert (outcome.exit_code, verdicts) == (0, ["pass"] * len(REPLACED))
    assert all(row.detail["replaced"] for row in results)
    assert (results[2].reason, results[2].hits, results[2].misses) == ("\ufffd", ["\ufffd"], ["\ufffd"])


def changed(trace, name, value):
    setattr(trace, name, value)
    return ()


CHANGES = {
    "returns": lambda trace: 7,
    "doubts": lambda trace: [7],
    "extra": lambda trace: changed(trace, "extra", 7),
    "metrics": lambda trace: changed(trace, "metrics", None),
    "cost": lambda trace: changed(trace, "metrics", Metrics(cost_usd="much")),
    "output": lambda trace: changed(trace, "output", None),
    "error": lambda trace: changed(trace, "error", "no"),
    "date": lambda trace: changed(trace, "finished_at", None),
    "case": lambda trace: changed(trace, "case_id", "another"),
    "trial": lambda trace: changed(trace, "trial", 5),
    "raises": lambda trace: changed(trace, "extra", 7) or 1 / 0,
}


class Changes:
    def __init__(self, config):
        pass

    async def enrich(self, trace):
        if trace.input in CHANGES:
            return CHANGES[trace.input](trace)
        trace.extra = {"found": trace.input}
        trace.metrics.cost_usd = -5.0
        return [Doubt("half of it was there")]


def test_an_enricher_that_spoils_a_trace_has_failed_and_the_trace_stays_as_it_was(tmp_path):
    variants = [Variant("main", "Done", enrich_trace_from=[Plugin("Changes")])]
    outcome = run_suite(suite(tmp_path, [*CHANGES, "well"], variants=variants))
    traces, _, verdicts = stored(outcome)
    assert (outcome.exit_code, verdicts) == (0, ["pass"] * len(traces))
    assert [trace.case_id for trace in traces] == [f"c{n}" for n in range(len(CHANGES) + 1)]
    assert [trace.input for trace in traces if "enrichment_errors" in trace.extra] == [*CHANGES]
    assert (traces[-1].extra, traces[-1].metrics.cost_usd) == ({"found": "well"}, None)
    warnings = outcome.summary.warnings
    assert any(
        f"the enricher Changes failed in {len(CHANGES)} of {len(traces)} replies" in warning for warning in warnings
    )
    assert any(f"half of it was there in 1 of {len(traces)} replies" in warning for warning in warnings)
