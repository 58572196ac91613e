"""Functions as evaluators: what they are given by name, and what they may return."""

import asyncio
import types

import msgspec
import pytest

from evalwright.errors import EvaluatorError, InputError
from evalwright.evaluators.build import build_evaluator
from evalwright.model.result import Evaluation
from evalwright.model.snapshot import Expected
from evalwright.model.trace import Output, ToolCall, TraceError
from evalwright.session.named_objects import with_objects
from evalwright.testing import a_case, a_result, a_trace

CASE = a_case(input="Hi")
TRACE = a_trace(output=Output("Hello"))


def built(function, **config):
    with with_objects({"here:it": function}):
        evaluator = build_evaluator("python_function", {"function": "here:it", **config})
        evaluator.traits  # noqa: B018 - read while the function is at hand
        return evaluator


def judged(function, *third, trace=TRACE, **config):
    return built(function, **config).evaluate(CASE, trace, *third)


@pytest.mark.parametrize(
    ("returned", "expected"),
    [
        (True, Evaluation(True, 1.0)),
        (False, Evaluation(False, 0.0)),
        (0.5, Evaluation(True, 0.5)),
        (0.49, Evaluation(False, 0.49)),
        (1, Evaluation(True, 1.0)),
        ((0.25, "too long"), Evaluation(False, 0.25, "too long")),
        ((True, "fine"), Evaluation(True, 1.0, "fine")),
        ({"passed": True, "score": 0.1, "reason": "r"}, Evaluation(True, 0.1, "r")),
        ({"score": 0.9}, Evaluation(True, 0.9)),
        ({"passed": False}, Evaluation(False, 0.0)),
        (Evaluation(True, 7.0), Evaluation(True, 7.0)),
    ],
)
def test_what_a_function_may_return(returned, expected):
    assert judged(lambda output: returned) == expected


@pytest.mark.parametrize(
    ("returned", "named"),
    [
        (Evaluation(True, reason=5), "reason"),  # type: ignore[arg-type]
        (Evaluation(True, hits=[1]), r"hits\[0\]"),  # type: ignore[list-item]
        (Evaluation(True, cost_usd="0.1"), "cost_usd"),  # type: ignore[arg-type]
        (Evaluation(True, detail=["a"]), "detail"),  # type: ignore[arg-type]
    ],
)
def test_an_evaluation_that_no_reader_could_read_back_is_an_error(returned: Evaluation, named: str):
    with pytest.raises(EvaluatorError, match=named):
        judged(lambda output: returned)


@pytest.mark.parametrize(
    ("returned", "said"),
    [
        (None, "found None"),
        ("yes", "found str"),
        (1.5, "from 0 to 1, found 1.5"),
        (float("nan"), "from 0 to 1, found nan"),
        ({}, "found keys none"),
        ({"pased": True}, "found keys 'pased'"),
        ({"passed": 0.7}, "expected a bool at 'passed'"),
        ({"score": True}, "a bool belongs at 'passed'"),
        ({"passed": True, "score": False}, "a bool belongs at 'passed'"),
        ((True, 1), "found tuple"),
    ],
)
def test_anything_else_is_no_verdict(returned, said):
    with pytest.raises(EvaluatorError, match=said):
        judged(lambda output: returned)


def test_numbers_of_numpy_count():
    numpy = pytest.importorskip("numpy")
    assert judged(lambda output: numpy.bool_(True)) == Evaluation(True, 1.0)
    assert judged(lambda output: numpy.float32(0.25)) == Evaluation(False, 0.25)


def test_the_threshold_is_where_a_number_passes():
    assert judged(lambda output: 0.79, threshold=0.8).passed is False
    assert judged(lambda output: 0.8, threshold=0.8).passed is True


def test_parameters_are_filled_by_name():
    seen = {}

    def check(trace, input, *, expected, case, output, weight=3):
        seen.update(locals())
        return True

    judged(check)
    assert (seen["input"], seen["output"], seen["weight"]) == ("Hi", "Hello", 3)
    assert (seen["expected"], seen["case"], seen["trace"]) == (CASE.expected, CASE, TRACE)


def test_the_output_is_the_structured_answer_where_there_is_no_text():
    assert judged(lambda output: output["label"] == "spam", trace=a_trace(output=Output(structured={"label": "spam"})))


def test_results_are_given_by_evaluator():
    evaluation = built(lambda results: results["says_hello"].passed)
    assert evaluation.traits.uses_results
    assert evaluation.evaluate(CASE, TRACE, [a_result()]) == Evaluation(True, 1.0)


def test_the_artifact_is_given():
    evaluation = built(lambda artifact: artifact is None)
    assert evaluation.traits.uses_artifact
    assert evaluation.evaluate(CASE, TRACE, None).passed


def test_asynchronous_functions_are_awaited():
    async def check(output):
        return 0.75

    assert asyncio.run(judged(check)) == Evaluation(True, 0.75)


def test_without_an_answer_there_is_nothing_to_judge():
    failed = a_trace(error=TraceError("timeout", "late"))
    with pytest.raises(EvaluatorError, match="no answer to evaluate: timeout"):
        judged(lambda output: True, trace=failed)
    assert judged(lambda trace: trace.error is not None, trace=failed).passed


@pytest.mark.parametrize(
    ("function", "said"),
    [
        (lambda outpt: True, "unknown parameter 'outpt'; did you mean \"output\"?"),
        (lambda artifact, results: True, "found both"),
        (3, "expected a function, found int"),
        (types.SimpleNamespace(), "expected a function"),
    ],
)
def test_a_function_that_cannot_be_called_is_refused_before_the_run(function, said):
    with pytest.raises(InputError) as raised:
        built(function)
    assert said in str(raised.value)


def test_a_function_of_a_module_needs_no_run():
    evaluator = build_evaluator("python_function", {"function": "evaluators.code.test_functions:of_module"})
    assert evaluator.evaluate(CASE, TRACE) == Evaluation(True, 1.0)


def of_module(output):
    return output == "Hello"


def test_what_a_function_changes_is_changed_for_nobody_else():
    def spoils(input, output, expected, case, trace, results):
        input["tone"], case.input["words"] = "rude", []
        output.clear()
        case.metadata.clear()
        trace.tool_calls.clear()
        trace.output.final_answer = "spoilt"
        expected.facts.clear()
        results["other"].passed = False
        return True

    case = a_case(input={"words": ["a"]}, metadata={"k": 1}, expected=Expected(facts={"n": 1}))
    trace = a_trace(output=Output(structured={"n": 1}), tool_calls=[ToolCall("look")])
    other = a_result(evaluator="other")
    before = msgspec.json.encode([case, trace, other])
    assert built(spoils).evaluate(case, trace, [other]).passed
    assert msgspec.json.encode([case, trace, other]) == before
