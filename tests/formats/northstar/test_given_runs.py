"""Graders judge the run that they are given, and give back what NorthStar's do."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest
from pydantic import ValidationError

from evalwright.formats.northstar.surface.judge_keys import JudgeAuthenticationError
from evalwright.northstar import (
    BadToolFailureRecovery,
    BinaryJudgeOutput,
    Contains,
    CostUnder,
    Dataset,
    EvalCase,
    EvalRun,
    EvalSuite,
    EvalTraceDag,
    FailureOrigin,
    FaithfulnessJudge,
    ForbiddenTools,
    GradeResult,
    GradeStatus,
    HallucinatedToolResultJudge,
    JudgeScoringConfig,
    LatencyUnder,
    MaxToolCalls,
    PythonCodeGrader,
    RegexGrader,
    RequiredTools,
    RetrievalPrecisionRecall,
    RubricJudge,
    StaleContextUsage,
    StepCostAttribution,
    ToolArgumentsMatch,
    ToolCall,
    ToolOutput,
    ToolOutputReferenced,
    ToolSequence,
    UnnecessaryToolLoop,
    default_graders,
    normalize_trace_payload,
    trace_graders,
)
from formats.northstar.conversations import case, says
from formats.northstar.spans import event, payload, span
from llm.models import refused
from targets.loopback import serving

CALL = ToolCall(name="rm", arguments={"path": "/"})
EXPECTED: dict[str, Any] = {
    "goal": "g", "forbidden_tools": ["rm"], "required_tools": ["rm"], "tool_sequence": ["rm"], "max_tool_calls": 0,
    "tool_arguments": [{"name": "rm", "arguments": {"path": "/"}}], "contains": ["done"], "max_latency_ms": 1,
    "max_cost_usd": 1, "require_tool_output_reference": True,
}  # fmt: skip
CASE = case(says("of the case"), expected=EXPECTED, metrics={"latency_ms": 5, "cost_usd": 0.5})


def given(**fields: Any) -> EvalRun:
    return EvalRun(messages=[], metrics={"latency_ms": 0, "cost_usd": 9}, **fields)


RUN = given(tool_calls=[CALL], final_response="all is done", tool_outputs=[ToolOutput(content="all is done")])
OUTCOMES = {
    ForbiddenTools: "failed", RequiredTools: "passed", ToolSequence: "passed", MaxToolCalls: "failed",
    ToolArgumentsMatch: "passed", Contains: "passed", LatencyUnder: "failed", CostUnder: "passed",
    ToolOutputReferenced: "passed",
}  # fmt: skip


def test_every_grader_judges_the_given_run_and_the_metrics_of_the_case() -> None:
    assert {kind: str(kind().grade(CASE, RUN).status) for kind in OUTCOMES} == OUTCOMES
    assert RegexGrader("r", "^rm$", target="run.final_response").grade(CASE, given(final_response="rm")).passed
    assert RegexGrader("r", "rm", target="run.tool_calls").grade(CASE, RUN).passed
    assert RegexGrader("r", "of the case", target="case.messages").grade(CASE, RUN).passed
    code = "def validate(output, case, run): return run['tool_calls'][0]['name'] == 'rm' and output == 'all is done'"
    assert PythonCodeGrader("p", code, timeout_ms=5000).grade(CASE, RUN).passed


def test_a_custom_grader_may_hand_on_a_run_of_its_own() -> None:
    class Mine:
        name = "mine"

        def grade(self, case: EvalCase, run: EvalRun) -> GradeResult:
            return ForbiddenTools().grade(case, run.model_copy(update={"tool_calls": [CALL]}))

    class Stern(Contains):
        def grade(self, case: EvalCase, run: EvalRun) -> GradeResult:
            return super().grade(case, run.model_copy(update={"final_response": None}))

    grades = EvalSuite([Mine(), Stern()]).run([case(says("done"), expected=EXPECTED)]).case_results[0].grades
    assert [grade.status for grade in grades] == [GradeStatus.FAILED, GradeStatus.FAILED]


EXPORT = payload(
    span("t", kind="tool", status="error", error={"type": "E"}, attributes={"cost_usd": 0.5, "input_tokens": 3}),
    *(event(f"e{n}", n, "tool_arguments", span_id="t", content={"q": 1}) for n in range(4)),
    event("s", 5, "custom", attributes={"stale": True}, span_id="t"),
    event("r", 6, "tool_result", span_id="t", content={"ids": ["a", "b"]}),
)
LIMITS = {
    "max_step_cost_usd": 0.1, "relevant_retrieval_ids": ["a"], "min_retrieval_precision": 1,
    "max_repeated_tool_calls": 3,
}  # fmt: skip


def test_graders_of_steps_judge_the_given_graph() -> None:
    graph = normalize_trace_payload(EXPORT, EXPORT["runs"][0]["id"])
    asks = case(says("x"), expected={"trace": LIMITS})
    run = EvalRun(messages=[], trace=EvalTraceDag.model_validate(graph.model_dump()))

    def metadata(grader: Any) -> dict[str, Any]:
        assert grader.grade(asks, EvalRun(messages=[])).status == GradeStatus.SKIPPED
        grade = grader.grade(asks, run)
        assert grade.status == GradeStatus.FAILED
        return dict(grade.metadata)

    assert metadata(BadToolFailureRecovery())["failed_tools"] == [{"span_id": "t", "tool": "t", "error": {"type": "E"}}]
    loop = metadata(UnnecessaryToolLoop())["loop_signatures"][0]
    assert (loop["event_ids"], loop["count"]) == (["e0", "e1", "e2", "e3"], 4)
    assert metadata(StaleContextUsage()) == {"event_ids": ["s"], "span_ids": ["t"]}
    found = metadata(RetrievalPrecisionRecall())
    assert (found["true_positive_ids"], found["true_positive_count"], found["min_precision"]) == (["a"], 1, 1)
    cost = metadata(StepCostAttribution())["over_limit"][0]
    assert (cost["span_name"], cost["kind"], cost["input_tokens"], cost["cost_usd"]) == ("t", "tool", 3, 0.5)
    assert metadata(FailureOrigin())["failure_origin_span"]["id"] == "t"


def test_times_are_texts_and_unknown_keys_are_refused() -> None:
    graph = normalize_trace_payload(EXPORT, EXPORT["runs"][0]["id"])
    assert graph.spans[0].run_id == graph.events[0].run_id == graph.run.run_id
    assert isinstance(graph.spans[0].started_at, str)
    for kind, fields in ((EvalRun, {"messages": []}), (GradeResult, {"name": "n", "status": "passed", "reason": "r"})):
        kind(**fields)
        with pytest.raises(ValidationError):
            kind(**fields, surprise=1)
    with pytest.raises(ValidationError):
        GradeResult(name="n", status="passed")


def test_reasons_are_never_empty() -> None:
    graders = [*default_graders(), *trace_graders()[:7]]
    result = EvalSuite(graders).run([case(says("done"), expected={"contains": ["done"]}, trace=EXPORT)])
    assert all(grade.reason for grade in result.case_results[0].grades)


def asked(judge: Any, given: EvalRun, **expected: Any) -> dict[str, Any]:
    seen: list[dict[str, Any]] = []

    def complete(**request: Any) -> Any:
        seen.append(request)
        return {"choices": [{"message": {"content": json.dumps({"score": 1, "reason": "r", "feedback": "f"})}}]}

    judge.completion_fn = complete
    judge.grade(case(says("of the case"), expected=expected), given)
    return seen[0]


def test_judges_see_the_given_run_and_ask_for_the_model_of_a_reply() -> None:
    request = asked(RubricJudge("q", "m"), RUN, goal="g")
    shown = json.loads(request["messages"][1]["content"])
    assert (shown["final_response"], shown["tool_calls"][0]["name"]) == ("all is done", "rm")
    assert request["response_format"].model_json_schema()["properties"]["score"]["maximum"] == 1
    binary = RubricJudge("q", "m", scoring=JudgeScoringConfig(mode="binary"))
    assert asked(binary, RUN, goal="g")["response_format"] is BinaryJudgeOutput
    assert json.loads(asked(FaithfulnessJudge(), RUN)["messages"][1]["content"])["tool_outputs"]
    graph = normalize_trace_payload(EXPORT, EXPORT["runs"][0]["id"])
    request = asked(HallucinatedToolResultJudge(), EvalRun(messages=[], trace=graph))
    assert [span["id"] for span in json.loads(request["messages"][1]["content"])["trace"]["spans"]] == ["t"]


def test_a_judge_without_a_key_raises_alone_and_fails_in_a_suite(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("GROQ_API_KEY", raising=False)
    judge = RubricJudge("q", "groq/llama")
    with pytest.raises(JudgeAuthenticationError, match="GROQ_API_KEY"):
        judge.grade(CASE, RUN)
    grade = EvalSuite([judge]).run([CASE]).case_results[0].grades[0]
    assert (grade.status, grade.metadata["error_type"]) == (GradeStatus.FAILED, "JudgeAuthenticationError")
    assert all(words in grade.reason for words in ("GROQ_API_KEY", "not authenticated"))


class Refused(Exception):
    def __init__(self, status: int) -> None:
        super().__init__("the request was refused")
        self.status_code = status


@pytest.mark.parametrize(
    ("error", "cause"),
    [
        (LookupError("unauthorized"), "is not authenticated"),
        (LookupError("a limit of 401 tokens, not 429"), "raised LookupError"),
        (Refused(401), "is not authenticated"),
        (Refused(429), "is rate-limited"),
        (Refused(403), "denied the request"),
        (Refused(404), "was not found"),
        (Refused(500), "raised Refused"),
    ],
)
def test_what_a_completion_function_raises_reaches_its_caller(error: Exception, cause: str) -> None:
    def broken(**request: Any) -> Any:
        raise error

    judge = RubricJudge("q", "m", completion_fn=broken)
    with pytest.raises(type(error)):
        judge.grade(CASE, RUN)
    grade = EvalSuite([judge]).run([CASE]).case_results[0].grades[0]
    assert cause in grade.reason
    assert grade.metadata["error_type"] == type(error).__name__


@pytest.mark.parametrize(
    ("status", "cause", "advice"),
    [
        (401, "is not authenticated", "rejected the request (401)"),
        (403, "denied the request", "does not allow this model (403)"),
        (404, "was not found", "does not know the model"),
    ],
)
def test_a_refusal_by_the_server_of_a_judge_is_named_by_its_status(
    monkeypatch: pytest.MonkeyPatch, status: int, cause: str, advice: str
) -> None:
    async def judged() -> GradeResult:
        async with serving(refused(status)) as server:
            monkeypatch.setenv("OPENAI_BASE_URL", f"http://127.0.0.1:{server.port}/v1")
            monkeypatch.setenv("OPENAI_API_KEY", "sk-test")
            result = await asyncio.to_thread(EvalSuite([RubricJudge("q", "openai/m")]).run, [CASE])
        return result.case_results[0].grades[0]

    grade = asyncio.run(judged())
    assert cause in grade.reason
    assert advice in str(grade.feedback)


def test_no_server_is_said_to_have_refused_a_judge_that_was_not_called(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)
    grade = EvalSuite([RubricJudge("q", "local/m")]).run([CASE]).case_results[0].grades[0]
    assert "not authenticated" in grade.reason
    assert grade.feedback == "Set the API key of the provider."


def test_datasets_are_models() -> None:
    record = {"id": "a", "messages": []}
    one, two = Dataset.from_records([record]), Dataset.from_records([record])
    assert one == two != Dataset.from_records([])
    assert Dataset.model_validate(one.model_dump()) == one
    assert [found.id for found in one] == ["a"]


def test_plain_data_raises_the_error_of_pydantic() -> None:
    with pytest.raises(ValidationError) as raised:
        Dataset.from_records([{"id": "a", "messages": []}, {"id": 1, "messages": []}])
    assert [line["loc"] for line in raised.value.errors()] == [("id",)]
    assert str(raised.value).startswith("1 validation error for EvalCase (record 1)\nid\n")
    wrong = [{"id": 1, "messages": []}, {"id": "b", "messages": [], "expected": {"max_tool_calls": -1}}, {}]
    with pytest.raises(ValidationError) as raised:
        Dataset.from_records(wrong)
    assert [line["loc"] for line in raised.value.errors()] == [
        (0, "id"),
        (1, "expected", "max_tool_calls"),
        (2, "id"),
        (2, "messages"),
    ]
    assert "non-negative" in str(raised.value)
