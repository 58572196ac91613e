"""Extractors over conversations of every origin, and evaluators behind them."""

import asyncio
from collections.abc import Awaitable
from datetime import UTC, datetime

import pytest

from evalwright.errors import EvaluatorError
from evalwright.evaluators.build import build, build_extractor
from evalwright.evaluators.conversation.turns import blocks_of, turns_of
from evalwright.model.plan import EvaluatorSpec, Plugin
from evalwright.model.snapshot import Case
from evalwright.model.trace import Output, ToolCall, ToolResult, Trace, TraceError, TraceMessage
from evalwright.session import Session

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def says(content):
    return {"message_type": "assistant_message", "content": content}


def calls(name, arguments, call_id, **more):
    call = {"name": name, "arguments": arguments, "tool_call_id": call_id}
    return {"message_type": "tool_call_message", "tool_call": call, **more}


def returns(call_id, text, status="success"):
    return {"message_type": "tool_return_message", "tool_call_id": call_id, "tool_return": text, "status": status}


TURNS = [
    [
        says("Hello"),
        calls("find", '{"q":1}', "1"),
        calls("find", '{"q":2}', "2"),
        returns("2", "two"),
        returns("1", "one"),
    ],
    [says([{"type": "text", "text": "Total: 12"}, {"type": "text", "text": "EUR. Total: 30"}])],
    [{"message_type": "reasoning_message", "reasoning": "hm"}],
]


def trace(turns=None, *, error=None, **extra):
    settings = {"turns": turns, **extra} if turns is not None else extra
    return Trace("c", "v", NOW, NOW, 0, "q", Output(), extra=settings, error=error)


@pytest.mark.parametrize(
    ("name", "config", "text"),
    [
        ("last_assistant", {}, "Total: 12 EUR. Total: 30"),
        ("first_assistant", {}, "Hello"),
        ("all_assistant", {"separator": "|"}, "Hello|Total: 12 EUR. Total: 30"),
        ("last_turn", {}, ""),
        ("pattern", {"pattern": r"\d+"}, "12"),
        ("pattern", {"pattern": r"Total: (\d+)", "group": 1}, "12"),
        ("pattern", {"pattern": r"(T)otal: (\d+)", "group": 1, "search_all": True}, "12 30"),
        ("pattern", {"pattern": r"Total: (?P<sum>\d+)", "group": "sum"}, "12"),
        ("pattern", {"pattern": "absent"}, ""),
        ("tool_arguments", {"tool_name": "find"}, '{"q":1}'),
        ("tool_arguments", {"tool_name": "Find"}, "{}"),
        ("tool_output", {"tool_name": "find"}, "one"),
        ("tool_output", {"tool_name": "gone"}, ""),
        ("after_marker", {"marker": "Total:"}, "12 EUR. Total: 30"),
        ("after_marker", {"marker": "EUR", "include_marker": True}, "EUR. Total: 30"),
        ("memory_block", {"block_label": "human"}, "Ada"),
        ("memory_block", {"block_label": "gone"}, ""),
    ],
)
def test_an_extractor_picks_one_text(name, config, text):
    conversation = trace(TURNS, blocks={"human": "Ada"})
    assert build_extractor(name, config).extract(turns_of(conversation), blocks_of(conversation)) == text


def test_several_calls_in_one_message_are_seen():
    both = [
        {"name": "a", "arguments": "{}", "tool_call_id": "1"},
        {"name": "b", "arguments": "[2]", "tool_call_id": "2"},
    ]
    turns = [[{"message_type": "tool_call_message", "tool_call": both[0], "tool_calls": both}]]
    assert build_extractor("tool_arguments", {"tool_name": "b"}).extract(turns, None) == "[2]"


def test_calls_without_an_id_get_no_other_tools_output():
    turns = [[calls("look", {}, ""), calls("find", {}, ""), {**returns("", "seen"), "name": "look"}]]
    find, look = (build_extractor("tool_output", {"tool_name": tool}) for tool in ("find", "look"))
    assert (find.extract(turns, None), look.extract(turns, None)) == ("", "seen")


def test_data_in_place_of_text_is_json():
    turns = [[calls("find", {"q": {"é": 1}}, "1"), returns("1", [{"text": "é"}]), calls("stop", {}, "2")]]
    texts = [
        build_extractor(name, {"tool_name": tool}).extract(turns, None)
        for name, tool in (("tool_arguments", "find"), ("tool_output", "find"), ("tool_arguments", "stop"))
    ]
    assert texts == ['{"q": {"é": 1}}', '[{"text": "é"}]', "{}"]


def test_memory_that_is_not_known_is_an_error():
    with pytest.raises(EvaluatorError, match="memory"):
        build_extractor("memory_block", {"block_label": "human"}).extract(TURNS, None)


def test_a_native_trace_is_read_in_turns():
    native = trace()
    native.messages = [
        TraceMessage("user", "a"),
        TraceMessage("assistant", tool_call=ToolCall("find", "1", {"q": 1})),
        TraceMessage("tool", "found", name="find"),
        TraceMessage("assistant", "first"),
        TraceMessage("user", "b"),
        TraceMessage("assistant", "second"),
    ]
    native.tool_results = [ToolResult("find", "found", "1")]
    turns = turns_of(native)
    assert build_extractor("tool_output", {"tool_name": "find"}).extract(turns, None) == "found"
    assert build_extractor("last_turn", {}).extract(turns, None) == "second"


