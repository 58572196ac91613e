"""The evaluators that `evaluate` takes, and those that it chooses by what cases expect."""

import asyncio
import json
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

import evalwright as ew
from api import agents
from api.evaluations import evaluate, passes, problems
from evalwright.plugins import ChatRequest


def test_expectations_choose_the_evaluators():
    cases = [
        ew.Case("a", "x", expected=ew.Expected(answer_should_include=["X"])),
        {"id": "b", "input": "y", "expected": {"must_call_tools": ["look"]}},
    ]
    run = ew.evaluate(cases, agents.upper, out=None)
    assert {cell.case_id: cell.status for cell in run} == {"a": "pass", "b": "fail"}
    assert set(run.cell("a").results) == {"contains_text", "tool_called"}


def test_a_case_that_expects_nothing_is_refused_beside_one_that_does():
    cases = [ew.Case("a", "x", expected=ew.Expected(answer_should_include=["X"])), ew.Case("b", "y")]
    assert "nothing is expected of 'b'" in problems(cases, agents.upper)[0]


def test_evaluators_of_all_shapes():
    @ew.evaluator(name="half", threshold=0.6)
    def scored(output):
        return 0.5, "only half"

    @ew.evaluator
    async def later(output, results):
        return results["loud"].passed

    run = evaluate(
        ["a"],
        evaluators=["answered", ew.Evaluator("contains_text", all_of=["A"], name="has"), agents.loud, scored, later],
    )
    [cell] = run
    assert {name: result.passed for name, result in cell.results.items()} == {
        "answered": True, "has": True, "loud": True, "half": False, "later": True,
    }  # fmt: skip
    assert (cell.status, cell.reasons) == ("fail", ["half: only half"])
    assert scored("x") == (0.5, "only half")


def test_only_evaluators_that_are_not_asynchronous_are_called_in_a_thread_of_their_own():
    async def thread(_: str) -> str:
        return str(threading.get_ident())

    def plain(output: str) -> bool:
        return output != str(threading.get_ident())

    async def awaited(output: str) -> bool:
        return output == str(threading.get_ident())

    run = ew.evaluate(["x"], thread, evaluators=[plain, awaited], out=None)
    assert [cell.status for cell in run] == ["pass"]


def test_an_evaluator_that_raises_leaves_the_cell_without_a_verdict():
    def cannot(output):
        raise RuntimeError("no idea")

    async def cannot_later(output):
        raise RuntimeError("no idea")

    def ends(output):
        return next(iter([]))

    [cell] = evaluate(["a"], evaluators=[cannot, cannot_later, passes, ends])
    assert (cell.status, cell.results["passes"].passed) == ("error", True)
    assert cell.error.startswith("cannot: RuntimeError: no idea in test_evaluators.py:")
    reasons = [cell.results[name].reason for name in ("cannot", "cannot_later")]
    assert [reason.rpartition(":")[0] for reason in reasons] == ["no idea in test_evaluators.py"] * 2
    assert "ends: StopIteration: in test_evaluators.py:" in str(cell.reasons)


def test_an_evaluator_that_is_cancelled_by_its_own_code_does_not_end_the_run():
    async def cancelled(output):
        if output == "B":
            raise asyncio.CancelledError("mine")
        return True

    async def awaits_what_it_cancelled(output):
        task = asyncio.get_running_loop().create_task(asyncio.sleep(60))
        task.cancel()
        await task

    run = evaluate(["a", "b", "c"], evaluators=[cancelled, passes], concurrency=1)
    assert [(cell.case_id, cell.status) for cell in run] == [("1", "pass"), ("2", "error"), ("3", "pass")]
    assert "mine" in run.cell("2").error
    run = evaluate(["a", "b"], evaluators=[awaits_what_it_cancelled, passes])
    assert [cell.results["passes"].passed for cell in run.errors()] == [True, True]


