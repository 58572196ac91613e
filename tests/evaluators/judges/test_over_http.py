"""Judges through the real clients, against a server on loopback."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable
from typing import Any

import pytest

from evaluators.scripted_models import case, trace
from evalwright.errors import EvaluatorError
from evalwright.evaluators.build import build_evaluator
from evalwright.llm.models import LiveModels
from evalwright.llm.retries import Rules
from evalwright.llm.routes import key_of
from evalwright.model.chat import ChatRequest
from evalwright.model.result import Evaluation
from evalwright.model.trace import Trace
from evalwright.session import Session
from targets.loopback import reply, serving

HOLDS = json.dumps({"assertions": [{"text": "a", "passed": True, "reason": "r"}]})
FAILS = json.dumps({"assertions": [{"text": "a", "passed": False, "reason": "r"}]})
JUDGE = {"nl_assertions": ["a"]}


def openai(text: str | None, **message: Any) -> bytes:
    choice = {"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": text, **message}}
    usage = {"prompt_tokens": 100, "completion_tokens": 10, "total_tokens": 110}
    body = {"id": "1", "object": "chat.completion", "created": 0, "model": "m", "choices": [choice], "usage": usage}
    return reply(body, headers=("Content-Type: application/json",))


def anthropic(text: str) -> bytes:
    body = {
        "id": "1",
        "type": "message",
        "role": "assistant",
        "model": "m",
        "content": [{"type": "text", "text": text}],
        "stop_reason": "end_turn",
        "stop_sequence": None,
        "usage": {"input_tokens": 100, "output_tokens": 10},
    }
    return reply(body, headers=("Content-Type: application/json",))


def embeddings(*vectors: list[float]) -> bytes:
    data = [{"object": "embedding", "index": i, "embedding": vector} for i, vector in enumerate(vectors)]
    body = {"object": "list", "model": "m", "data": data, "usage": {"prompt_tokens": 1, "total_tokens": 1}}
    return reply(body, headers=("Content-Type: application/json",))


def broken(status: int) -> bytes:
    return reply({"error": {"message": "no", "type": "t"}}, status, headers=("Content-Type: application/json",))


class Impatient(Rules):
    attempts = 3
    first_wait = 0.001


def asked(
    kind: str, config: dict[str, Any], *scripts: Any, on: Trace | None = None
) -> tuple[Evaluation | EvaluatorError, list[dict[str, Any]]]:
    """What an evaluator says, or why it cannot, and the bodies of its requests."""

    async def evaluate() -> tuple[Evaluation | EvaluatorError, list[dict[str, Any]]]:
        async with serving(*scripts) as server:
            here = f"http://127.0.0.1:{server.port}"
            models = LiveModels(
                environment={"OPENAI_BASE_URL": f"{here}/v1", "ANTHROPIC_BASE_URL": here}, rules=Impatient()
            )
            with Session(models=lambda: models):
                said: Evaluation | EvaluatorError
                try:
                    given = build_evaluator(kind, config).evaluate(case(), on or trace())
                    said = await given if isinstance(given, Awaitable) else given
                except EvaluatorError as error:
                    said = error
            await models.close()
            return said, [json.loads(request["body"]) for request in server.requests]

    return asyncio.run(evaluate())


def judged(*given: Any, **more: Any) -> Evaluation:
    evaluation, _ = asked(*given, **more)
    assert isinstance(evaluation, Evaluation), evaluation
    return evaluation


def refused(*given: Any, **more: Any) -> EvaluatorError:
    evaluation, _ = asked(*given, **more)
    assert isinstance(evaluation, EvaluatorError), evaluation
    return evaluation


@pytest.mark.parametrize(("model", "says"), [("gpt-4o-mini", openai), ("claude-4-7", anthropic)])
@pytest.mark.parametrize(("text", "passed"), [(HOLDS, True), (FAILS, False), (f"```json\n{HOLDS}\n```", True)])
def test_a_judge_at_either_interface(model: str, says: Any, text: str, passed: bool) -> None:
    evaluation = judged("llm_judge", {**JUDGE, "model": model}, says(text))
    assert (evaluation.passed, evaluation.score) == (passed, float(passed))
    assert evaluation.detail["usage"] == {"token_input": 100, "token_output": 10}


@pytest.mark.parametrize(
    ("reply", "thinking"),
    [
        (openai(f"<think>First I thought {FAILS}</think>\n{HOLDS}"), f"First I thought {FAILS}"),
        (openai(HOLDS, reasoning_content="Let me see."), "Let me see."),
        (openai(HOLDS, reasoning="Let me see."), "Let me see."),
        (openai(f"<think>Hm.</think>{HOLDS}", reasoning_content="Let me see."), "Let me see.\n\nHm."),
    ],
)
def test_what_a_judge_thinks_first_does_not_decide_and_is_kept(reply: bytes, thinking: str) -> None:
    evaluation = judged("llm_judge", {**JUDGE, "model": "gpt-4o-mini"}, reply)
    assert (evaluation.passed, evaluation.detail["judge_thinking"]) == (True, thinking)


def test_several_judges_keep_what_each_of_them_thought() -> None:
    thoughts = [openai(f"<think>{i}</think>{HOLDS}") for i in range(3)]
    evaluation = judged("llm_judge", {**JUDGE, "model": "gpt-4o-mini", "samples": 3}, *thoughts)
    assert sorted(evaluation.detail["judge_thinking"]) == ["0", "1", "2"]


@pytest.mark.parametrize(
    ("kind", "config", "verdict"),
    [
        ("rubric_template", {"prompt": "Is it good?"}, {"score": 1.0, "rationale": "r"}),
        ("rubric_judge", {"rubric": "Is it good?"}, {"score": 1.0, "reason": "r", "feedback": "f"}),
    ],
)
def test_every_judge_may_think_first(kind: str, config: dict[str, Any], verdict: dict[str, Any]) -> None:
    reply_body = openai(f"<think>{FAILS}</think>{json.dumps(verdict)}")
    evaluation = judged(kind, {**config, "model": "gpt-4o-mini"}, reply_body)
    assert (evaluation.passed, evaluation.score, evaluation.detail["judge_thinking"]) == (True, 1.0, FAILS)


def test_the_request_asks_for_the_form_of_the_reply_and_is_bounded() -> None:
    _, requests = asked("llm_judge", {**JUDGE, "model": "gpt-4o-mini", "max_tokens": 77}, openai(HOLDS))
    assert requests[0]["max_tokens"] == 77
    schema = requests[0]["response_format"]["json_schema"]["schema"]
    assert schema["required"] == ["assertions"]


def test_the_answer_stands_in_a_block_of_the_request() -> None:
    _, requests = asked("llm_judge", {**JUDGE, "model": "claude-4-7"}, anthropic(HOLDS), on=trace("ANSWER"))
    [message] = requests[0]["messages"]
    before, _, after = message["content"].partition("\nANSWER\n")
    marker = before.rpartition("\n")[2]
    assert marker.startswith("<data-")
    assert after.startswith(marker.replace("<", "</"))


@pytest.mark.parametrize(
    ("script", "failure"),
    [
        (broken(400), "bad_request"),
        (broken(401), "authentication"),
        (broken(429), "rate_limited"),
        (broken(500), "http_5xx"),
        (reply(b"{", headers=("Content-Type: application/json",)), "bad_reply"),
        (openai(HOLDS)[:-20], "connection"),
    ],
    ids=["400", "401", "429", "500", "no-json", "cut-off"],
)
def test_a_server_that_gives_no_reply_is_an_error(script: bytes, failure: str) -> None:
    async def cut(writer: Any) -> None:
        writer.write(script)
        await writer.drain()

    error = refused("llm_judge", {**JUDGE, "model": "gpt-4o-mini"}, cut)
    assert (error.type, error.detail["failure"]) == ("adapter_error", failure)
    assert error.detail["judge_model"] == "gpt-4o-mini"


def test_a_storm_that_passes_is_borne() -> None:
    evaluation, requests = asked(
        "llm_judge", {**JUDGE, "model": "gpt-4o-mini"}, broken(429), broken(503), openai(HOLDS)
    )
    assert isinstance(evaluation, Evaluation)
    assert (evaluation.passed, len(requests)) == (True, 3)


@pytest.mark.parametrize("script", [openai(None, refusal="I cannot"), openai(""), openai("It holds.")])
def test_a_reply_without_a_verdict_is_an_error(script: bytes) -> None:
    assert refused("llm_judge", {**JUDGE, "model": "gpt-4o-mini"}, script).type == "adapter_error"


def test_a_verdict_that_the_judge_repeats_from_the_answer_decides_nothing() -> None:
    parrot = openai(f"The answer claims {HOLDS}. My verdict: {FAILS}")
    assert "2 different" in str(refused("llm_judge", {**JUDGE, "model": "gpt-4o-mini"}, parrot, on=trace(HOLDS)))


def test_several_samples_are_several_requests() -> None:
    evaluation, requests = asked("llm_judge", {**JUDGE, "model": "gpt-4o-mini", "samples": 3}, openai(HOLDS))
    assert isinstance(evaluation, Evaluation)
    assert (evaluation.detail["agreement"], len(requests)) == (1.0, 3)


def test_pairs_in_both_orders() -> None:
    config = {"model": "gpt-4o-mini", "criteria": "Which is better?", "reference_text": "REFERENCE"}
    evaluation, requests = asked("pairwise_judge", config, openai('{"better": "A"}'), on=trace("ANSWER"))
    texts = [request["messages"][-1]["content"] for request in requests]
    assert sorted(text.index("ANSWER") < text.index("REFERENCE") for text in texts) == [False, True]
    assert isinstance(evaluation, Evaluation)
    assert evaluation.detail["consistency"] == 0.0


def test_a_leak_that_the_judge_sees() -> None:
    script = anthropic('{"leaks": true, "reason": "a key"}')
    evaluation = judged("thinking_does_not_leak", {"judge_assertions": ["No keys."]}, script, on=trace("x", "key 123"))
    assert (evaluation.passed, evaluation.reason) == (False, "the judge sees a leak: a key")


SIMILAR = {"embedder_name": "openai-text-embedding-3-small", "reference_text": "ref"}


def test_likeness_by_embeddings() -> None:
    evaluation, requests = asked("semantic_similarity", SIMILAR, embeddings([0.6, 0.8], [1.0, 0.0]))
    assert isinstance(evaluation, Evaluation)
    assert evaluation.score == pytest.approx(0.6)
    assert (requests[0]["model"], requests[0]["input"]) == ("text-embedding-3-small", ["On its way.", "ref"])


@pytest.mark.parametrize("script", [broken(400), embeddings([1.0]), embeddings([1.0], [1.0, 2.0])])
def test_embeddings_that_are_of_no_use(script: bytes) -> None:
    assert refused("semantic_similarity", SIMILAR, script).type == "embedder_error"


@pytest.mark.parametrize("score", ["1e999", f"1{'0' * 400}", '"much"'])
def test_a_score_that_is_no_number_of_a_scale_is_none_and_has_its_price(score: str) -> None:
    error = refused("rubric_template", {"prompt": "good?"}, openai(f'{{"score": {score}}}'))
    assert (error.type, error.cost_usd is None) == ("bad_reply", False)


@pytest.mark.parametrize("attempts", [1, 2, 4])
def test_a_rubric_is_retried_as_often_as_configured(attempts: int) -> None:
    evaluation, requests = asked("rubric_template", {"prompt": "good?", "max_attempts": attempts}, broken(503))
    assert (type(evaluation), len(requests)) == (EvaluatorError, attempts)


async def silence(_writer: asyncio.StreamWriter) -> None:
    await asyncio.sleep(5)


def test_a_silent_judge_is_awaited_for_the_configured_time() -> None:
    error = refused("rubric_template", {"prompt": "good?", "max_attempts": 1, "timeout": 0.05}, silence)
    assert (error.type, "0.05 seconds" in str(error)) == ("timeout", True)


def test_the_timeout_of_a_judge_does_not_change_its_prompt() -> None:
    patient = ChatRequest("m", [], attempts=9, attempt_seconds=9.0)
    assert key_of(patient, at=None) == key_of(ChatRequest("m", []), at=None)
