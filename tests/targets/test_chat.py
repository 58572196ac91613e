"""Chat models as systems: one answer, tools in several turns, what is kept of a failure."""

from __future__ import annotations

from asyncio import CancelledError

import msgspec
import pytest

from evalwright.errors import TargetError
from evalwright.model.chat import ChatMessage, ServedCall, Usage
from evalwright.model.trace import ToolCall, ToolResult
from targets.conversations import Scripted, ask, says

HERE = "targets.test_chat"
ORDERS = {"7": {"state": "sent"}}


def order(number):
    """The state of an order."""
    return ORDERS[number]


class Unreadable(Exception):
    def __str__(self):
        raise SystemExit


def leaves(number):
    """Ends in the way that is asked for."""
    raise {"exit": SystemExit(3), "key": KeyboardInterrupt(), "cancel": CancelledError(), "odd": Unreadable()}[number]


async def leaves_later(number):
    leaves(number)


TOOLS = [{"function": f"{HERE}:order", "parameters": {"type": "object"}}]
QUESTION = {"user_message": "Where is order 7?", "tone": "kind"}


def answered(*replies, config=None, given=QUESTION, trial=0):
    models = Scripted(system=list(replies))
    config = {"model": "gpt-x", "tools": TOOLS, **(config or {})}
    return ask("openai_chat", config, given, models, trial), [request for _, request in models.requests]


def called(number, call_id=None):
    return ToolCall("order", call_id, {"number": number})


def test_one_answer_with_its_tokens_cost_and_thinking() -> None:
    answer, _ = answered(says("Sent.", thinking="look", cost_usd=0.25, finish_reason="stop"))
    assert (answer.output.final_answer, answer.output.thinking) == ("Sent.", "look")
    assert (answer.metrics.token_input, answer.metrics.token_output, answer.metrics.cost_usd) == (100, 10, 0.25)
    assert answer.extra == {"chat": {"model": "model-1", "turns": 1, "finish_reason": "stop"}}
    assert [(m.role, m.content, m.thinking) for m in answer.messages] == [
        ("user", "Where is order 7?", None),
        ("assistant", "Sent.", "look"),
    ]


def test_the_configuration_goes_into_the_request() -> None:
    config = {
        "system_prompt": "Be {{ input.tone }}.",
        "user_template": "{{ input.user_message }} Please.",
        "temperature": 0,
        "max_tokens": 50,
        "base_url": "http://127.0.0.1:9/v1",
        "api_key_env": "SHOP_KEY",
        "parameters": {"seed": 7},
    }
    answer, (request,) = answered(says("Sent."), config=config, trial=2)
    assert request.messages == [ChatMessage("user", "Where is order 7? Please.")]
    assert (request.model, request.system, request.temperature, request.max_tokens) == ("gpt-x", "Be kind.", 0, 50)
    assert (request.base_url, request.api_key_env, request.extra) == ("http://127.0.0.1:9/v1", "SHOP_KEY", {"seed": 7})
    assert (request.provider, request.repeat, request.tools[0]["name"]) == ("openai", 2, "order")
    assert answer.messages[0].role == "system"


def test_all_messages_of_a_call_have_the_id_of_one_session() -> None:
    config = {"system_prompt": "{{ session_id }}", "user_template": "{{ session_id }}"}
    first, second = (answered(says("Sent."), config=config)[1][0] for _ in range(2))
    assert first.system == first.messages[0].content != second.system


def test_tools_are_used_until_the_model_answers() -> None:
    answer, requests = answered(says("Let me see.", called("7", "c1")), says("Sent."))
    assert answer.output.final_answer == "Sent."
    assert answer.tool_calls == [called("7", "c1")]
    assert answer.tool_results == [ToolResult("order", {"state": "sent"}, "c1")]
    assert [m.role for m in answer.messages] == ["user", "assistant", "tool", "assistant"]
    assert requests[1].messages[2] == ChatMessage("tool", '{"state":"sent"}', "order", tool_call_id="c1")
    assert (answer.metrics.token_input, answer.extra["chat"]["turns"]) == (200, 2)


def test_several_calls_in_one_message_are_all_answered_in_order() -> None:
    answer, requests = answered(says("", called("7", "a"), called("8", "b")), says("One of them."))
    assert [result.tool_call_id for result in answer.tool_results] == ["a", "b"]
    assert answer.tool_results[1].content == {"error": "KeyError: '8'"}
    assert [len(m.tool_calls) for m in requests[1].messages] == [0, 2, 0, 0]
    assert [m.tool_call and m.tool_call.id for m in answer.messages] == [None, "a", "b", None, None, None]


@pytest.mark.parametrize("tool", ["leaves", "leaves_later"])
@pytest.mark.parametrize(
    ("way", "error"),
    [
        ("exit", "SystemExit: 3"),
        ("key", "KeyboardInterrupt: "),
        ("cancel", "CancelledError: "),
        ("odd", "Unreadable: "),
    ],
)
def test_whatever_a_tool_raises_is_its_result(tool: str, way: str, error: str) -> None:
    config = {"tools": [*TOOLS, {"function": f"{HERE}:{tool}"}]}
    leaving = ToolCall(tool, "c2", {"number": way})
    answer, _ = answered(says("", called("7", "c1")), says("", leaving), says("Sent."), config=config)
    assert (answer.error, answer.output.final_answer) == (None, "Sent.")
    first, second = answer.tool_results
    assert first.content == {"state": "sent"}
    assert isinstance(second.content, dict)
    assert second.content["error"].startswith(error)