@pytest.mark.parametrize("raised", [SystemExit(0), KeyboardInterrupt()], ids=repr)
def test_a_task_of_user_code_that_exits_does_not_end_the_run(tmp_path, raised):
    async def exits():
        raise raised

    async def system(text):
        if text == "b":
            await asyncio.gather(exits(), asyncio.sleep(0))
        return text

    async def judge(output):
        if output == "c":
            await asyncio.gather(exits(), asyncio.sleep(0))
        return True

    out = tmp_path / "runs"
    run = ew.evaluate(["a", "b", "c", "d"], system, evaluators=[judge, passes], out=out, concurrency=1)
    assert [cell.status for cell in run] == ["pass", "error", "error", "pass"]
    assert type(raised).__name__ in run.cell("2").error
    assert run.cell("3").results["passes"].passed
    again = ew.re_evaluate(run, judge)
    assert [cell.status for cell in again] == ["pass", "error", "error", "pass"]


def test_a_judge_is_an_llm_judge():
    judge = ew.Judge("gpt-5", "It is polite.", "It is short.", name="polite", samples=3)
    assert (judge.type, judge.name) == ("llm_judge", "polite")
    assert judge.config == {"model": "gpt-5", "nl_assertions": ["It is polite.", "It is short."], "samples": 3}


def test_a_judge_without_a_key_is_told_before_the_run(monkeypatch):
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    assert (
        "OPENAI_API_KEY is not set" in problems(["a"], agents.upper, evaluators=ew.Judge("gpt-5", "It is polite."))[0]
    )


def replies(passed: bool) -> Callable[[ChatRequest], str]:
    return lambda request: json.dumps({"assertions": [{"passed": passed, "reason": request.messages[-1].role}]})


def test_a_function_can_be_the_model_of_a_judge() -> None:
    for passed in (True, False):  # another function of the same name
        run = ew.evaluate(["a"], agents.upper, evaluators=ew.Judge(replies(passed), "It is polite."), out=None)
        assert run.cell("1").results["llm_judge"].passed is passed
    panel = ew.Judge([replies(True), replies(False), replies(True)], "It is polite.", name="panel")
    assert ew.evaluate(["a"], agents.upper, evaluators=panel, out=None).passed


def test_a_judge_whose_model_returns_nonsense_is_named_as_what_failed() -> None:
    run = ew.evaluate(["a"], agents.upper, evaluators=ew.Judge(lambda request: "yes", "It is polite."), out=None)
    assert str(run.cell("1").error).endswith("expected a JSON object, found none (judge failed)")


def test_a_judges_function_that_another_process_lacks_is_told_before_results_are_replaced(tmp_path: Path) -> None:
    judge = ew.Judge(replies(True), "It is polite.")
    stored = ew.evaluate(["a"], agents.upper, evaluators=judge, out=tmp_path).path
    assert stored is not None
    with pytest.raises(ew.InputError, match="is a function without a name to import it by"):
        ew.re_evaluate(stored)
    assert ew.open_run(stored).passed


def test_a_misspelt_key_of_an_evaluator_is_reported_where_it_is_written():
    with pytest.raises(ew.InputError, match=r"Evaluator\('contains_text'\).*'all_fo'; did you mean \"all_of\""):
        ew.Evaluator("contains_text", all_fo=["a"])
    with pytest.raises(ew.InputError, match=r'\'rubrik\'; did you mean "rubric"'):
        ew.Judge("gpt-test", rubrik="The answer is polite.")


def test_one_function_can_be_two_evaluators():
    def half(output):
        return 0.5

    lenient = ew.evaluator(name="lenient", threshold=0.4)(half)
    strict = ew.evaluator(name="strict", threshold=0.9)(half)
    (cell,) = evaluate(["a"], agents.upper, evaluators=[lenient, strict])
    assert {name: result.passed for name, result in cell.results.items()} == {"lenient": True, "strict": False}
    assert strict("a") == 0.5


def test_a_method_can_be_given_a_name():
    named = ew.evaluator(name="loud")(Loud().heard)
    (cell,) = evaluate(["a"], agents.upper, evaluators=named)
    assert cell.results["loud"].passed


class Loud:
    def heard(self, output):
        return output.isupper()


def test_an_evaluator_that_no_case_gives_anything_to_check_is_told():
    run = evaluate(["a"], agents.upper, evaluators=["contains_text", "tool_called"])
    assert [warning.partition(": ")[2][:40] for warning in run.summary.warnings] == [
        "no case has expected.answer_should_inclu",
        "no case has expected.must_call_tools: th",
    ]
    asked = [ew.Case("a", "a", expected=ew.Expected(answer_should_include=["A"]))]
    assert not evaluate(asked, agents.upper, evaluators="contains_text").summary.warnings