def test_outputs_without_a_name_are_those_of_the_results_in_order():
    native = trace()
    native.messages = [
        TraceMessage("assistant", tool_call=ToolCall("look", None, {})),
        TraceMessage("assistant", tool_call=ToolCall("find", None, {})),
        TraceMessage("tool", "seen"),
        TraceMessage("tool", "found"),
    ]
    native.tool_results = [ToolResult("look", "seen"), ToolResult("find", "found")]
    assert build_extractor("tool_output", {"tool_name": "find"}).extract(turns_of(native), None) == "found"


def test_a_trace_with_an_answer_only_is_one_turn():
    answered = trace()
    answered.output = Output(final_answer="42")
    answered.tool_calls, answered.tool_results = [ToolCall("find", "1", {"q": 1})], [ToolResult("find", {"a": 1}, "1")]
    turns = turns_of(answered)
    assert build_extractor("last_assistant", {}).extract(turns, None) == "42"
    assert build_extractor("tool_output", {"tool_name": "find"}).extract(turns, None) == '{"a": 1}'


def behind(extractor="last_assistant", threshold=None, **config):
    spec = EvaluatorSpec("e", "contains_text", config, extractor=Plugin(extractor), threshold=threshold)
    return build(spec)


def test_any_evaluator_judges_the_text_that_was_picked():
    result = behind("first_assistant", all_of=["hello"]).evaluate(Case("c", "q"), trace(TURNS))
    assert (result.passed, result.detail["submission"]) == (True, "Hello")


@pytest.mark.parametrize(
    ("conversation", "kind"),
    [
        (trace([]), "no_trajectory"),
        (trace([[], []]), "empty_trajectory"),
        (trace([[calls("find", "{}", "1")]]), "empty_submission"),
        (trace(TURNS, error=TraceError("timeout", "late")), "not_judged"),
    ],
)
def test_nothing_to_judge_is_an_error_of_its_kind(conversation, kind):
    with pytest.raises(EvaluatorError) as raised:
        behind(all_of=["x"]).evaluate(Case("c", "q"), conversation)
    assert raised.value.type == kind


@pytest.mark.parametrize(("threshold", "passed"), [(0.5, True), (0.6, False)])
def test_a_threshold_decides_over_the_evaluator(threshold, passed):
    spec = EvaluatorSpec("e", "ground_truth_equals", threshold=threshold, extractor=Plugin("last_assistant"))
    case = Case("c", ["a", "b"], extra={"ground_truth": ["Hello", "x"]})
    result = build(spec).evaluate(case, trace([[says("Hello")], [says("y")]]))
    assert (result.score, result.passed, result.detail["turns"]) == (0.5, passed, [1.0, 0.0])


@pytest.mark.parametrize(
    ("kind", "answer", "truth", "passed"),
    [
        ("ground_truth_equals", " Paris\n", "Paris", True),
        ("ground_truth_equals", "paris", "Paris", False),
        ("ground_truth_contained", "in PARIS now", "paris", True),
        ("ground_truth_contained", "STRASSE", "straße", False),
        ("ground_truth_matches", "order 12", r"\d+", True),
        ("ground_truth_matches", "order", "(", False),
        ("ground_truth_equals", "x", "", False),
        ("ascii_printable_only", "a\nb", None, True),
        ("ascii_printable_only", "é", None, False),
    ],
)
def test_answers_beside_a_ground_truth(kind, answer, truth, passed):
    answered = trace()
    answered.output = Output(final_answer=answer)
    case = Case("c", "q", extra={} if truth is None else {"ground_truth": truth})
    result = build(EvaluatorSpec("e", kind)).evaluate(case, answered)
    assert (result.passed, result.score) == (passed, float(passed))


@pytest.mark.parametrize(
    ("kind", "config"),
    [
        ("contains_text", {"all_of": ["12"]}),
        ("text_check", {"check": "equals", "value": "12"}),
        ("regex", {"pattern": "^12$"}),
        ("ground_truth_equals", {}),
        ("composite", {"evaluators": [{"name": "in", "type": "contains_text", "config": {"all_of": ["12"]}}]}),
    ],
)
def test_evaluators_of_every_format_judge_the_extracted_text_and_keep_it(kind, config):
    extractor = Plugin("pattern", {"pattern": r"Total: (\d+)", "group": 1})
    spec = EvaluatorSpec("e", kind, config, extractor=extractor)
    judged = build(spec).evaluate(Case("c", "q", extra={"ground_truth": "12"}), trace(TURNS))
    judged = asyncio.run(judged) if isinstance(judged, Awaitable) else judged
    assert (judged.passed, judged.detail["submission"]) == (True, "12")


def test_a_kept_text_is_in_no_other_result():
    plain, extracting = (
        EvaluatorSpec("e", "unnecessary_tool_loop", extractor=extractor) for extractor in (None, Plugin("last_turn"))
    )
    without_steps = trace([[says("a secret of this cell")]])
    assert build(extracting).evaluate(Case("c", "q"), without_steps).detail["submission"] == "a secret of this cell"
    assert build(plain).evaluate(Case("d", "q"), without_steps).detail == {}


def test_a_text_that_could_not_be_judged_is_kept_too():
    spec = EvaluatorSpec("e", "semantic_similarity", SIMILAR, extractor=Plugin("last_assistant"))
    with Session(models=Unreachable), pytest.raises(EvaluatorError) as raised:
        asyncio.run(build(spec).evaluate(Case("c", "q"), trace(TURNS)))
    assert raised.value.detail["submission"] == "Total: 12 EUR. Total: 30"


SIMILAR = {"embedder_name": "openai-text-embedding-3-small", "reference_text": "x"}


class Unreachable:
    async def embed(self, *_asked):
        raise EvaluatorError("nobody answers", "connection")