def test_calls_without_an_id_get_one_each() -> None:
    answer, _ = answered(says("", called("7"), called("7")), says("", called("7")), says("Sent."))
    assert [call.id for call in answer.tool_calls] == ["call_1", "call_2", "call_3"]
    assert [result.tool_call_id for result in answer.tool_results] == ["call_1", "call_2", "call_3"]


def test_a_model_that_never_stops_calling_tools_is_an_error_with_all_it_did() -> None:
    answer, requests = answered(*[says("", called("7"))] * 5, config={"max_turns": 3})
    assert len(requests) == 3
    assert answer.error is not None
    assert (answer.error.type, len(answer.tool_calls), answer.output.final_answer) == ("max_turns", 3, None)


def test_a_failure_at_once_is_the_error_of_the_cell() -> None:
    with pytest.raises(TargetError, match="busy") as raised:
        answered(TargetError("busy", "rate_limited"))
    assert raised.value.type == "rate_limited"


def test_a_later_failure_keeps_the_turns_before_it() -> None:
    answer, _ = answered(says("Let me see.", called("7", "c1")), TargetError("HTTP 503", "http_5xx"))
    assert answer.error is not None
    assert (answer.error.type, answer.error.message) == ("http_5xx", "HTTP 503")
    assert answer.tool_results == [ToolResult("order", {"state": "sent"}, "c1")]
    assert answer.metrics.token_input == 100


@pytest.mark.parametrize(("reason", "doubts"), [("stop", []), ("length", ["length"]), ("max_tokens", ["max_tokens"])])
def test_an_answer_that_was_cut_off_is_doubted(reason: str, doubts: list[str]) -> None:
    answer, _ = answered(says("The order is", finish_reason=reason))
    assert (answer.output.final_answer, answer.error) == ("The order is", None)
    assert [doubt.what for doubt in answer.doubts] == [f"the reply was cut off, ending with {end!r}," for end in doubts]


@pytest.mark.parametrize("fields", [{"finish_reason": "stop"}, {"finish_reason": "refusal"}])
def test_a_refusal_is_doubted_as_one(fields: dict[str, str]) -> None:
    answer, _ = answered(says("", refusal="I cannot help.", **fields))
    assert answer.output.final_answer == "I cannot help."
    assert [doubt.what for doubt in answer.doubts] == ["the model refused"]


@pytest.mark.parametrize("reason", ["length", "max_tokens", "content_filter"])
def test_a_reply_that_was_cut_off_before_its_first_word_is_no_answer(reason: str) -> None:
    answer, _ = answered(says("", finish_reason=reason))
    assert answer.error is not None
    assert (answer.error.type, reason in answer.error.message) == ("bad_reply", True)
    assert answer.metrics.token_input == 100
    answer, _ = answered(says("", finish_reason="stop"))
    assert (answer.error, answer.output.final_answer) == (None, "")


@pytest.mark.parametrize(
    ("costs", "total"), [((0.5, 0.25), 0.75), ((0.5, None), None), ((None, 0.5), None), ((None, None), None)]
)
def test_the_cost_of_all_turns_is_unknown_if_that_of_one_is(
    costs: tuple[float | None, ...], total: float | None
) -> None:
    answer, _ = answered(says("", called("7"), cost_usd=costs[0]), says("done", cost_usd=costs[1]))
    assert answer.metrics.cost_usd == total


def test_tokens_that_one_turn_does_not_count_are_unknown() -> None:
    whole, half = says("", called("7")), msgspec.structs.replace(says("done"), usage=Usage(100))
    answer, _ = answered(whole, half)
    assert (answer.metrics.token_input, answer.metrics.token_output) == (200, None)


def test_calls_that_the_provider_ran_itself_are_in_the_trace_and_not_run_again() -> None:
    served = [ServedCall(ToolCall("web_search", "s1", {"query": "x"}), "a page"), ServedCall(called("8"))]
    answer, requests = answered(says("Let me see.", called("7", "c1"), served_calls=served), says("Sent."))
    assert [(call.name, call.id) for call in answer.tool_calls] == [
        ("web_search", "s1"),
        ("order", "served_2"),
        ("order", "c1"),
    ]
    assert answer.tool_results == [
        ToolResult("web_search", "a page", "s1"),
        ToolResult("order", {"state": "sent"}, "c1"),
    ]
    assert [m.tool_call and m.tool_call.id for m in answer.messages] == [
        None, "s1", "served_2", "c1", None, None, None,
    ]  # fmt: skip
    assert requests[1].messages[1].tool_calls == [called("7", "c1")]


def test_a_reply_that_the_provider_paused_is_no_answer() -> None:
    answer, _ = answered(says("I will search.", finish_reason="pause_turn"))
    assert answer.error is not None
    assert (answer.error.type, "pause_turn" in answer.error.message) == ("bad_reply", True)


def test_a_refusal_is_an_answer() -> None:
    answer, _ = answered(says("", refusal="I would rather not.", finish_reason="stop"))
    assert answer.output.final_answer == "I would rather not."
    assert answer.extra["chat"]["refusal"] == "I would rather not."


def test_what_utf_8_cannot_hold_is_replaced() -> None:
    answer, _ = answered(says("half \ud83d of it"))
    assert answer.output.final_answer == "half \ufffd of it"
    assert answer.messages[-1].content == "half \ufffd of it"
